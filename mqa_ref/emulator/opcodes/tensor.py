"""tcgen05: allocation of tensor memory, the matrix product, its completion, and loads into registers.

Source: PTX ISA, "tcgen05.alloc / .dealloc / .relinquish_alloc_permit", "tcgen05.mma", "tcgen05.commit",
"tcgen05.ld", "tcgen05.wait". The arithmetic is ``mqa_ref.numerics.mma`` with the machine of the launch.
Standing: doc; arithmetic: published.
"""

from __future__ import annotations

import numpy as np

from mqa_ref.emulator.clocks import FENCED
from mqa_ref.emulator.decode import Builder, Decoder, Operation
from mqa_ref.emulator.opcodes.arith import value
from mqa_ref.emulator.opcodes.memory import address_operand
from mqa_ref.emulator.opcodes.table import opcode
from mqa_ref.emulator.products import Product, issue_commit, issue_product
from mqa_ref.emulator.ptx import Instruction, Reg, Vec
from mqa_ref.emulator.sync import whole_warp
from mqa_ref.emulator.tensor_order import before
from mqa_ref.emulator.tmem import COLUMNS, MIN_COLUMNS, PARTS, PendingLoad, TensorMemory
from mqa_ref.emulator.warp import LANES, Warp

_SECTION = "TensorCore 5th Generation Instructions"


@opcode(
    "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32", sources=("address", "u32"), section=_SECTION
)
def _alloc(decoder: Decoder, instruction: Instruction) -> Operation:
    base, offset = address_operand(decoder, instruction, instruction.operands[0], 32)
    count = decoder.src(instruction, instruction.operands[1], 32)

    def run(warp: Warp) -> int | None:
        signal = whole_warp(warp, instruction)
        if signal is not None:
            return signal
        cta = warp.cta
        columns = int(value(warp, count, instruction)[0])
        if columns < MIN_COLUMNS or columns > COLUMNS or columns & (columns - 1):
            cta.report(
                "tmem_misuse",
                f"{columns} columns asked for: a power of two from 32 to 512",
                warp,
                instruction,
            )
            return None
        if cta.tmem.relinquished:
            cta.report("tmem_misuse", "allocation after the permit was given up", warp, instruction)
        start = cta.tmem.allocate(columns)
        if start is None:
            cta.report(
                "tmem_misuse", f"no room for {columns} columns: the allocation never ends", warp, instruction
            )
            start = 0
        addresses = value(warp, base, instruction)[:1].astype(np.int64) + offset
        raw = np.full((1, 1), start, np.uint32).view(np.uint8)
        cta.store_shared(warp, np.repeat(addresses, LANES), np.repeat(raw, LANES, axis=0), instruction)
        return None

    return run


@opcode("tcgen05.dealloc.cta_group::1.sync.aligned.b32", sources=("tmem", "u32"), section=_SECTION)
def _dealloc(decoder: Decoder, instruction: Instruction) -> Operation:
    base = decoder.src(instruction, instruction.operands[0], 32)
    count = decoder.src(instruction, instruction.operands[1], 32)

    def run(warp: Warp) -> int | None:
        signal = whole_warp(warp, instruction)
        if signal is not None:
            return signal
        cta = warp.cta
        start = int(value(warp, base, instruction)[0])
        columns = int(value(warp, count, instruction)[0])
        if cta.tmem.allocated.get(start) != columns:
            cta.report("tmem_misuse", f"{columns} columns at {start} were never allocated", warp, instruction)
            return None
        for part in range(PARTS):
            granules = TensorMemory.granules(part, start, columns)
            conflict = cta.tmem.shadow.free(granules, warp.index, warp.clock)
            if conflict is None or conflict.kind == "apart":
                cta.check_tmem(conflict, warp.clock, warp, instruction)
                order = warp.order.of_free(warp.clock)
                unfenced = cta.tmem.shadow.unordered(granules, order.ordered)
                cta.check_fenced(unfenced, order, warp.clock, warp, instruction)
            else:
                message = f"tensor memory is freed while {cta.agent_name(conflict.agent)} may still use it"
                cta.report("tmem_freed_in_use", message, warp, instruction)
            cta.tmem.shadow.forget(granules)
        cta.tmem.free(start)
        return None

    return run


@opcode("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned", section=_SECTION)
def _relinquish(decoder: Decoder, instruction: Instruction) -> Operation:
    def run(warp: Warp) -> int | None:
        signal = whole_warp(warp, instruction)
        if signal is None:
            warp.cta.tmem.relinquished = True
        return signal

    return run


