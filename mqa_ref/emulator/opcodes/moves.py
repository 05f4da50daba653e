"""Moves, packing and unpacking, address conversions, and data exchange between the lanes of a warp.

Source: PTX ISA, "mov", "cvta", "shfl.sync", "elect.sync". Standing: doc.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mqa_ref.emulator.decode import OPCODES, WIDTH_TYPES, Decoder, Operation, opcode
from mqa_ref.emulator.opcodes.arith import elementwise, value
from mqa_ref.emulator.ptx import Imm, Instruction, Pair, Vec
from mqa_ref.emulator.sync import converge
from mqa_ref.emulator.warp import LANES, Lanes, Mask, Warp


def _mov(width: int) -> Callable[[Decoder, Instruction], Operation]:
    def build(decoder: Decoder, instruction: Instruction) -> Operation:
        d, a = instruction.operands
        if isinstance(a, Vec):
            return _pack(decoder, instruction, width, a)
        if isinstance(d, Vec):
            return _unpack(decoder, instruction, width, d)
        target, source = decoder.dst(instruction, d, width), decoder.src(instruction, a, width)

        def run(warp: Warp) -> None:
            warp.put(target, value(warp, source, instruction))
            if warp.flying:
                _pass_on(warp, [source], [target])

        return run

    return build


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
    for _kind in "busf":
        OPCODES[f"mov.{_kind}{_width}"] = _mov(_width)
OPCODES["mov.pred"] = elementwise(1, (1,), _identity)
# Parameters and global memory lie in the generic address space at the addresses they have in their own.
for _name in ("cvta.param.u64", "cvta.to.param.u64", "cvta.global.u64", "cvta.to.global.u64"):
    OPCODES[_name] = elementwise(64, (64,), _identity)


def member_mask(decoder: Decoder, instruction: Instruction, operand: object) -> Mask:
    """The lanes of a constant member mask; a mask in a register is not modelled."""
    if not isinstance(operand, Imm):
        raise decoder.fail(instruction, "a member mask that is no constant is not modelled")
    bits = operand.value & 0xFFFFFFFF
    return np.array([bits >> lane & 1 for lane in range(LANES)], np.bool_)


@opcode("elect.sync")
def _elect(decoder: Decoder, instruction: Instruction) -> Operation:
    d, mask = instruction.operands
    if not isinstance(d, Pair):
        raise decoder.fail(instruction, "expected a destination d|p")
    index = decoder.dst(instruction, d.first, 32)
    predicate = decoder.dst(instruction, d.second, 1)
    member = member_mask(decoder, instruction, mask)

    def run(warp: Warp) -> int | None:
        signal = converge(warp, member, instruction)
        if signal is not None:
            return signal
        leader = int(np.flatnonzero(member & warp.mask)[0])
        if index >= 0:
            warp.put(index, np.full(LANES, leader, np.uint32))
        warp.put(predicate, np.arange(LANES) == leader)
        return None

    return run


@opcode("shfl.sync.idx.b32", "shfl.sync.up.b32", "shfl.sync.down.b32", "shfl.sync.bfly.b32")
def _shuffle(decoder: Decoder, instruction: Instruction) -> Operation:
    mode = instruction.opcode.split(".")[2]
    d, a, b, c, mask = instruction.operands
    predicate = -1
    if isinstance(d, Pair):
        predicate = decoder.dst(instruction, d.second, 1)
        d = d.first
    target = decoder.dst(instruction, d, 32)
    source, lane_slot, clamp_slot = (decoder.src(instruction, o, 32) for o in (a, b, c))
    member = member_mask(decoder, instruction, mask)
    lanes = np.arange(LANES)

    def run(warp: Warp) -> int | None:
        signal = converge(warp, member, instruction)
        if signal is not None:
            return signal
        data = value(warp, source, instruction)
        by = (value(warp, lane_slot, instruction) & 31).astype(np.intp)
        control = value(warp, clamp_slot, instruction).astype(np.intp)
        clamp, segment = control & 31, control >> 8 & 31
        high = (lanes & segment) | (clamp & ~segment)
        low = lanes & segment
        if mode == "idx":
            wanted = low | (by & ~segment)
            inside = wanted <= high
        elif mode == "up":
            wanted = lanes - by
            inside = wanted >= high
        elif mode == "down":
            wanted = lanes + by
            inside = wanted <= high
        else:
            wanted = lanes ^ by
            inside = wanted <= high
        warp.put(target, data[np.where(inside, wanted, lanes)])
        if predicate >= 0:
            warp.put(predicate, inside)
        return None

    return run
