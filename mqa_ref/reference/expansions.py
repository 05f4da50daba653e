"""Sums of products without error: the exact logit between two float64 numbers next to each other, or in integers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.numerics import Format
from mqa_ref.numerics.rounding import odd_sum, two_sum_error

F64 = NDArray[np.float64]

_UNIT = 2.0**18
"""Dot products of e4m3fn numbers are multiples of 1 / _UNIT."""
_SLACK = 1.0 + 2.0**-40
"""More than the rounding errors of a sum of a few hundred float64 numbers of one sign."""


class _Expansion:
    """A sum of float64 numbers as ``total`` + ``rest``, off by at most ``lost`` (0: exact)."""

    def __init__(self, first: F64) -> None:
        self.total, self.rest, self.lost = first, np.zeros_like(first), np.zeros_like(first)

    def add(self, term: F64) -> None:
        """Knuth's TwoSum twice: the error of ``total`` goes to ``rest``, the error of ``rest`` is lost but known."""
        total = self.total + term
        error = two_sum_error(self.total, term, total)
        rest = self.rest + error
        self.lost = self.lost + np.abs(two_sum_error(self.rest, error, rest))
        self.total, self.rest = total, rest


def long_sums(positive: F64, weights: F64, scales: F64) -> tuple[F64, F64]:
    """Two float64 numbers per place, such that rounding one, or the other, brackets the exact logit rounded.

    ``positive`` [count, H]: multiples of 2**-18 in 0..2**25; ``weights`` [count, H] and ``scales`` [count]: fp32
    numbers as float64, finite. Returns the ends of an interval that holds scale * sum(weight * positive), each rounded
    to odd: a further rounding to at most 51 bits is as if from the end itself (``numerics.rounding.odd_sum``). Where
    nothing was lost both are the exact value.

    Every product here is exact in float64: 24 bits of a weight or scale times 24 bits of the 43 a dot product has, or
    times 27 of the 53 of a float64; and magnitudes stay within 2**-320..2**290.
    """
    whole = positive * _UNIT
    low = whole % 2.0**24
    sums = _Expansion(np.zeros(scales.shape))
    for part in ((whole - low) / _UNIT, low / _UNIT):
        if part.any():
            for head in range(positive.shape[1]):
                sums.add(part[:, head] * weights[:, head])
    pieces = [piece * scales for number in (sums.total, sums.rest) for piece in _halves(number)]
    logit = _Expansion(pieces[0])
    for piece in pieces[1:]:
        logit.add(piece)
    # Adding +0 would make +0 of an exact -0.
    total = np.where(logit.rest == 0, logit.total, logit.total + logit.rest)
    rest = two_sum_error(logit.total, logit.rest, total)
    lost = (logit.lost + sums.lost * np.abs(scales)) * _SLACK
    ends = []
    for direction in (-1.0, 1.0):
        moved = np.where(lost > 0, np.nextafter(rest + direction * lost, direction * np.inf), rest)
        ends.append(np.where(moved == 0, total, odd_sum(total, moved, total + moved)))
    return ends[0], ends[1]


def _halves(number: F64) -> tuple[F64, F64]:
    """The upper 26 significant bits and the other 27, exactly."""
    upper = (number.view(np.int64) & np.int64(-(1 << 27))).view(np.float64)
    return upper, number - upper


def integer_logits(positive: F64, weights: F64, scales: F64, fmt: Format) -> NDArray[Any]:
    """The same logits, one at a time in Python integers, rounded once to ``fmt``. ``scales`` may be infinite."""
    found = [
        _integer_logit(dots, factors, scale, fmt)
        for dots, factors, scale in zip(positive.tolist(), weights.tolist(), scales.tolist(), strict=True)
    ]
    return np.array(found, np.uint32 if fmt.bits == 32 else np.uint16)


def _integer_logit(dots: list[float], weights: list[float], scale: float, fmt: Format) -> int:
    # In units of 2**-149 * 2**-18: every fp32 number is a multiple of 2**-149.
    total = sum(
        int(dot * _UNIT) * int(math.ldexp(weight, 149)) for dot, weight in zip(dots, weights, strict=True)
    )
    negative = (total < 0) != (math.copysign(1.0, scale) < 0)
    if math.isinf(scale):
        return fmt.inf(1 if negative else 0) if total else fmt.canonical_nan
    if total == 0 or scale == 0:
        return fmt.zero(1 if negative else 0)
    return fmt.encode(Fraction(total * int(math.ldexp(scale, 149)), 1 << (149 + 18 + 149)))
