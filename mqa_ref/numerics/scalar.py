"""The slow and obvious twin: every operation on one bit pattern at a time, in exact rational arithmetic.

Codes are plain ints. Each function decodes, computes the exact ``Fraction`` and rounds once, so it is correctly
rounded by construction; what remains to state is the IEEE 754 part that a Fraction cannot hold (signed zeros,
infinities, NaN). Standing of the rules: doc (PTX ISA, floating-point instructions, no .ftz) and hw (an H200 agreed
bit for bit; every NaN it produced was the canonical one). The tensor-core step carries the standing of its machine,
see ``machines``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from mqa_ref.numerics.formats import BF16, E4M3FN, FP16, FP32, RNE, Format
from mqa_ref.numerics.listening import heard
from mqa_ref.numerics.machines import ACCUMULATORS, STEP_K, MachineModel

_E4M3 = [None if E4M3FN.is_nan(code) else (E4M3FN.value(code), E4M3FN.exponent(code)) for code in range(256)]
"""Value and exponent of each e4m3fn code, None for NaN."""


def _fma(fmt: Format, a: int, b: int, c: int) -> int:
    if fmt.is_nan(a) or fmt.is_nan(b) or fmt.is_nan(c):
        return fmt.canonical_nan
    product_sign = fmt.sign(a) ^ fmt.sign(b)
    if fmt.is_inf(a) or fmt.is_inf(b):
        if fmt.is_zero(a) or fmt.is_zero(b):
            return fmt.canonical_nan
        if fmt.is_inf(c) and fmt.sign(c) != product_sign:
            return fmt.canonical_nan
        return fmt.inf(product_sign)
    if fmt.is_inf(c):
        return c
    product = fmt.value(a) * fmt.value(b)
    total = product + fmt.value(c)
    if total == 0:
        both_negative = product == 0 and product_sign and fmt.sign(c)
        return fmt.zero(1 if both_negative else 0)
    return fmt.encode(total, RNE)


def _add(fmt: Format, a: int, b: int) -> int:
    if fmt.is_nan(a) or fmt.is_nan(b):
        return fmt.canonical_nan
    if fmt.is_inf(a):
        return fmt.canonical_nan if fmt.is_inf(b) and a != b else a
    if fmt.is_inf(b):
        return b
    total = fmt.value(a) + fmt.value(b)
    if total == 0:
        return fmt.zero(fmt.sign(a) & fmt.sign(b))
    return fmt.encode(total, RNE)


def _mul(fmt: Format, a: int, b: int) -> int:
    if fmt.is_nan(a) or fmt.is_nan(b):
        return fmt.canonical_nan
    sign = fmt.sign(a) ^ fmt.sign(b)
    if fmt.is_inf(a) or fmt.is_inf(b):
        return fmt.canonical_nan if fmt.is_zero(a) or fmt.is_zero(b) else fmt.inf(sign)
    product = fmt.value(a) * fmt.value(b)
    return fmt.zero(sign) if product == 0 else fmt.encode(product, RNE)


def _max(fmt: Format, a: int, b: int) -> int:
    if fmt.is_nan(a):
        return fmt.canonical_nan if fmt.is_nan(b) else b
    if fmt.is_nan(b):
        return a
    if fmt.is_zero(a) and fmt.is_zero(b):
        return fmt.zero(fmt.sign(a) & fmt.sign(b))
    return a if fmt.decode(a) >= fmt.decode(b) else b


def _convert(source: Format, target: Format, a: int) -> int:
    if source.is_nan(a):
        return target.canonical_nan
    if source.is_inf(a):
        return target.inf(source.sign(a))
    value = source.value(a)
    return target.zero(source.sign(a)) if value == 0 else target.encode(value, RNE)


@heard
def fma_f32(a: int, b: int, c: int) -> int:
    """fma.rn.f32: a*b + c with one rounding. An exact zero sum is +0 unless product and c are both -0."""
    return _fma(FP32, a, b, c)


@heard
def fma_f16(a: int, b: int, c: int) -> int:
    """fma.rn.f16 (one lane of fma.rn.f16x2): as fma_f32, on fp16 codes."""
    return _fma(FP16, a, b, c)


@heard
def add_f32(a: int, b: int) -> int:
    """add.rn.f32: inf + -inf is NaN; an exact zero sum is +0 unless both operands are -0."""
    return _add(FP32, a, b)


@heard
def add_f16(a: int, b: int) -> int:
    """add.rn.f16 (one lane of add.rn.f16x2): as add_f32, on fp16 codes."""
    return _add(FP16, a, b)


@heard
def mul_f32(a: int, b: int) -> int:
    """mul.rn.f32: 0 * inf is NaN; the sign of every other result is the xor of the signs."""
    return _mul(FP32, a, b)


@heard
def mul_f16(a: int, b: int) -> int:
    """mul.rn.f16 (one lane of mul.rn.f16x2): as mul_f32, on fp16 codes."""
    return _mul(FP16, a, b)


@heard
def abs_f32(a: int) -> int:
    """abs.f32: clears the sign; any NaN gives the canonical NaN (PTX leaves its payload open; hw)."""
    return FP32.canonical_nan if FP32.is_nan(a) else a & ~FP32.sign_mask


@heard
def max_f32(a: int, b: int) -> int:
    """max.f32 without .NaN: the other operand of a NaN, canonical NaN of two; +0 is above -0; subnormals kept."""
    return _max(FP32, a, b)


@heard
def max_nan_f32(a: int, b: int) -> int:
    """max.NaN.f32: the canonical NaN where either operand is NaN, else as max_f32 (PTX ISA, "max"; standing: doc)."""
    return FP32.canonical_nan if FP32.is_nan(a) or FP32.is_nan(b) else _max(FP32, a, b)


@heard
def max_f16(a: int, b: int) -> int:
    """max.f16 without .NaN (one lane of max.f16x2): as max_f32, on fp16 codes."""
    return _max(FP16, a, b)


@heard
def cvt_f16_f32(a: int) -> int:
    """cvt.rn.f16.f32 without .satfinite: fp32 code to fp16 code, overflow to inf from 65520 on."""
    return _convert(FP32, FP16, a)


@heard
def cvt_bf16_f32(a: int) -> int:
    """cvt.rn.bf16.f32 without .satfinite: fp32 code to bf16 code, overflow to inf."""
    return _convert(FP32, BF16, a)


@heard
def cvt_f32_f16(a: int) -> int:
    """cvt.f32.f16: fp16 code to fp32 code, exact."""
    return _convert(FP16, FP32, a)


@heard
def mma_step(a: Sequence[int], b: Sequence[int], c: int, *, machine: MachineModel, acc: str) -> int:
    """One tensor-core instruction for one output element: 32 products and the accumulator.

    ``a``, ``b``: e4m3fn codes, equally long (32; the "exact" machine takes any length). ``c``: accumulator code of
    format ``acc`` ("fp32" or "fp16"), 0 when not accumulating. Returns a code of the same format. Rules and
    standing: ``machines``.
    """
    fmt = ACCUMULATORS[acc]
    if len(a) != len(b) or (machine.fraction_bits is not None and len(a) != STEP_K):
        raise ValueError(f"a step takes {STEP_K} code pairs, got {len(a)} and {len(b)}")
    factors = [(_E4M3[x], _E4M3[y]) for x, y in zip(a, b, strict=True)]
    if fmt.is_nan(c) or any(x is None or y is None for x, y in factors):
        return fmt.canonical_nan
    if fmt.is_inf(c):
        return c
    terms = [(x[0] * y[0], x[1] + y[1]) for x, y in factors if x is not None and y is not None]
    terms.append((fmt.value(c), fmt.exponent(c)))
    terms = [(value, exponent) for value, exponent in terms if value != 0]
    if machine.fraction_bits is None:
        total = sum((value for value, _ in terms), Fraction(0))
    else:
        largest = max((exponent for _, exponent in terms), default=0)
        unit = Fraction(2) ** (largest - machine.fraction_bits)
        total = sum(math.trunc(value / unit) for value, _ in terms) * unit
    code = machine.final(acc).encode(total)
    return 0 if fmt.is_zero(code) else code


def mma(a: Sequence[int], b: Sequence[int], c: int = 0, *, machine: MachineModel, acc: str) -> int:
    """The dot product of two rows of e4m3fn codes as a chain of K = 32 steps ("exact": one sum over all K, one
    rounding)."""
    if machine.fraction_bits is None:
        return mma_step(a, b, c, machine=machine, acc=acc)
    for start in range(0, len(a), STEP_K):
        c = mma_step(a[start : start + STEP_K], b[start : start + STEP_K], c, machine=machine, acc=acc)
    return c
