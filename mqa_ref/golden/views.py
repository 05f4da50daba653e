"""The views of a case: every flow on every machine, and for the fp32 epilogue in both generations.

A view is written ``acc-epi-out.machine.generation``, such as ``fp32-fp32-bf16.sm90.max``; the fp16 epilogue has
one form only (op.md, "Dtype flows") and its views end with the machine, such as ``fp32-fp16-fp16.sm100``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from mqa_ref.flow import FLOWS, Flow
from mqa_ref.numerics import FORMATS, RNE
from mqa_ref.reference import Generation

MACHINE_NAMES = ("sm100", "sm90", "exact")


@dataclass(frozen=True)
class View:
    """One flow, machine and generation."""

    flow: Flow
    machine: str
    generation: Generation

    @property
    def name(self) -> str:
        """The name files use; see the module."""
        tail = f".{self.generation}" if self.flow.epi == "fp32" else ""
        return f"{self.flow}.{self.machine}{tail}"

    def encode(self, value: float) -> int:
        """The bit pattern of ``value`` in the output format, rounded to nearest even; NaN is the canonical one."""
        fmt = FORMATS[self.flow.out]
        sign = 1 if math.copysign(1, value) < 0 else 0
        if math.isnan(value):
            return fmt.canonical_nan
        if math.isinf(value):
            return fmt.inf(sign)
        return fmt.encode(Fraction(value), RNE) if value else fmt.zero(sign)


def _views() -> tuple[View, ...]:
    found = []
    for flow in map(Flow.parse, FLOWS):
        generations: tuple[Generation, ...] = ("folded", "max") if flow.epi == "fp32" else ("folded",)
        found += [View(flow, machine, form) for machine in MACHINE_NAMES for form in generations]
    return tuple(found)


VIEWS: tuple[View, ...] = _views()
"""All views, flows in the order of ``flow.FLOWS``."""
