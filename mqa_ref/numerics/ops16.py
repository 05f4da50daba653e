"""fp16 operations of the epilogues on arrays of bit patterns: uint16 in, uint16 out, broadcasting.

One lane of fma.rn.f16x2, add, mul and max.f16x2: one rounding to nearest even, subnormals kept, overflow to inf,
NaN made 0x7fff (the ISA leaves the payload open). Standing: doc (PTX ISA) and hw (an H200 agreed on 524,288 random
and crossed-special operand sets per operation). InputError when an operand is not uint16; NumPy's ValueError when
shapes do not broadcast. The slow twin of each function has the same name in ``scalar``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.numerics.arrays import U16, Operand16, as_u16

_NAN = np.uint16(0x7FFF)


def fma_f16(a: Operand16, b: Operand16, c: Operand16) -> U16:
    """fma.rn.f16: a*b + c with one rounding, computed in float64 and cast once.

    Proof that the two roundings act as one. The product p is exact in float64 (22 bits), p = 0 or c = 0 leaves
    nothing to round, and where p + c is exact there is one rounding. Let s = p + c be inexact and 2**e <= |s| <
    2**(e+1). If |s| >= 2**17, both ways overflow to inf. Else the lowest set bit of s is below 2**(e-52) < 2**-35,
    so it belongs to p (bits of c are 2**-24 and up), and p, having 22 bits, is smaller than 2**(e-30). Thus c is an
    fp16 number with |c| > 2**(e-1), and the nearest tie between fp16 numbers is at least 2**(e-13) away from c,
    farther than p and the error of the float64 sum together: both ways give c. (Through float32 it fails: 0x4c02 *
    0x01ff + 0xbd35.)
    """
    a, b, c = as_u16(a, "a"), as_u16(b, "b"), as_u16(c, "c")
    with np.errstate(all="ignore"):
        product = a.view(np.float16).astype(np.float64) * b.view(np.float16).astype(np.float64)
        return _canonical(np.asarray(product + c.view(np.float16).astype(np.float64)).astype(np.float16))


def add_f16(a: Operand16, b: Operand16) -> U16:
    """add.rn.f16 on uint16 codes, which NumPy computes in float32 and rounds once more.

    Proof that the two roundings act as one: a sum below 1 is a multiple of 2**-24 with at most 24 bits, so exact in
    float32; a larger one is a normal number of fp16, for which 24 >= 2*11 + 2 bits suffice (Figueroa, "When is
    double rounding innocuous?", SIGNUM 1995).
    """
    a, b = as_u16(a, "a"), as_u16(b, "b")
    with np.errstate(all="ignore"):
        return _canonical(np.asarray(a.view(np.float16) + b.view(np.float16)))


def mul_f16(a: Operand16, b: Operand16) -> U16:
    """mul.rn.f16 on uint16 codes. NumPy multiplies in float32, where the 22-bit product is exact
    (2**-48..2**32)."""
    a, b = as_u16(a, "a"), as_u16(b, "b")
    with np.errstate(all="ignore"):
        return _canonical(np.asarray(a.view(np.float16) * b.view(np.float16)))


def max_f16(a: Operand16, b: Operand16) -> U16:
    """max.f16 without .NaN on uint16 codes: a NaN yields the other operand, two NaN the canonical one; +0 is above
    -0."""
    a, b = as_u16(a, "a"), as_u16(b, "b")
    x, y = a.view(np.float16), b.view(np.float16)
    with np.errstate(all="ignore"):
        result = np.asarray(np.fmax(x, y))
        bits = result.view(np.uint16)
        equal = x == y
        if np.count_nonzero(equal):
            # Equal numbers have equal codes except +0 and -0, whose greater is +0: the bitwise and of the two.
            np.bitwise_and(a, b, out=bits, where=equal)
        unequal = result != result
        if np.count_nonzero(unequal):
            # Do not rely on NumPy's fmax to drop one signalling NaN: its float32 twin does so in some lanes only.
            np.copyto(bits, np.where(x == x, a, np.where(y == y, b, _NAN)), where=unequal)
    return bits


def _canonical(result: NDArray[np.floating[Any]]) -> U16:
    bits = result.view(np.uint16)
    unequal = result != result
    if np.count_nonzero(unequal):
        bits[unequal] = _NAN
    return bits
