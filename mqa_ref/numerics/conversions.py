"""Conversions between fp32, fp16 and bf16 on arrays of bit patterns.

cvt.rn without .satfinite: one rounding to nearest even, overflow to inf, subnormals kept, NaN made canonical.
Standing: doc (PTX ISA) and hw (an H200 agreed on 262,144 operands per conversion). InputError when the operand has
another dtype. The slow twin of each function has the same name in ``scalar``.
"""

from __future__ import annotations

import numpy as np

from mqa_ref.numerics.arrays import U16, U32, Operand16, Operand32, as_u16, as_u32

_NAN16 = np.uint16(0x7FFF)
_NAN32 = np.uint32(0x7FFFFFFF)
_MAGNITUDE = np.array(0x7FFFFFFF, np.uint32)
_INF = np.array(0x7F800000, np.uint32)
_HALF = np.array(0x7FFF, np.uint32)
_ONE = np.array(1, np.uint32)
_SIXTEEN = np.array(16, np.uint32)


def cvt_f16_f32(a: Operand32) -> U16:
    """cvt.rn.f16.f32: uint32 fp32 codes to uint16 fp16 codes of the same shape; inf from 65520 on."""
    value = as_u32(a, "a").view(np.float32)
    with np.errstate(all="ignore"):
        result = np.asarray(value.astype(np.float16))
        unequal = value != value
    bits = result.view(np.uint16)
    if np.count_nonzero(unequal):
        bits[unequal] = _NAN16
    return bits


def cvt_bf16_f32(a: Operand32) -> U16:
    """cvt.rn.bf16.f32: uint32 fp32 codes to uint16 bf16 codes of the same shape.

    bf16 is the upper half of fp32, so adding just under half a unit (exactly half where the kept part is odd) and
    dropping the lower half rounds to nearest even; a carry runs into the exponent and, from the largest finite
    number, into inf.
    """
    code = as_u32(a, "a")
    odd = (code >> _SIXTEEN) & _ONE
    bits = np.asarray(((code + _HALF + odd) >> _SIXTEEN).astype(np.uint16))
    nan = (code & _MAGNITUDE) > _INF
    if np.count_nonzero(nan):
        bits[nan] = _NAN16
    return bits


def cvt_f32_f16(a: Operand16) -> U32:
    """cvt.f32.f16: uint16 fp16 codes to uint32 fp32 codes of the same shape; exact."""
    value = as_u16(a, "a").view(np.float16)
    with np.errstate(all="ignore"):
        result = np.asarray(value.astype(np.float32))
        unequal = result != result
    bits = result.view(np.uint32)
    if np.count_nonzero(unequal):
        bits[unequal] = _NAN32
    return bits
