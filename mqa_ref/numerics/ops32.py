"""fp32 operations of the epilogues on arrays of bit patterns: uint32 in, uint32 out, broadcasting.

All round to nearest even, keep subnormals (no .ftz) and return the canonical NaN 0x7fffffff. Standing: doc (PTX
ISA) and hw (an H200 agreed on 262,144 random and crossed-special operand sets per operation). fma.rn.f32x2 and
add.rn.f32x2 of sm_100 are these operations lane by lane (doc). InputError when an operand is not uint32; NumPy's
ValueError when shapes do not broadcast. The slow twin of each function has the same name in ``scalar``.
"""

from __future__ import annotations

import numpy as np

from mqa_ref.numerics.arrays import F64, U32, Operand32, as_u32
from mqa_ref.numerics.rounding import odd_sum

_NAN = np.uint32(0x7FFFFFFF)
_MAGNITUDE = np.array(0x7FFFFFFF, np.uint32)
_INF = np.array(0x7F800000, np.uint32)
_LOW29 = np.array((1 << 29) - 1, np.int64)
_TIE = np.array(1 << 28, np.int64)
_MIN_NORMAL = np.array(2.0**-126)


def fma_f32(a: Operand32, b: Operand32, c: Operand32) -> U32:
    """fma.rn.f32: a*b + c with one rounding; any broadcastable shapes of uint32 codes.

    Proof. The float64 product p of two fp32 numbers is exact (48 significant bits, exponents -298..256), and s = p
    + c is the exact sum rounded once to float64, an exact zero keeping the sign IEEE 754 gives it. Casting s to
    fp32 is wrong only where s is a tie of fp32 and the exact sum is not. For |s| >= 2**-126 a tie has exactly the
    bits 1 0...0 in the 29 fraction bits that fp32 lacks, so where no element has them, and none is a nonzero below
    2**-126, the cast is right. Otherwise s is replaced by the exact sum rounded to odd, which has at least two bits
    more than the fp32 result, subnormal or not; a cast of it to nearest is then the exact sum rounded once (see
    ``rounding.odd_sum``).
    """
    a, b, c = as_u32(a, "a"), as_u32(b, "b"), as_u32(c, "c")
    with np.errstate(all="ignore"):
        product = a.view(np.float32).astype(np.float64) * b.view(np.float32).astype(np.float64)
        addend = c.view(np.float32).astype(np.float64)
        total = np.asarray(product + addend)
        if not _cast_is_right(total):
            total = odd_sum(product, addend, total)
        result = total.astype(np.float32)
        bits = result.view(np.uint32)
        unequal = result != result
        if np.count_nonzero(unequal):
            bits[unequal] = _NAN
    return bits


def _cast_is_right(total: F64) -> bool:
    """Whether no element is near enough to a tie, or small enough, for the cast to fp32 to need the exact sum."""
    if np.count_nonzero((total.view(np.int64) & _LOW29) == _TIE):
        return False
    magnitude = np.abs(total)
    small_or_nan = total.size - np.count_nonzero(magnitude >= _MIN_NORMAL)
    if small_or_nan == 0:
        return True
    zeros = total.size - np.count_nonzero(total)
    return bool(small_or_nan == zeros + np.count_nonzero(magnitude != magnitude))


def add_f32(a: Operand32, b: Operand32) -> U32:
    """add.rn.f32 on uint32 codes: the IEEE 754 sum the CPU computes, with NaN made canonical."""
    a, b = as_u32(a, "a"), as_u32(b, "b")
    with np.errstate(all="ignore"):
        return _canonical(np.asarray(a.view(np.float32) + b.view(np.float32)))


def mul_f32(a: Operand32, b: Operand32) -> U32:
    """mul.rn.f32 on uint32 codes: the IEEE 754 product the CPU computes, with NaN made canonical."""
    a, b = as_u32(a, "a"), as_u32(b, "b")
    with np.errstate(all="ignore"):
        return _canonical(np.asarray(a.view(np.float32) * b.view(np.float32)))


def abs_f32(a: Operand32) -> U32:
    """abs.f32 on uint32 codes: clears the sign, keeps subnormals; any NaN gives 0x7fffffff (hw; the ISA leaves it
    open)."""
    magnitude = np.asarray(as_u32(a, "a") & _MAGNITUDE)
    nan = magnitude > _INF
    if np.count_nonzero(nan):
        magnitude[nan] = _NAN
    return magnitude


def max_f32(a: Operand32, b: Operand32) -> U32:
    """max.f32 without .NaN on uint32 codes: a NaN yields the other operand, two NaN the canonical one; +0 is above
    -0."""
    a, b = as_u32(a, "a"), as_u32(b, "b")
    x, y = a.view(np.float32), b.view(np.float32)
    with np.errstate(all="ignore"):
        result = np.asarray(np.fmax(x, y))
        bits = result.view(np.uint32)
        equal = x == y
        if np.count_nonzero(equal):
            # Equal numbers have equal codes except +0 and -0, whose greater is +0: the bitwise and of the two.
            np.bitwise_and(a, b, out=bits, where=equal)
        unequal = result != result
        if np.count_nonzero(unequal):
            # NumPy's fmax keeps one NaN when it is signalling, in some lanes only.
            np.copyto(bits, np.where(x == x, a, np.where(y == y, b, _NAN)), where=unequal)
    return bits


def max_nan_f32(a: Operand32, b: Operand32) -> U32:
    """max.NaN.f32 on uint32 codes: as max_f32, but a NaN on either side yields the canonical NaN (PTX ISA, "max";
    standing: doc)."""
    a, b = as_u32(a, "a"), as_u32(b, "b")
    nan = ((a & _MAGNITUDE) > _INF) | ((b & _MAGNITUDE) > _INF)
    return np.where(nan, _NAN, max_f32(a, b))


def _canonical(result: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> U32:
    bits = result.view(np.uint32)
    unequal = result != result
    if np.count_nonzero(unequal):
        bits[unequal] = _NAN
    return bits
