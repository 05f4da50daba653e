"""The outcome of one launch of a kernel, whatever backend ran it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mqa_ref.findings import Finding


@dataclass(frozen=True)
class Launch:
    """What came back from one launch.

    ``logits``: unsigned bit patterns [rows, row_stride] (uint32 for fp32, uint16 for fp16 and bf16); elements the
    kernel did not write hold the poison that was there before. ``written``: bool, same shape, True where the kernel
    stored. ``writer``: int32, same shape, the CTA that stored each element last, -1 where none did; None where the
    backend cannot tell. ``findings``: hazards seen. ``ctas``: CTAs executed; ``instructions``: warp instructions
    executed; ``seconds``: wall time of the execution without compilation.
    """

    logits: NDArray[np.unsignedinteger]
    written: NDArray[np.bool_]
    findings: tuple[Finding, ...]
    ctas: int
    instructions: int
    seconds: float
    writer: NDArray[np.int32] | None = None
