"""Short cuts for tile loads, products, their commits, and loads from tensor memory; see ``opcodes.bulk`` and
``opcodes.tensor``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mqa_ref.emulator.compiled.layout import IN_FLIGHT
from mqa_ref.emulator.compiled.loop import UNKNOWN, VALUES
from mqa_ref.emulator.compiled.quick import Builder, Quick, quick
from mqa_ref.emulator.compiled.shadows import FastShadow, address_of
from mqa_ref.emulator.compiled.tensor_checks import checks
from mqa_ref.emulator.compiled.warp import FlatWarp
from mqa_ref.emulator.copies import issue_tile_load
from mqa_ref.emulator.decode import Decoder, Operation
from mqa_ref.emulator.opcodes.memory import address_operand
from mqa_ref.emulator.opcodes.tensor import loaded
from mqa_ref.emulator.products import Product, issue_commit, issue_product
from mqa_ref.emulator.ptx import Addr, Instruction, Reg, Vec
from mqa_ref.emulator.tmem import PARTS, PendingLoad, TensorMemory
from mqa_ref.emulator.warp import LANES

_NO_STAMP = np.zeros(0, np.int32)


def _alone(warp: FlatWarp) -> bool:
    """Is one lane active?"""
    return warp.active_bits.bit_count() == 1


def _tile_load(rank: int) -> Builder:
    def build(decoder: Decoder, instruction: Instruction, slow: Operation) -> Quick | None:
        target, source, barrier = instruction.operands[:3]
        if not isinstance(target, Addr) or not isinstance(source, Addr) or not isinstance(barrier, Addr):
            return None
        if source.coordinates is None or len(source.coordinates.items) != rank:
            return None
        wanted = [
            decoder.src(instruction, target.base, 32),
            decoder.src(instruction, source.base, 64),
            decoder.src(instruction, barrier.base, 32),
        ]
        wanted += [decoder.src(instruction, item, 32) for item in source.coordinates.items]
        offsets = (target.offset, source.offset, barrier.offset)

        def run(warp: FlatWarp, _: int) -> int | None:
            if not _alone(warp):
                return slow(warp)
            place, tensor, signal, *coordinates = warp.frame_words[VALUES : VALUES + len(wanted)].tolist()
            issue_tile_load(
                warp,
                instruction,
                destination=place + offsets[0],
                tensor=tensor + offsets[1],
                barrier=signal + offsets[2],
                coordinates=tuple((at ^ 1 << 31) - (1 << 31) for at in coordinates),
            )
            return None

        return Quick(tuple(wanted), run)

    return build


for _rank in range(1, 6):
    for _space in ("shared::cta", "shared::cluster"):
        _name = f"cp.async.bulk.tensor.{_rank}d.{_space}.global.tile.mbarrier::complete_tx::bytes"
        quick(_name, f"{_name}.L2::cache_hint")(_tile_load(_rank))


@quick(
    "tcgen05.mma.cta_group::1.kind::f8f6f4",
    "tcgen05.mma.cta_group::1.kind::f8f6f4.collector::a::discard",
)
def _product(decoder: Decoder, instruction: Instruction, slow: Operation) -> Quick | None:
    operands = list(instruction.operands)
    d, offset = address_operand(decoder, instruction, operands[0], 32)
    wanted = [d, *(decoder.src(instruction, o, 64) for o in operands[1:3])]
    wanted.append(decoder.src(instruction, operands[3], 32))
    accumulate = operands[-1]
    flip = isinstance(accumulate, Reg) and accumulate.negated
    wanted.append(decoder.src(instruction, accumulate, 1))
    if len(operands) == 6 and isinstance(operands[4], Vec):
        wanted += [decoder.src(instruction, item, 32) for item in operands[4].items]
    elif len(operands) != 5:
        return None

    def run(warp: FlatWarp, _: int) -> int | None:
        place, a, b, shape, adds, *disabled = warp.frame_words[VALUES : VALUES + len(wanted)].tolist()
        if not _alone(warp) or any(disabled):
            return slow(warp)
        word = (1 << 64) - 1
        issue_product(
            Product(warp, instruction, place + offset, a & word, b & word, shape, bool(adds) != flip)
        )
        return None

    return Quick(tuple(wanted), run)


@quick(
    "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64",
    "tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64",
)
def _commit(decoder: Decoder, instruction: Instruction, slow: Operation) -> Quick | None:
    base, offset = address_operand(decoder, instruction, instruction.operands[0], 32)

    def run(warp: FlatWarp, _: int) -> int | None:
        if not _alone(warp):
            return slow(warp)
        issue_commit(warp, instruction, warp.frame_words[VALUES] + offset)
        return None

    return Quick((base,), run)


def _load(columns: int) -> Builder:
    def build(decoder: Decoder, instruction: Instruction, slow: Operation) -> Quick | None:
        items = decoder.items(instruction, instruction.operands[0], columns)
        targets = [decoder.dst(instruction, item, 32) for item in items]
        base, offset = address_operand(decoder, instruction, instruction.operands[1], 32)
        first = targets[0]
        if targets != list(range(first, first + columns)):
            return None

        def run(warp: FlatWarp, found: int) -> int | None:
            cta: Any = warp.cta
            part = warp.index % PARTS
            address = warp.frame_words[VALUES] + offset
            lane, start = address >> 16, address & 0xFFFF
            owned = any(a <= start and start + columns <= a + n for a, n in cta.tmem.allocated.items())
            if not warp.full or found == UNKNOWN or warp.owned or lane != part * LANES or not owned:
                return slow(warp)
            where = TensorMemory.granules(part, start, columns)
            shadow, stamp = cta.tmem.shadow, _NO_STAMP
            if isinstance(shadow, FastShadow):
                stamp = np.empty(columns, np.int32)
                clocks = (warp.clock_address, address_of(warp.order.ordered))
                place = (where.start, columns, warp.index)
                if checks()["load"](shadow.address, *place, *clocks, address_of(stamp)):
                    return slow(warp)
                shadow.touch(where.start, where.stop)
            warp.loads.append(PendingLoad(where, instruction, stamp, int(warp.clock[warp.index])))
            block = cta.tmem.data[part * LANES : (part + 1) * LANES, start : start + columns]
            warp.block(first, columns)[:] = block.T
            warp.words[first : first + columns] = IN_FLIGHT
            warp.flying = True
            return None

        return Quick((base,), run)

    return build


@quick("tcgen05.wait::ld.sync.aligned")
def _wait_load(decoder: Decoder, instruction: Instruction, slow: Operation) -> Quick:  # noqa: ARG001
    def run(warp: FlatWarp, _: int) -> int | None:
        if not warp.full:
            return slow(warp)
        shadow = warp.cta.tmem.shadow
        if isinstance(shadow, FastShadow):
            for load in warp.loads:
                place = (load.where.start, load.where.stop - load.where.start, warp.index)
                stamp = address_of(load.written)
                if checks()["wait"](shadow.address, *place, warp.clock_address, stamp):
                    return slow(warp)
        loaded(warp)
        return None

    return Quick((), run)


for _columns in (1, 2, 4, 8, 16, 32, 64, 128):
    quick(f"tcgen05.ld.sync.aligned.32x32b.x{_columns}.b32")(_load(_columns))
