"""Moves, packing and unpacking, and address conversions.

Source: PTX ISA, "mov", "cvta". Standing: doc.
"""

from __future__ import annotations

import numpy as np

from mqa_ref.emulator.decode import SHARED_WINDOW, WIDTH_TYPES, Builder, Decoder, Operation, width_of
from mqa_ref.emulator.opcodes.arith import value
from mqa_ref.emulator.opcodes.table import lanewise, opcode
from mqa_ref.emulator.ptx import Instruction, Vec
from mqa_ref.emulator.warp import LANES, Lanes, Mask, Warp

_SECTION = "Data Movement and Conversion Instructions: mov"


def _mov(kind: str) -> Builder:
    width = width_of(kind)

    def build(decoder: Decoder, instruction: Instruction) -> Operation:
        d, a = instruction.operands
        if isinstance(a, Vec):
            return _pack(decoder, instruction, width, a)
        if isinstance(d, Vec):
            return _unpack(decoder, instruction, width, d)
        target, source = decoder.dst(instruction, d, kind), decoder.src(instruction, a, kind)

        def run(warp: Warp) -> None:
            missing = warp.unwritten(source)
            if missing is not None:
                _copy_missing(warp, source, target, missing, width)
                return
            warp.put(target, value(warp, source, instruction))
            if warp.flying:
                _pass_on(warp, [source], [target])

        return run

    return build


def _copy_missing(warp: Warp, source: int, target: int, missing: Mask, width: int) -> None:
    """A copy of a register that was never written is no use of it; the copy has no value either. Compilers make such
    copies of variables that have none yet.
    """
    found = warp.regs[source]
    warp.put(target, np.zeros(LANES, WIDTH_TYPES[width]) if found is None else found)
    warp.undefine(target, missing & warp.mask)


def _pass_on(warp: Warp, sources: list[int], targets: list[int]) -> None:
    """A copy of a register that is still being loaded is itself not there yet."""
    if any(warp.in_flight(slot) for slot in sources):
        warp.fly(targets)


def _pack(decoder: Decoder, instruction: Instruction, width: int, parts: Vec) -> Operation:
    count = len(parts.items)
    part = width // count
    target = decoder.dst(instruction, instruction.operands[0], width)
    slots = [decoder.src(instruction, item, part) for item in parts.items]
    small, whole = WIDTH_TYPES[part], WIDTH_TYPES[width]

    def run(warp: Warp) -> None:
        out = np.empty((LANES, count), small)
        for number, slot in enumerate(slots):
            out[:, number] = value(warp, slot, instruction)
        warp.put(target, out.view(whole)[:, 0])
        if warp.flying:
            _pass_on(warp, slots, [target])

    return run


def _unpack(decoder: Decoder, instruction: Instruction, width: int, parts: Vec) -> Operation:
    count = len(parts.items)
    part = width // count
    source = decoder.src(instruction, instruction.operands[1], width)
    slots = [decoder.dst(instruction, item, part) for item in parts.items]
    small = WIDTH_TYPES[part]

    def run(warp: Warp) -> None:
        split = np.ascontiguousarray(value(warp, source, instruction)).view(small).reshape(LANES, count)
        for number, slot in enumerate(slots):
            if slot >= 0:
                warp.put(slot, split[:, number])
        if warp.flying:
            _pass_on(warp, [source], slots)

    return run


def _identity(a: Lanes) -> Lanes:
    return a


for _width in (16, 32, 64):
    for _letter in "bus" if _width == 16 else "busf":  # mov.f16 does not exist
        _kind = f"{_letter}{_width}"
        _sources = (f"{_kind} or {{parts}}",)
        opcode(f"mov.{_kind}", result=_kind, sources=_sources, section=_SECTION, family="mov.type")(
            _mov(_kind)
        )
opcode("mov.pred", result="pred", sources=("pred",), section=_SECTION)(_mov("pred"))
# Parameters and global memory lie in the generic address space at the addresses they have in their own.
_ADDRESSES = "Data Movement and Conversion Instructions: cvta"
for _to in ("", "to."):
    for _space in ("param", "global"):
        _name = f"cvta.{_to}{_space}.u64"
        lanewise(
            [(_name, "u64", ("u64",), _identity)],
            section=_ADDRESSES,
            family=lambda name: "cvta[.to].space.u64",
        )
_WINDOW = np.uint64(SHARED_WINDOW)
lanewise(
    [
        ("cvta.shared.u64", "u64", ("u64",), lambda a: a + _WINDOW),
        ("cvta.to.shared.u64", "u64", ("u64",), lambda a: a - _WINDOW),
    ],
    section=_ADDRESSES,
    family=lambda name: "cvta[.to].space.u64",
)
