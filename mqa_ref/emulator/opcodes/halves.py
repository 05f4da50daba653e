"""fp16 instructions beyond the kernels' own: differences, signs, minima; and copysign of fp32.

Source: PTX ISA, "Half Precision Floating-Point Instructions", "copysign". Every rounding is
``mqa_ref.numerics``'s. Standing: doc, and hw where recorded, as the canonical NaN of abs and neg is.
"""

from __future__ import annotations

import numpy as np

from mqa_ref import numerics
from mqa_ref.emulator.opcodes.arith import Function, Rows
from mqa_ref.emulator.opcodes.floats import packed
from mqa_ref.emulator.opcodes.table import lanewise
from mqa_ref.emulator.warp import Lanes

_NAN, _SIGN, _INFINITY = np.uint16(0x7FFF), np.uint16(0x8000), np.uint16(0x7C00)


def _missing(a: Lanes) -> Lanes:
    found: Lanes = (a & _NAN) > _INFINITY
    return found


def _subtract(a: Lanes, b: Lanes) -> Lanes:
    return numerics.add_f16(a, b ^ _SIGN)


def _negative(a: Lanes) -> Lanes:
    return np.where(_missing(a), _NAN, a ^ _SIGN)


def _magnitude(a: Lanes) -> Lanes:
    return np.where(_missing(a), _NAN, a & _NAN)


def _minimum(a: Lanes, b: Lanes) -> Lanes:
    """As for fp32: -max(-a, -b), and a NaN gives way."""
    found = numerics.max_f16(a ^ _SIGN, b ^ _SIGN)
    return np.where(_missing(found), found, found ^ _SIGN)


def _with_nan(function: Function) -> Function:
    return lambda a, b: np.where(_missing(a) | _missing(b), _NAN, function(a, b))


def _copy_sign(a: Lanes, b: Lanes) -> Lanes:
    """The sign of a on the magnitude of b."""
    joined: Lanes = a & np.uint32(0x80000000) | b & np.uint32(0x7FFFFFFF)
    return joined


def _register() -> None:
    singles: list[tuple[str, int, Function]] = [
        ("sub", 2, _subtract),
        ("sub.rn", 2, _subtract),
        ("neg", 1, _negative),
        ("abs", 1, _magnitude),
        ("min", 2, _minimum),
        ("min.NaN", 2, _with_nan(_minimum)),
        ("max.NaN", 2, _with_nan(numerics.max_f16)),
    ]
    rows: Rows = []
    for stem, count, function in singles:
        rows.append((f"{stem}.f16", "f16", ("f16",) * count, function))
        rows.append((f"{stem}.f16x2", "f16x2", ("f16x2",) * count, packed(function, np.uint16, np.uint32)))
    lanewise(rows, section="Half Precision Floating-Point Instructions")
    copied: Rows = [("copysign.f32", "f32", ("f32", "f32"), _copy_sign)]
    lanewise(copied, section="Floating-Point Instructions")


_register()
