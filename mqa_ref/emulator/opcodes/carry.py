"""Integer arithmetic of extended precision: sums, differences and products that leave and take a carry.

Source: PTX ISA, "Extended-Precision Integer Arithmetic Instructions". The carry of each lane is kept in a register that
no program can name; it is 0 before anything has set it, where the ISA leaves it open. Standing: doc, and hw.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mqa_ref.emulator.decode import WIDTH_TYPES, Builder, Decoder, Operation
from mqa_ref.emulator.opcodes.arith import value
from mqa_ref.emulator.opcodes.integers import high
from mqa_ref.emulator.opcodes.table import Row, add
from mqa_ref.emulator.ptx import Instruction
from mqa_ref.emulator.warp import Lanes, Warp

CARRY = "carry"
"""The special register: 0 or 1 in each lane."""
_SECTION = "Extended-Precision Integer Arithmetic Instructions"
Step = Callable[..., tuple[Lanes, Lanes]]


def _sum(a: Lanes, b: Lanes, carry: Lanes) -> tuple[Lanes, Lanes]:
    """a + b + carry, and the carry out of it."""
    partial = a + b
    total = partial + carry
    return total, (partial < a) | (total < partial)


def _difference(a: Lanes, b: Lanes, borrow: Lanes) -> tuple[Lanes, Lanes]:
    """a - b - borrow, and the borrow out of it."""
    partial = a - b
    total = partial - borrow
    return total, (a < b) | (partial < borrow)


def _product(width: int, part: str, *, signed: bool) -> Step:
    upper = high(width, signed=signed)

    def run(a: Lanes, b: Lanes, c: Lanes, carry: Lanes) -> tuple[Lanes, Lanes]:
        return _sum(upper(a, b) if part == "hi" else a * b, c, carry)

    return run


def _build(kind: str, sources: int, step: Step, *, takes: bool, leaves: bool) -> Builder:
    width = int(kind[1:])

    def build(decoder: Decoder, instruction: Instruction) -> Operation:
        d, *operands = instruction.operands
        if len(operands) != sources:
            raise decoder.fail(instruction, f"expected {1 + sources} operands")
        target = decoder.dst(instruction, d, kind)
        slots = [decoder.src(instruction, operand, kind) for operand in operands]
        place = decoder.special(CARRY)

        def run(warp: Warp) -> None:
            before = value(warp, place, instruction).astype(WIDTH_TYPES[width])
            given = [value(warp, slot, instruction) for slot in slots]
            result, carry = step(*given, before if takes else np.zeros_like(before))
            warp.put(target, result)
            if leaves:
                warp.put(place, carry.astype(np.uint32))

        return run

    return build


def _row(stem: str, kind: str, sources: int, step: Step, *, takes: bool, leaves: bool) -> None:
    name = f"{stem}.cc.{kind}" if leaves else f"{stem}.{kind}"
    family = f"{stem}.cc.type" if leaves and not takes else f"{stem}[.cc].type"
    types = (*(kind,) * sources, *((CARRY,) if takes else ("no carry",)))
    build = _build(kind, sources, step, takes=takes, leaves=leaves)
    add(Row(name, kind, types, step, _SECTION, "doc", family), build)


for _width in (32, 64):
    for _sign in "su":
        _kind = f"{_sign}{_width}"
        for _takes, _leaves in ((False, True), (True, True), (True, False)):
            _letter = "c" if _takes else ""
            _row(f"add{_letter}", _kind, 2, _sum, takes=_takes, leaves=_leaves)
            _row(f"sub{_letter}", _kind, 2, _difference, takes=_takes, leaves=_leaves)
            for _part in ("lo", "hi"):
                _step = _product(_width, _part, signed=_sign == "s")
                _row(f"mad{_letter}.{_part}", _kind, 3, _step, takes=_takes, leaves=_leaves)
