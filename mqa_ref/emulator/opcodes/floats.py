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
from mqa_ref.emulator.decode import OPCODES
from mqa_ref.emulator.opcodes.arith import Function, elementwise
from mqa_ref.emulator.warp import LANES, Lanes


def halves(value: Lanes, part: type[Any]) -> Lanes:
    """The packed parts of each lane, low part first, as one flat array."""
    return np.ascontiguousarray(value).view(part)


def _packed(function: Function, part: type[Any], whole: type[Any]) -> Function:
    def run(*arguments: Lanes) -> Lanes:
        result = function(*[halves(a, part) for a in arguments])
        return np.ascontiguousarray(result, part).view(whole)

    return run


def _negate(width: int) -> Function:
    sign = (np.uint16 if width == 16 else np.uint32)(1 << (width - 1))
    return lambda a: a ^ sign


def _pack_f16(high: Lanes, low: Lanes) -> Lanes:
    out = np.empty((LANES, 2), np.uint16)
    out[:, 0] = numerics.cvt_f16_f32(low)
    out[:, 1] = numerics.cvt_f16_f32(high)
    return out.view(np.uint32)[:, 0]


def _register() -> None:
    binary32: dict[str, Function] = {"add": numerics.add_f32, "mul": numerics.mul_f32}
    rows: dict[str, tuple[int, tuple[int, ...], Function]] = {}
    for name, function in binary32.items():
        for suffix in ("f32", "rn.f32"):
            rows[f"{name}.{suffix}"] = (32, (32, 32), function)
        for suffix in ("f32x2", "rn.f32x2"):
            rows[f"{name}.{suffix}"] = (64, (64, 64), _packed(function, np.uint32, np.uint64))
    rows["sub.f32"] = rows["sub.rn.f32"] = (32, (32, 32), lambda a, b: numerics.add_f32(a, _negate(32)(b)))
    rows["fma.rn.f32"] = (32, (32, 32, 32), numerics.fma_f32)
    rows["fma.rn.f32x2"] = (64, (64, 64, 64), _packed(numerics.fma_f32, np.uint32, np.uint64))
    rows["max.f32"] = (32, (32, 32), numerics.max_f32)
    rows["abs.f32"] = (32, (32,), numerics.abs_f32)
    rows["neg.f32"] = (32, (32,), _negate(32))
    binary16: dict[str, Function] = {"add": numerics.add_f16, "mul": numerics.mul_f16}
    for name, function in binary16.items():
        for suffix in ("f16", "rn.f16"):
            rows[f"{name}.{suffix}"] = (16, (16, 16), function)
            rows[f"{name}.{suffix}x2"] = (32, (32, 32), _packed(function, np.uint16, np.uint32))
    rows["max.f16"] = (16, (16, 16), numerics.max_f16)
    rows["max.f16x2"] = (32, (32, 32), _packed(numerics.max_f16, np.uint16, np.uint32))
    rows["fma.rn.f16"] = (16, (16, 16, 16), numerics.fma_f16)
    rows["fma.rn.f16x2"] = (32, (32, 32, 32), _packed(numerics.fma_f16, np.uint16, np.uint32))
    rows["cvt.rn.f16.f32"] = (16, (32,), numerics.cvt_f16_f32)
    rows["cvt.rn.bf16.f32"] = (16, (32,), numerics.cvt_bf16_f32)
    rows["cvt.f32.f16"] = (32, (16,), numerics.cvt_f32_f16)
    rows["cvt.rn.f16x2.f32"] = (32, (32, 32), _pack_f16)
    for name, (result, widths, function) in rows.items():
        OPCODES[name] = elementwise(result, widths, function)


_register()
