"""A launcher that is no kernel: it answers from the reference. What must hold of a kernel must hold of it, so it shows
that the properties accuse nobody, and, spoiled, that they do find; in no time, and without a compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mqa_ref.flow import Flow
from mqa_ref.launch import Launch
from mqa_ref.problem import Problem
from mqa_ref.reference import reference_logits
from mqa_ref.schedule import SPLIT_TOKENS

NAME = "reference"
"""The kernel name of campaigns that run this. Nothing but this package asks for it."""
_POISON = {2: 0xFDFD, 4: 0xFDFDFDFD}


def reference_launch(
    problem: Problem,
    flow: Flow,
    *,
    machine: str = "sm100",
    edit_ptx: Callable[[str], str] | None = None,
    order: str = "eager",
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
) -> Launch:
    """A ``Launcher``: valid logits of the reference, 0 in the rest of every split with a token, nothing elsewhere."""
    del edit_ptx, order, seed, options
    bits, valid = reference_logits(problem, flow, machine)
    shape = (problem.rows, problem.row_stride)
    logits = np.full(shape, _POISON[flow.bits_dtype.itemsize], flow.bits_dtype)
    splits = np.repeat(-(-problem.context_lens.astype(np.int64) // SPLIT_TOKENS), problem.next_n)
    written = np.asarray(np.arange(shape[1]) // SPLIT_TOKENS < splits[:, None])
    logits[written] = 0
    logits[:, : bits.shape[1]][valid] = bits[valid]
    return Launch(logits, written, (), problem.num_sms, 0, 0.0)
