"""Scalar twins of the floating-point instructions: ``mqa_ref.numerics.scalar`` where it has one, which rounds exact
fractions once, and what follows from it.
"""

from __future__ import annotations

from collections.abc import Callable

from mqa_ref.numerics import scalar
from mqa_ref.numerics.formats import FP16, FP32, Format

Twin = Callable[..., int]


def _minimum(form: Format, maximum: Twin) -> Twin:
    sign = form.zero(1)

    def run(a: int, b: int) -> int:
        found = maximum(a ^ sign, b ^ sign)
        return found if form.is_nan(found) else found ^ sign

    return run


def _with_nan(form: Format, function: Twin) -> Twin:
    return lambda *given: form.canonical_nan if any(map(form.is_nan, given)) else function(*given)


def _packed(function: Twin, width: int) -> Twin:
    """Two numbers in one register, the lower half first."""
    mask = (1 << width) - 1
    return lambda *given: (
        function(*[v & mask for v in given]) | function(*[v >> width for v in given]) << width
    )


def _floats() -> dict[str, Twin]:
    found: dict[str, Twin] = {
        "sub.f32": lambda a, b: scalar.add_f32(a, b ^ 0x80000000),
        "neg.f32": _with_nan(FP32, lambda a: a ^ 0x80000000),
        "min.f32": _minimum(FP32, scalar.max_f32),
        "min.NaN.f32": _with_nan(FP32, _minimum(FP32, scalar.max_f32)),
        "copysign.f32": lambda a, b: a & 0x80000000 | b & 0x7FFFFFFF,
        "max.NaN.f32": scalar.max_nan_f32,
        "max.f32": scalar.max_f32,
        "abs.f32": scalar.abs_f32,
        "max.f16": scalar.max_f16,
        "max.f16x2": _packed(scalar.max_f16, 16),
        "cvt.rn.f16.f32": scalar.cvt_f16_f32,
        "cvt.rn.bf16.f32": scalar.cvt_bf16_f32,
        "cvt.f32.f16": scalar.cvt_f32_f16,
        "cvt.rn.f16x2.f32": lambda a, b: scalar.cvt_f16_f32(a) << 16 | scalar.cvt_f16_f32(b),
    }
    for base, single, half in (
        ("add", scalar.add_f32, scalar.add_f16),
        ("mul", scalar.mul_f32, scalar.mul_f16),
        ("fma", scalar.fma_f32, scalar.fma_f16),
    ):
        twins: dict[str, Twin] = {"f32": single, "f16": half}
        twins |= {"f32x2": _packed(single, 32), "f16x2": _packed(half, 16)}
        found |= {f"{base}{rounding}.{kind}": one for kind, one in twins.items() for rounding in ("", ".rn")}
    found["sub.rn.f32"] = found["sub.f32"]
    sign = FP16.zero(1)
    halves: dict[str, Twin] = {
        "sub": lambda a, b: scalar.add_f16(a, b ^ sign),
        "sub.rn": lambda a, b: scalar.add_f16(a, b ^ sign),
        "neg": _with_nan(FP16, lambda a: a ^ sign),
        "abs": _with_nan(FP16, lambda a: a & ~sign),
        "min": _minimum(FP16, scalar.max_f16),
        "min.NaN": _with_nan(FP16, _minimum(FP16, scalar.max_f16)),
        "max.NaN": _with_nan(FP16, scalar.max_f16),
    }
    for stem, one in halves.items():
        found |= {f"{stem}.f16": one, f"{stem}.f16x2": _packed(one, 16)}
    return found


FLOATS = _floats()
