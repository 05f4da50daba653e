"""Instructions that take the bits of a register apart: shifts of two registers, permutations, fields, counts.

Source: PTX ISA, "shf", "prmt", "lop3", "bfe", "bfi", "popc", "clz", "brev". Standing: doc.
"""

from __future__ import annotations

import numpy as np

from mqa_ref.emulator.decode import Decoder, Operation
from mqa_ref.emulator.opcodes.arith import Function, Rows, value
from mqa_ref.emulator.opcodes.table import lanewise, opcode
from mqa_ref.emulator.ptx import Imm, Instruction
from mqa_ref.emulator.warp import Lanes, Warp

_LOGIC, _INTEGER = "Logic and Shift Instructions", "Integer Arithmetic Instructions"
_MOVES = "Data Movement and Conversion Instructions: prmt"


def _funnel(*, left: bool, clamp: bool) -> Function:
    """Shift the 64 bits b:a by c, mod 32 (.wrap) or at most 32 (.clamp); the upper word for .l, the lower for .r."""

    def run(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        both = a.astype(np.uint64) | b.astype(np.uint64) << np.uint64(32)
        by = (np.minimum(c, np.uint32(32)) if clamp else c & np.uint32(31)).astype(np.uint64)
        moved = (both << by) >> np.uint64(32) if left else both >> by
        return (moved & np.uint64(0xFFFFFFFF)).astype(np.uint32)

    return run


def permute(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
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
    octets = np.unpackbits(np.ascontiguousarray(a).view(np.uint8).reshape(-1, a.dtype.itemsize), axis=1)
    count: Lanes = octets.sum(axis=1).astype(np.uint32)
    return count


def _leading_zeros(a: Lanes) -> Lanes:
    found = np.zeros(a.shape, np.uint32)
    width = a.dtype.itemsize * 8
    seen = np.zeros(a.shape, np.bool_)
    for place in reversed(range(width)):
        seen |= (a >> a.dtype.type(place) & a.dtype.type(1)).astype(np.bool_)
        found += ~seen
    return found


def _reverse(a: Lanes) -> Lanes:
    octets = np.unpackbits(
        np.ascontiguousarray(a).view(np.uint8).reshape(len(a), -1), axis=1, bitorder="little"
    )
    turned: Lanes = np.packbits(octets[:, ::-1], axis=1, bitorder="little").view(a.dtype)[:, 0]
    return turned


def _mask(length: Lanes, width: int, kind: type[np.unsignedinteger]) -> Lanes:
    """The lowest ``length`` bits; all of them from the width on."""
    within = np.minimum(length, width - 1).astype(kind)
    return np.where(length >= width, ~kind(0), (kind(1) << within) - kind(1))


def _extract(width: int, *, signed: bool) -> Function:
    """Bits from position b on, c of them (both taken mod 256); what lies past the top is a copy of the sign bit of the
    field for .s, zero for .u.
    """
    kind: type[np.unsignedinteger] = np.uint32 if width == 32 else np.uint64

    def run(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        at, length = b & np.uint32(255), c & np.uint32(255)
        moved = np.where(at < width, a >> np.minimum(at, width - 1).astype(kind), kind(0))
        field = moved & _mask(length, width, kind)
        if not signed:
            return field
        top = np.minimum(at + length - np.uint32(1), np.uint32(width - 1)).astype(kind)
        negative = (length > 0) & (a >> top & kind(1)).astype(np.bool_)
        have = np.minimum(length, np.where(at < width, width - at, 0).astype(np.uint32))
        return np.where(negative, field | ~_mask(have, width, kind), field)

    return run


def _insert(width: int) -> Function:
    """The lowest d bits of a into b from position c on (both taken mod 256); what passes the top is lost."""
    kind: type[np.unsignedinteger] = np.uint32 if width == 32 else np.uint64

    def run(a: Lanes, b: Lanes, c: Lanes, d: Lanes) -> Lanes:
        at, length = c & np.uint32(255), d & np.uint32(255)
        by = np.minimum(at, width - 1).astype(kind)
        mask = np.where(at < width, _mask(length, width, kind) << by, kind(0))
        joined: Lanes = (b & ~mask) | (a << by & mask)
        return joined

    return run


@opcode("lop3.b32", result="b32", sources=("b32", "b32", "b32", "constant"), section=_LOGIC)
def _lop3(decoder: Decoder, instruction: Instruction) -> Operation:
    d, *sources, table = instruction.operands
    if len(sources) != 3 or not isinstance(table, Imm):
        raise decoder.fail(instruction, "expected d, a, b, c and a constant table")
    target = decoder.dst(instruction, d, "b32")
    slots = [decoder.src(instruction, source, "b32") for source in sources]
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
    three = ("b32", "b32", "u32")
    shifts: Rows = [
        (f"shf.{side}.{mode}.b32", "b32", three, _funnel(left=side == "l", clamp=mode == "clamp"))
        for side in "lr"
        for mode in ("wrap", "clamp")
    ]
    lanewise(shifts, section=_LOGIC, family=lambda name: "shf.side.mode.b32")
    lanewise([("prmt.b32", "b32", ("b32", "b32", "b32"), permute)], section=_MOVES)
    counts: Rows = []
    for width in (32, 64):
        kind = f"b{width}"
        counts += [(f"popc.{kind}", "u32", (kind,), _ones), (f"clz.{kind}", "u32", (kind,), _leading_zeros)]
        counts.append((f"brev.{kind}", kind, (kind,), _reverse))
        counts.append((f"bfi.{kind}", kind, (kind, kind, "u32", "u32"), _insert(width)))
        for sign in "us":
            typed = f"{sign}{width}"
            counts.append((f"bfe.{typed}", typed, (typed, "u32", "u32"), _extract(width, signed=sign == "s")))
    lanewise(counts, section=_INTEGER, family=lambda name: f"{name.split('.')[0]}.type")


_register()
