"""tcgen05.st: registers into tensor memory, and the wait for it.

Source: PTX ISA, "tcgen05.st", "tcgen05.wait". Standing: doc. The values are there at the store already; but the store
is recorded once more at its wait, so that whoever reads in between without being told to wait is found.
"""

from __future__ import annotations

from mqa_ref.emulator.decode import Builder, Decoder, Operation
from mqa_ref.emulator.opcodes.arith import value
from mqa_ref.emulator.opcodes.memory import address_operand
from mqa_ref.emulator.opcodes.table import opcode
from mqa_ref.emulator.ptx import Instruction
from mqa_ref.emulator.sync import whole_warp
from mqa_ref.emulator.tmem import COLUMNS, PARTS, TensorMemory
from mqa_ref.emulator.warp import LANES, Warp

_SECTION = "TensorCore 5th Generation Instructions"


def _store(columns: int) -> Builder:
    """tcgen05.st.32x32b.xN: register i of lane l goes to column i of tensor-memory lane l of the warp's part."""

    def build(decoder: Decoder, instruction: Instruction) -> Operation:
        base, offset = address_operand(decoder, instruction, instruction.operands[0], 32)
        items = decoder.items(instruction, instruction.operands[1], columns)
        sources = [decoder.src(instruction, item, 32) for item in items]

        def run(warp: Warp) -> int | None:
            signal = whole_warp(warp, instruction)
            if signal is not None:
                return signal
            cta, part = warp.cta, warp.index % PARTS
            address = int(value(warp, base, instruction)[0]) + offset
            lane, start = address >> 16, address & 0xFFFF
            if lane != part * LANES or start + columns > COLUMNS:
                message = f"tcgen05.st to lane {lane}, columns {start} to {start + columns - 1}"
                cta.report("tmem_misuse", message, warp, instruction)
                return None
            if cta.check_tmem_owned(start, columns, warp, instruction):
                where = TensorMemory.granules(part, start, columns)
                cta.write_tmem(where, (warp.index, warp.clock, warp.order), warp, instruction)
                warp.stores.append((where, instruction))
            for column, source in enumerate(sources):
                place = slice(part * LANES, (part + 1) * LANES), start + column
                cta.tmem.data[place] = value(warp, source, instruction)
            return None

        return run

    return build


@opcode("tcgen05.wait::st.sync.aligned", section=_SECTION)
def _wait_store(decoder: Decoder, instruction: Instruction) -> Operation:
    def run(warp: Warp) -> int | None:
        signal = whole_warp(warp, instruction)
        if signal is not None:
            return signal
        for where, store in warp.stores:
            again = warp.cta.tmem.shadow.write(where, warp.index, warp.clock)
            warp.cta.check_tmem(again, warp.clock, warp, store)
        warp.stores.clear()
        return None

    return run


for _count in (1, 2, 4, 8, 16, 32, 64, 128):
    opcode(
        f"tcgen05.st.sync.aligned.32x32b.x{_count}.b32",
        sources=("tmem", "[b32]"),
        section=_SECTION,
        family="tcgen05.st.sync.aligned.32x32b.x{1..128}.b32",
    )(_store(_count))
