"""Instructions that the kernels known so far do without but that other versions of them may compile to.

Source: PTX ISA, "setp", "max" and "min" (.NaN). Standing: doc.
Comparisons without a trailing u are false when an operand is NaN, those with it are true.
"""

from __future__ import annotations

import numpy as np

from mqa_ref import numerics
from mqa_ref.emulator.opcodes.arith import COMPARISONS, Function, Rows
from mqa_ref.emulator.opcodes.table import lanewise
from mqa_ref.emulator.warp import Lanes

_NAN32, _SIGN32 = np.uint32(0x7FFFFFFF), np.uint32(0x80000000)


def is_nan(bits: Lanes) -> Lanes:
    """Which fp32 patterns are NaN."""
    found: Lanes = (bits & _NAN32) > np.uint32(0x7F800000)
    return found


def float_comparison(name: str, *, unordered: bool) -> Function:
    """A comparison of fp32 patterns; with a NaN it holds if ``unordered``."""
    compare = COMPARISONS[name]

    def run(a: Lanes, b: Lanes) -> Lanes:
        nan = is_nan(a) | is_nan(b)
        with np.errstate(invalid="ignore"):
            found: Lanes = compare(a.view(np.float32), b.view(np.float32))
        return found | nan if unordered else found & ~nan

    return run


def _minimum(a: Lanes, b: Lanes) -> Lanes:
    """min(a, b) = -max(-a, -b), signs of zeros included; a NaN gives way as in max."""
    found = numerics.max_f32(a ^ _SIGN32, b ^ _SIGN32)
    return np.where(is_nan(found), found, found ^ _SIGN32)


def _with_nan(function: Function) -> Function:
    return lambda a, b: np.where(is_nan(a) | is_nan(b), _NAN32, function(a, b))


def _register() -> None:
    rows: Rows = []
    two = ("f32", "f32")
    for name in COMPARISONS:
        rows.append((f"setp.{name}.f32", "pred", two, float_comparison(name, unordered=False)))
        rows.append((f"setp.{name}u.f32", "pred", two, float_comparison(name, unordered=True)))
    rows.append(("setp.num.f32", "pred", two, lambda a, b: ~(is_nan(a) | is_nan(b))))
    rows.append(("setp.nan.f32", "pred", two, lambda a, b: is_nan(a) | is_nan(b)))
    rows.append(("min.f32", "f32", two, _minimum))
    rows.append(("max.NaN.f32", "f32", two, _with_nan(numerics.max_f32)))
    rows.append(("min.NaN.f32", "f32", two, _with_nan(_minimum)))
    lanewise(rows, section=_section, family=_family)


def _section(name: str) -> str:
    compares = name.startswith("setp.")
    return "Comparison and Selection Instructions" if compares else "Floating-Point Instructions"


def _family(name: str) -> str:
    return "setp.cmp[u].f32" if name.startswith("setp.") else name


_register()
