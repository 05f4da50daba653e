"""Floating-point instructions: every result comes from ``mqa_ref.numerics``, never from a second copy of the
arithmetic.

Source: PTX ISA, "Floating Point Instructions", "Half Precision Floating Point Instructions", "cvt". An add or
mul without a rounding modifier rounds to nearest even, but the assembler may contract it into an fma;
``contraction`` looks for such pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mqa_ref import numerics
from mqa_ref.emulator.opcodes.arith import Function, Rows
from mqa_ref.emulator.opcodes.table import lanewise
from mqa_ref.emulator.warp import LANES, Lanes


def halves(value: Lanes, part: type[Any]) -> Lanes:
    """The packed parts of each lane, low part first, as one flat array."""
    return np.ascontiguousarray(value).view(part)


def packed(function: Function, part: type[Any], whole: type[Any]) -> Function:
    """Apply a function to the parts of each register."""

    def run(*arguments: Lanes) -> Lanes:
        result = function(*[halves(a, part) for a in arguments])
        return np.ascontiguousarray(result, part).view(whole)

    return run


def _negate(width: int) -> Function:
    sign = (np.uint16 if width == 16 else np.uint32)(1 << (width - 1))
    return lambda a: a ^ sign


def _negative(a: Lanes) -> Lanes:
    """neg.f32: any NaN gives the canonical one (PTX leaves its payload open; hw)."""
    nan = (a & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    return np.where(nan, np.uint32(0x7FFFFFFF), a ^ np.uint32(0x80000000))


def _pack_f16(high: Lanes, low: Lanes) -> Lanes:
    out = np.empty((LANES, 2), np.uint16)
    out[:, 0] = numerics.cvt_f16_f32(low)
    out[:, 1] = numerics.cvt_f16_f32(high)
    return out.view(np.uint32)[:, 0]


def _register() -> None:
    rows: Rows = []
    for name, single, half in (
        ("add", numerics.add_f32, numerics.add_f16),
        ("mul", numerics.mul_f32, numerics.mul_f16),
    ):
        for rounding in ("", "rn."):
            kinds: tuple[tuple[str, Function], ...] = (
                ("f32", single),
                ("f32x2", packed(single, np.uint32, np.uint64)),
                ("f16", half),
                ("f16x2", packed(half, np.uint16, np.uint32)),
            )
            rows += [(f"{name}.{rounding}{kind}", kind, (kind, kind), function) for kind, function in kinds]
    for rounding in ("", "rn."):
        rows.append(
            (f"sub.{rounding}f32", "f32", ("f32", "f32"), lambda a, b: numerics.add_f32(a, _negate(32)(b)))
        )
    rows.append(("fma.rn.f32", "f32", ("f32",) * 3, numerics.fma_f32))
    rows.append(("fma.rn.f32x2", "f32x2", ("f32x2",) * 3, packed(numerics.fma_f32, np.uint32, np.uint64)))
    rows.append(("fma.rn.f16", "f16", ("f16",) * 3, numerics.fma_f16))
    rows.append(("fma.rn.f16x2", "f16x2", ("f16x2",) * 3, packed(numerics.fma_f16, np.uint16, np.uint32)))
    rows.append(("max.f32", "f32", ("f32", "f32"), numerics.max_f32))
    rows.append(("max.f16", "f16", ("f16", "f16"), numerics.max_f16))
    rows.append(("max.f16x2", "f16x2", ("f16x2", "f16x2"), packed(numerics.max_f16, np.uint16, np.uint32)))
    rows += [("abs.f32", "f32", ("f32",), numerics.abs_f32), ("neg.f32", "f32", ("f32",), _negative)]
    rows.append(("cvt.rn.f16.f32", "f16", ("f32",), numerics.cvt_f16_f32))
    rows.append(("cvt.rn.bf16.f32", "b16", ("f32",), numerics.cvt_bf16_f32))
    rows.append(("cvt.f32.f16", "f32", ("f16",), numerics.cvt_f32_f16))
    rows.append(("cvt.rn.f16x2.f32", "f16x2", ("f32", "f32"), _pack_f16))
    lanewise(rows, section=_section, family=_family)


def _section(name: str) -> str:
    if name.startswith("cvt."):
        return "Data Movement and Conversion Instructions: cvt"
    return "Half Precision Floating-Point Instructions" if ".f16" in name else "Floating-Point Instructions"


def _family(name: str) -> str:
    base, *modifiers = name.split(".")
    return f"{base}[.rn].{modifiers[-1]}" if base in ("add", "mul", "sub") else name


_register()
