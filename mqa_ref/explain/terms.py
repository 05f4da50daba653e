"""One tensor-core instruction taken apart in exact rational arithmetic: its 33 terms, and what was cut off each.

The rule is that of ``mqa_ref.numerics.machines`` and has its standing; ``mqa_ref.numerics.scalar.mma_step`` applies it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from mqa_ref.explain.nodes import KStep
from mqa_ref.numerics import E4M3FN, MachineModel
from mqa_ref.numerics.machines import ACCUMULATORS


@dataclass(frozen=True)
class Term:
    """``k``: number of the product, None for the accumulator. ``key``, ``query``: codes. ``value``: what it is;
    ``kept``: what enters the sum. Both None where a factor is NaN or the accumulator is no number."""

    k: int | None
    key: int
    query: int
    value: Fraction | None
    kept: Fraction | None

    @property
    def cut(self) -> bool:
        """Whether something was cut off."""
        return self.value != self.kept


_CODES = [None if E4M3FN.is_nan(code) else (E4M3FN.value(code), E4M3FN.exponent(code)) for code in range(256)]
"""Value and exponent of each e4m3fn code, None for NaN."""


def terms(step: KStep, machine: MachineModel, acc: str) -> tuple[tuple[Term, ...], int | None]:
    """The terms of one instruction, the accumulator last, and the exponent of the unit to whose multiples they are cut
    (None where nothing is cut)."""
    return _terms(step.key, step.query, step.before or 0, machine, acc)


@lru_cache(maxsize=2048)
def _terms(
    key: tuple[int, ...], query: tuple[int, ...], before: int, machine: MachineModel, acc: str
) -> tuple[tuple[Term, ...], int | None]:
    """The right kernel's instructions are those of the reference: each is taken apart once."""
    fmt = ACCUMULATORS[acc]
    found: list[tuple[int | None, int, int, Fraction | None, int]] = []
    for k, (x, y) in enumerate(zip(key, query, strict=True)):
        left, right = _CODES[x], _CODES[y]
        if left is None or right is None:
            found.append((k, x, y, None, 0))
        else:
            found.append((k, x, y, left[0] * right[0], left[1] + right[1]))
    if fmt.is_nan(before) or fmt.is_inf(before):
        found.append((None, 0, 0, None, 0))
    else:
        found.append((None, 0, 0, fmt.value(before), fmt.exponent(before)))
    if machine.fraction_bits is None or any(one[3] is None for one in found):
        return tuple(Term(k, x, y, value, value) for k, x, y, value, _ in found), None
    largest = max((exponent for *_, value, exponent in found if value), default=0)
    unit = largest - machine.fraction_bits
    grid = Fraction(2) ** unit
    kept = tuple(
        Term(k, x, y, value, value if (value / grid).denominator == 1 else math.trunc(value / grid) * grid)
        for k, x, y, value, _ in found
        if value is not None
    )
    return kept, unit


def in_words(step: KStep, machine: MachineModel, acc: str) -> str:
    """What the instruction did, in a few words."""
    found, unit = terms(step, machine, acc)
    cut = sum(one.cut for one in found)
    if any(one.value is None for one in found):
        return f"{len(step.key)} products, NaN or inf among the terms"
    return f"{len(step.key)} products" + (f", {cut} cut to multiples of 2^{unit}" if cut else ", none cut")
