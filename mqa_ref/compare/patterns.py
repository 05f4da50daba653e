"""Causes that show in the bits alone: zeros, one constant, a common factor, the logits of another place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.compare.bits import Bits, Mask, hex_word
from mqa_ref.compare.families import Sample
from mqa_ref.compare.measures import Values, values_of
from mqa_ref.flow import Flow
from mqa_ref.numerics import FORMATS, Format, canonical_nan, is_inf, is_nan, is_zero

_FACTOR_NEEDS = 4


def patterns(flow: Flow, sample: Sample, expected: Bits, valid: Mask) -> Iterator[str]:
    """Names of the causes that give every pattern of ``sample``. ``expected``, ``valid`` [rows, columns]: the whole
    output as it should be."""
    fmt = FORMATS[flow.out]
    named = constants(sample.found, fmt)
    yield from named
    if named:
        return
    factor = common_factor(flow, sample)
    if factor is not None:
        yield f"the right logits times {factor}"
    yield from _moved(sample, canonical_nan(expected, fmt), valid, fmt)


def constants(found: Bits, fmt: Format) -> tuple[str, ...]:
    """What is told of at least two elements that all hold zero, or all the same word."""
    if found.size < 2:
        return ()
    if is_zero(found, fmt).all():
        return ("zeros, as if nothing was computed or the result was cleared",)
    if (found == found[0]).all():
        return (f"one constant, {hex_word(int(found[0]), fmt)}",)
    return ()


def common_factor(flow: Flow, sample: Sample) -> str | None:
    """One number that all expected logits were multiplied with, in as few digits as say it; None when there is none, or
    when it might be 1.

    Two numbers of precision p that are multiples of each other up to three roundings have a quotient within 4 * 2**-p
    of the factor (proof). Subnormal numbers are no part of it.
    """
    fmt, epi = FORMATS[flow.out], FORMATS[flow.epi]
    precision = min(fmt.fraction_bits, epi.fraction_bits) + 1
    got, right = values_of(sample.found, fmt), values_of(sample.expected, fmt)
    smallest = 2.0 ** (1 - min(fmt.bias, epi.bias))
    if not np.all(np.minimum(np.abs(got), np.abs(right)) >= smallest):
        return None
    return shared_quotient(got, right, np.full(got.shape, 4.0 * 2.0**-precision))


def shared_quotient(got: Values, right: Values, slack: Values) -> str | None:
    """The number c, in words, with ``got`` = c * ``right`` in all elements [n] up to the relative errors ``slack``;
    None when there is none, when one element alone would not exclude 1, and for fewer than four different numbers.

    Every element gives an interval, and c lies in all of them.
    """
    usable = np.isfinite(got) & np.isfinite(right) & (got != 0) & (right != 0)
    if not usable.all() or np.unique(right).size < _FACTOR_NEEDS:
        return None
    ratio = got / right
    if (ratio > 0).any() and (ratio < 0).any():
        return None
    size = np.abs(ratio)
    low, high = float((size * (1 - slack)).max()), float((size * (1 + slack)).min())
    sign = "-" if ratio[0] < 0 else ""
    # Elements are known to be wrong; that each of them is too large, or each too small, is what a factor does.
    one_side = bool((size * (1 - slack)).min() > 1 or (size * (1 + slack)).max() < 1)
    if low > high or not (sign or one_side):
        return None
    middle = (low + high) / 2
    told = (f"{middle:.{digits}g}" for digits in range(1, 18))
    return sign + next((text for text in told if low <= float(text) <= high), repr(middle))


def _moved(sample: Sample, expected: Bits, valid: Mask, fmt: Format) -> Iterator[str]:
    """The logits of another row or column, at one distance for all elements, or of one row."""
    plain = ~(is_nan(sample.found, fmt) | is_inf(sample.found, fmt) | is_zero(sample.found, fmt))
    if np.unique(sample.found[plain]).size < (2 if fmt.bits == 32 else 4):
        return
    row, column = int(sample.rows[0]), int(sample.columns[0])
    across = np.flatnonzero((expected[row] == sample.found[0]) & valid[row]) - column
    down = np.flatnonzero((expected[:, column] == sample.found[0]) & valid[:, column])
    for step in across.tolist():
        if _holds(sample, expected, valid, sample.rows, sample.columns + step):
            yield f"the logits {abs(step)} columns {'further on' if step > 0 else 'before'}"
    for other in down.tolist():
        if _holds(sample, expected, valid, sample.rows + (other - row), sample.columns):
            yield f"the logits {abs(other - row)} rows {'further on' if other > row else 'before'}"
        elif _holds(sample, expected, valid, np.full_like(sample.rows, other), sample.columns):
            yield f"the logits of row {other}"


def _holds(sample: Sample, expected: Bits, valid: Mask, rows: NDArray[Any], columns: NDArray[Any]) -> bool:
    inside = (rows >= 0) & (rows < expected.shape[0]) & (columns >= 0) & (columns < expected.shape[1])
    if not inside.all() or not valid[rows, columns].all():
        return False
    return bool((expected[rows, columns] == sample.found).all())
