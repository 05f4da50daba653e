"""Instructions that the kernels known so far do without but that other versions of them may compile to.

Source: PTX ISA, "setp", "max" and "min" (.NaN), "mul.hi", "div", "rem", "prmt", "lop3", "shf", "popc", "cvt".
Standing: doc.
Comparisons without a trailing u are false when an operand is NaN, those with it are true. Division by zero gives all
bits set (what the hardware returns is unspecified in the ISA; such a result is never relied on here).
"""

from __future__ import annotations

import numpy as np

from mqa_ref import numerics
from mqa_ref.emulator.decode import OPCODES, Decoder, Operation, opcode
from mqa_ref.emulator.opcodes.arith import COMPARISONS, Function, elementwise, value
from mqa_ref.emulator.ptx import Imm, Instruction
from mqa_ref.emulator.warp import Lanes, Warp

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


def _funnel(left: bool) -> Function:
    """shf.wrap: shift the 64 bits b:a by c mod 32; the upper word for .l, the lower for .r."""

    def run(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        both = a.astype(np.uint64) | b.astype(np.uint64) << np.uint64(32)
        by = (c & np.uint32(31)).astype(np.uint64)
        moved = (both << by) >> np.uint64(32) if left else both >> by
        return (moved & np.uint64(0xFFFFFFFF)).astype(np.uint32)

    return run


def _permute(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """prmt.b32: each nibble of c picks one of the eight bytes of b:a; its top bit spreads that byte's sign."""
    both = a.astype(np.uint64) | b.astype(np.uint64) << np.uint64(32)
    out = np.zeros(a.shape, np.uint32)
    for place in range(4):
        nibble = (c >> np.uint32(4 * place)) & np.uint32(15)
        byte = ((both >> ((nibble & np.uint32(7)).astype(np.uint64) * np.uint64(8))) & np.uint64(255)).astype(
            np.uint32
        )
        sign = np.where(byte & np.uint32(128), np.uint32(255), np.uint32(0))
        out |= np.where(nibble & np.uint32(8), sign, byte) << np.uint32(8 * place)
    return out


def _ones(a: Lanes) -> Lanes:
    octets = np.unpackbits(np.ascontiguousarray(a).view(np.uint8).reshape(-1, 4), axis=1)
    count: Lanes = octets.sum(axis=1).astype(np.uint32)
    return count


@opcode("lop3.b32")
def _lop3(decoder: Decoder, instruction: Instruction) -> Operation:
    d, *sources, table = instruction.operands
    if len(sources) != 3 or not isinstance(table, Imm):
        raise decoder.fail(instruction, "expected d, a, b, c and a constant table")
    target = decoder.dst(instruction, d, 32)
    slots = [decoder.src(instruction, source, 32) for source in sources]
    bits = table.value

    def run(warp: Warp) -> None:
        a, b, c = (value(warp, slot, instruction) for slot in slots)
        out = np.zeros(a.shape, np.uint32)
        for row in range(8):
            if bits >> row & 1:
                out |= (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
        warp.put(target, out)

    return run


def _register() -> None:
    rows: dict[str, tuple[int, tuple[int, ...], Function]] = {}
    for name in COMPARISONS:
        rows[f"setp.{name}.f32"] = (1, (32, 32), _float_comparison(name, unordered=False))
        rows[f"setp.{name}u.f32"] = (1, (32, 32), _float_comparison(name, unordered=True))
    rows["setp.num.f32"] = (1, (32, 32), lambda a, b: ~(_is_nan(a) | _is_nan(b)))
    rows["setp.nan.f32"] = (1, (32, 32), lambda a, b: _is_nan(a) | _is_nan(b))
    rows["min.f32"] = (32, (32, 32), _minimum)
    rows["max.NaN.f32"] = (32, (32, 32), _with_nan(numerics.max_f32))
    rows["min.NaN.f32"] = (32, (32, 32), _with_nan(_minimum))
    for sign in "su":
        rows[f"mul.hi.{sign}32"] = (32, (32, 32), _high(sign == "s"))
        rows[f"div.{sign}32"] = (32, (32, 32), _divide(sign == "s", remainder=False))
        rows[f"rem.{sign}32"] = (32, (32, 32), _divide(sign == "s", remainder=True))
    rows["shf.l.wrap.b32"] = (32, (32, 32, 32), _funnel(left=True))
    rows["shf.r.wrap.b32"] = (32, (32, 32, 32), _funnel(left=False))
    rows["prmt.b32"] = (32, (32, 32, 32), _permute)
    rows["popc.b32"] = (32, (32,), _ones)
    rows["cvt.rn.f32.s32"] = (32, (32,), lambda a: a.view(np.int32).astype(np.float32).view(np.uint32))
    rows["cvt.rn.f32.u32"] = (32, (32,), lambda a: a.astype(np.float32).view(np.uint32))
    for name, row in rows.items():
        OPCODES[name] = elementwise(*row)


_register()
