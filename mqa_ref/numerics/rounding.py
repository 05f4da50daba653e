"""Sums of two float64 numbers that can still be rounded once: the error of a sum, and rounding to odd."""

from __future__ import annotations

import numpy as np

from mqa_ref.numerics.arrays import F64

_ONE = np.array(1, np.int64)
_SHIFT = np.array(63, np.int64)


def two_sum_error(x: F64, y: F64, total: F64) -> F64:
    """The exact error x + y - total of ``total`` = fl(x + y), all float64 and of one (broadcast) shape.

    Knuth's TwoSum, exact for finite numbers without overflow and without a condition on magnitudes (proof: Knuth,
    TAOCP vol. 2, 4.2.2, theorem B); NaN where ``total`` is not finite. Call it with floating-point warnings off.
    """
    part = total - x
    error: F64 = (x - (total - part)) + (y - part)
    return error


def odd_sum(x: F64, y: F64, total: F64) -> F64:
    """x + y rounded to odd: the exact sum where float64 holds it, else the neighbour whose last bit is set.

    ``total`` must be x + y as float64 rounds it. Rounding the result to nearest in a format with at least two bits
    fewer gives the exact sum rounded once (proof: Boldo & Melquiond, "Emulation of FMA and correctly rounded sums",
    IEEE TC 57(4), 2008). Where ``total`` is inexact the exact sum lies strictly between it and a neighbour: above
    it in magnitude when error and total have one sign, below it otherwise. Of the two the odd one is ``bits | 1``
    in the first case and ``(bits - 1) | 1`` in the second, whichever of them was even. inf, NaN and exact sums are
    returned as they are.
    """
    error = two_sum_error(x, y, total)
    bits = total.view(np.int64)
    # -1 where error and total differ in sign, else 0: an arithmetic shift copies the sign bit everywhere.
    odd = (bits + ((error.view(np.int64) ^ bits) >> _SHIFT)) | _ONE
    inexact = np.abs(error) > 0  # False for a NaN error
    return np.where(inexact, odd, bits).view(np.float64)
