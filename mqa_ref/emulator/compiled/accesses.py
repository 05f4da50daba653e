"""Short cuts for loads and stores whose lanes read one place, or places that follow each other; see
``opcodes.memory``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.emulator.clocks import GATHERED
from mqa_ref.emulator.compiled.loop import IN_A_ROW, UNIFORM, VALUES, VARIED
from mqa_ref.emulator.compiled.quick import Builder, Quick, quick
from mqa_ref.emulator.compiled.services import Place, Service, Target
from mqa_ref.emulator.compiled.warp import FlatWarp
from mqa_ref.emulator.decode import WIDTH_TYPES, Decoder, Operation, width_of
from mqa_ref.emulator.opcodes.memory import address_operand
from mqa_ref.emulator.ptx import Instruction, Reg
from mqa_ref.emulator.warp import LANES

if TYPE_CHECKING:
    from mqa_ref.emulator.compiled.cta import CompiledCta

Row = Callable[[FlatWarp, "CompiledCta", int, int], "NDArray[np.uint8] | None"]
"""Bytes at an address, or None when the access is not in order."""


def _shared_row(warp: FlatWarp, cta: CompiledCta, address: int, size: int) -> NDArray[np.uint8] | None:
    offset = cta.shared.offset(address, size)
    if offset is None:
        return None
    where = slice(offset // cta.granule, -(-(offset + size) // cta.granule))
    if cta.barrier_bytes[where].any():
        return None
    if warp.stored and warp.stored > warp.clock[GATHERED + warp.index]:
        return None
    if cta.shadow.read(where, warp.index, warp.clock) is not None:
        return None
    return cta.shared.data[offset : offset + size]


def _global_row(warp: FlatWarp, cta: CompiledCta, address: int, size: int) -> NDArray[np.uint8] | None:
    if cta.grid.overlaps and not warp.past_grid_wait:
        return None
    allocation = cta.memory.find(address, size)
    if allocation is None or allocation.writable:
        return None
    at = slice(address - allocation.address, address - allocation.address + size)
    if allocation.share is not None:
        mine = allocation.share(cta.number)
        cta.context.share_of(allocation, mine)
        if not mine[at].all():
            return None
    return allocation.data[at]


def _load(count: int, bits: int, space: str) -> Builder:
    size, kind = count * bits // 8, WIDTH_TYPES[bits]
    shared = space.startswith("shared")
    row = _shared_row if shared else _global_row

    def build(decoder: Decoder, instruction: Instruction, slow: Operation) -> Quick | None:
        items = decoder.items(instruction, instruction.operands[0], count)
        if not all(isinstance(item, Reg) and width_of(item.type) == bits for item in items):
            return None
        targets = [decoder.dst(instruction, item, bits) for item in items]
        width = 32 if space.startswith("shared") else 64
        base, offset = address_operand(decoder, instruction, instruction.operands[1], width)

        def run(warp: FlatWarp, found: int) -> int | None:
            cta: Any = warp.cta
            address = warp.frame_words[VALUES] + offset
            length = size if found == UNIFORM else size * warp.active_bits.bit_count()
            raw = None
            if found != VARIED and not address & size - 1 and (warp.full or not shared):
                raw = row(warp, cta, address, length)
            if raw is None:
                return slow(warp)
            elements = raw.view(kind).reshape(-1, count)
            for number, target in enumerate(targets):
                column = elements[:, number]
                if warp.full or found == UNIFORM:
                    warp.put(target, column)
                else:
                    whole = np.zeros(LANES, kind)
                    whole[warp.mask] = column
                    warp.put(target, whole)
            return None

        service = Service(f"ld.shared.{count}x{bits}", (offset, *(Target(target) for target in targets)))
        if width == 64:
            places = tuple(Target(target) for target in targets)
            service = Service(f"ld.global.{count}x{bits}", (offset, Place(base), *places))
        return Quick((base,), run, step=size, service=service)

    return build


def _store_global(count: int, bits: int) -> Builder:
    size, kind = count * bits // 8, WIDTH_TYPES[bits]

    def build(decoder: Decoder, instruction: Instruction, slow: Operation) -> Quick | None:
        base, offset = address_operand(decoder, instruction, instruction.operands[0], 64)
        items = decoder.items(instruction, instruction.operands[1], count)
        slots = [decoder.src(instruction, item, bits) for item in items]

        def run(warp: FlatWarp, found: int) -> int | None:
            address = warp.frame_words[VALUES] + offset
            lanes = warp.active_bits.bit_count()
            if (found != IN_A_ROW and lanes > 1) or address & size - 1:
                return slow(warp)
            allocation = warp.cta.memory.find(address, lanes * size)
            if allocation is None or not allocation.writable:
                return slow(warp)
            at = slice(address - allocation.address, address - allocation.address + lanes * size)
            out = allocation.data[at].view(kind).reshape(lanes, count)
            for column, slot in enumerate(slots):
                values: Any = warp.regs[slot]
                out[:, column] = values if warp.full else values[warp.mask]
            warp.cta.record_store(allocation, at, warp, instruction)
            return None

        name = f"st.global.{count}x{bits}"
        service = Service(name, (offset, instruction.line, *(Place(slot) for slot in slots)))
        return Quick((base, *slots), run, step=size, service=service)

    return build


for _vector, _count in (("", 1), (".v2", 2), (".v4", 4)):
    for _bits in (8, 16, 32, 64):
        if _count * _bits > 128:
            continue
        for _kind in "buf":
            for _space in ("shared", "shared::cta", "global", "global.nc"):
                quick(f"ld.{_space}{_vector}.{_kind}{_bits}")(_load(_count, _bits, _space))
            quick(f"st.global{_vector}.{_kind}{_bits}")(_store_global(_count, _bits))
