"""Instructions that the kernels known so far do without but that other versions of them may compile to.

Source: PTX ISA, "setp", "max" and "min" (.NaN), "mul.hi", "div", "rem", "cvt". Standing: doc.
Comparisons without a trailing u are false when an operand is NaN, those with it are true. Division by zero gives all
bits set (what the hardware returns is unspecified in the ISA; such a result is never relied on here).
"""

from __future__ import annotations

import numpy as np

from mqa_ref import numerics
from mqa_ref.emulator.opcodes.arith import COMPARISONS, Function, Rows
from mqa_ref.emulator.opcodes.table import lanewise
from mqa_ref.emulator.warp import Lanes

_NAN32, _SIGN32 = np.uint32(0x7FFFFFFF), np.uint32(0x80000000)


def _is_nan(bits: Lanes) -> Lanes:
    found: Lanes = (bits & _NAN32) > np.uint32(0x7F800000)
    return found


def _float_comparison(name: str, *, unordered: bool) -> Function:
    compare = COMPARISONS[name]

    def run(a: Lanes, b: Lanes) -> Lanes:
        nan = _is_nan(a) | _is_nan(b)
        with np.errstate(invalid="ignore"):
            found: Lanes = compare(a.view(np.float32), b.view(np.float32))
        return found | nan if unordered else found & ~nan

    return run


def _minimum(a: Lanes, b: Lanes) -> Lanes:
    """min(a, b) = -max(-a, -b), signs of zeros included; a NaN gives way as in max."""
    found = numerics.max_f32(a ^ _SIGN32, b ^ _SIGN32)
    return np.where(_is_nan(found), found, found ^ _SIGN32)


def _with_nan(function: Function) -> Function:
    return lambda a, b: np.where(_is_nan(a) | _is_nan(b), _NAN32, function(a, b))


def _high(signed: bool) -> Function:
    kind = np.int32 if signed else np.uint32
    wide = np.int64 if signed else np.uint64
    shift = wide(32)
    return lambda a, b: ((a.view(kind).astype(wide) * b.view(kind).astype(wide)) >> shift).astype(np.uint32)


def _divide(signed: bool, *, remainder: bool) -> Function:
    def run(a: Lanes, b: Lanes) -> Lanes:
        kind = np.int32 if signed else np.uint32
        x, y = a.view(kind).astype(np.int64), b.view(kind).astype(np.int64)
        zero = y == 0
        safe = np.where(zero, 1, y)
        quotient = np.abs(x) // np.abs(safe) * np.sign(x) * np.sign(safe)
        found = x - quotient * safe if remainder else quotient
        return np.where(zero, -1, found).astype(np.uint32)

    return run


def _register() -> None:
    rows: Rows = []
    two = ("f32", "f32")
    for name in COMPARISONS:
        rows.append((f"setp.{name}.f32", "pred", two, _float_comparison(name, unordered=False)))
        rows.append((f"setp.{name}u.f32", "pred", two, _float_comparison(name, unordered=True)))
    rows.append(("setp.num.f32", "pred", two, lambda a, b: ~(_is_nan(a) | _is_nan(b))))
    rows.append(("setp.nan.f32", "pred", two, lambda a, b: _is_nan(a) | _is_nan(b)))
    rows.append(("min.f32", "f32", two, _minimum))
    rows.append(("max.NaN.f32", "f32", two, _with_nan(numerics.max_f32)))
    rows.append(("min.NaN.f32", "f32", two, _with_nan(_minimum)))
    for kind in ("s32", "u32"):
        signed, pair = kind == "s32", (kind, kind)
        rows.append((f"mul.hi.{kind}", kind, pair, _high(signed)))
        rows.append((f"div.{kind}", kind, pair, _divide(signed, remainder=False)))
        rows.append((f"rem.{kind}", kind, pair, _divide(signed, remainder=True)))
    rows.append(
        ("cvt.rn.f32.s32", "f32", ("s32",), lambda a: a.view(np.int32).astype(np.float32).view(np.uint32))
    )
    rows.append(("cvt.rn.f32.u32", "f32", ("u32",), lambda a: a.astype(np.float32).view(np.uint32)))
    lanewise(rows, section=_section, family=_family)


_SECTIONS = {
    "setp": "Comparison and Selection Instructions",
    "cvt": "Data Movement and Conversion Instructions: cvt",
}


def _section(name: str) -> str:
    other = "Floating-Point Instructions" if name.endswith("f32") else "Integer Arithmetic Instructions"
    return _SECTIONS.get(name.split(".")[0], other)


def _family(name: str) -> str:
    return "setp.cmp[u].f32" if name.startswith("setp.") else name


_register()
