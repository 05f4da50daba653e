"""Where a kernel without host code of its own comes from: how it is compiled, launched and scheduled for a problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mqa_ref.flow import Flow
from mqa_ref.kernel.raw_launch import RawKernel, RawLaunch
from mqa_ref.problem import Problem


@dataclass(frozen=True)
class RawSource:
    """``compile`` gives the kernel for the shape of a problem, ``describe`` the launch on it, without a compiler.

    ``schedule``: the (row, split) at which each CTA starts, int32 [num_sms + 1, 2], as the kernel's own metadata has
    it, which takes the place of the problem's. All three raise Unsupported for what the kernel does not serve.
    ``arch``: the architecture it is compiled for.
    """

    arch: str
    compile: Callable[[Problem, Flow], RawKernel]
    describe: Callable[[Problem, Flow], RawLaunch]
    schedule: Callable[[Problem], NDArray[np.int32]]