@opcode(
    "tcgen05.mma.cta_group::1.kind::f8f6f4",
    "tcgen05.mma.cta_group::1.kind::f8f6f4.collector::a::discard",
    sources=("tmem", "descriptor", "descriptor", "instruction", "[disabled lanes]", "pred"),
    section=_SECTION,
    standing="published",
    family="tcgen05.mma.cta_group::1.kind::f8f6f4[.collector::a::discard]",
)
def _mma(decoder: Decoder, instruction: Instruction) -> Operation:
    operands = list(instruction.operands)
    d, offset = address_operand(decoder, instruction, operands[0], 32)
    a, b = (decoder.src(instruction, o, 64) for o in operands[1:3])
    shape = decoder.src(instruction, operands[3], 32)
    disabled: list[int] = []
    if isinstance(operands[4], Vec):
        disabled = [decoder.src(instruction, item, 32) for item in operands[4].items]
        del operands[4]
    if len(operands) != 5:
        raise decoder.fail(instruction, "expected [d], a, b, descriptor, accumulate")
    accumulate = decoder.src(instruction, operands[4], 1)
    flip = isinstance(operands[4], Reg) and operands[4].negated

    def run(warp: Warp) -> None:
        lanes = warp.mask.nonzero()[0]
        if len(lanes) != 1:
            message = f"{len(lanes)} lanes issue the same product; one elected lane is expected"
            warp.cta.report("tmem_misuse", message, warp, instruction)
        lane = int(lanes[0])
        for slot in disabled:
            if int(value(warp, slot, instruction)[lane]):
                raise decoder.fail(instruction, "disabled output lanes are not modelled")
        issue_product(
            Product(
                warp,
                instruction,
                int(value(warp, d, instruction)[lane]) + offset,
                int(value(warp, a, instruction)[lane]),
                int(value(warp, b, instruction)[lane]),
                int(value(warp, shape, instruction)[lane]),
                bool(value(warp, accumulate, instruction)[lane]) != flip,
            )
        )

    return run


@opcode(
    "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64",
    "tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64",
    sources=("address",),
    section=_SECTION,
    family="tcgen05.commit.cta_group::1.mbarrier::arrive::one[.shared::cluster].b64",
)
def _commit(decoder: Decoder, instruction: Instruction) -> Operation:
    base, offset = address_operand(decoder, instruction, instruction.operands[0], 32)

    def run(warp: Warp) -> None:
        for lane in warp.mask.nonzero()[0].tolist():
            issue_commit(warp, instruction, int(value(warp, base, instruction)[lane]) + offset)

    return run


def _load(columns: int, pack: bool) -> Builder:
    """tcgen05.ld.32x32b.xN: register i of lane l is column i of tensor-memory lane l of the warp's part."""

    def build(decoder: Decoder, instruction: Instruction) -> Operation:
        items = decoder.items(instruction, instruction.operands[0], columns)
        targets = [decoder.dst(instruction, item, 32) for item in items]
        base, offset = address_operand(decoder, instruction, instruction.operands[1], 32)
        span = columns * 2 if pack else columns

        def run(warp: Warp) -> int | None:
            signal = whole_warp(warp, instruction)
            if signal is not None:
                return signal
            cta, part = warp.cta, warp.index % PARTS
            address = int(value(warp, base, instruction)[0]) + offset
            lane, start = address >> 16, address & 0xFFFF
            if lane != part * LANES:
                message = f"tcgen05.ld of lane {lane}: this warp reaches the 32 lanes from {part * LANES} on"
                cta.report("tmem_misuse", message, warp, instruction)
            owned = cta.check_tmem_owned(start, span, warp, instruction)
            start = min(start, COLUMNS - span)
            where = TensorMemory.granules(part, start, span)
            if owned:
                cta.read_tmem(warp, where, instruction)
            stamp = cta.tmem.shadow.stamp(where)
            warp.loads.append(PendingLoad(where, instruction, stamp, int(warp.clock[warp.index])))
            block = cta.tmem.data[part * LANES : (part + 1) * LANES, start : start + span]
            if pack:
                block = block[:, 0::2] & np.uint32(0xFFFF) | block[:, 1::2] << np.uint32(16)
            columns_first = np.ascontiguousarray(block.T)
            for number, target in enumerate(targets):
                warp.put(target, columns_first[number])
            warp.fly(targets)
            return None

        return run

    return build


@opcode("tcgen05.wait::ld.sync.aligned", section=_SECTION)
def _wait_load(decoder: Decoder, instruction: Instruction) -> Operation:
    """The values were delivered at the load; until here the columns must not have changed, so they are read
    again now.
    """

    def run(warp: Warp) -> int | None:
        signal = whole_warp(warp, instruction)
        if signal is not None:
            return signal
        cta = warp.cta
        for load in warp.loads:
            if cta.tmem.shadow.changed(load.where, load.written):
                start, columns = load.where.start % COLUMNS, load.where.stop - load.where.start
                gone = cta.tmem.was_freed(start, columns) and not cta.tmem.owns(start, columns)
                kind, verb = ("tmem_freed_in_use", "was freed") if gone else ("race_tmem", "changed")
                message = f"tensor memory {verb} between a tcgen05.ld and its tcgen05.wait::ld"
                cta.report(kind, message, warp, load.instruction)
            elif cta.tmem.shadow.written(load.where):
                again = cta.tmem.shadow.read(load.where, warp.index, warp.clock)
                cta.check_tmem(again, warp.clock, warp, load.instruction)
        loaded(warp)
        return None

    return run


def loaded(warp: Warp) -> None:
    """The loads of a warp are complete."""
    fenced = all(load.clock <= warp.clock[FENCED + warp.index] for load in warp.loads)
    if warp.loads and fenced:  # a fence between the loads and their wait
        before(warp.clock, warp.index)
        warp.released()
    warp.loads.clear()
    warp.landed()


for _count in (1, 2, 4, 8, 16, 32, 64, 128):
    for _pack in ("", ".pack::16b"):
        opcode(
            f"tcgen05.ld.sync.aligned.32x32b.x{_count}{_pack}.b32",
            result="{b32, ...}",
            sources=("tmem",),
            section=_SECTION,
            family="tcgen05.ld.sync.aligned.32x32b.num[.pack::16b].b32",
        )(_load(_count, bool(_pack)))
