"""cp.async.bulk.tensor: tile loads from global to shared memory that complete on an mbarrier.

Source: PTX ISA, "cp.async.bulk.tensor", "Tensors: tiled mode, out of boundary access". The whole box counts
towards the tx-count, the part that is filled with zeros included. Standing: doc.
"""

from __future__ import annotations

from mqa_ref.emulator.copies import issue_tile_load
from mqa_ref.emulator.decode import Builder, Decoder, Operation
from mqa_ref.emulator.opcodes.arith import value
from mqa_ref.emulator.opcodes.table import opcode
from mqa_ref.emulator.ptx import Addr, Instruction
from mqa_ref.emulator.warp import Warp


def _tile_load(rank: int, hinted: bool) -> Builder:
    def build(decoder: Decoder, instruction: Instruction) -> Operation:
        operands = instruction.operands
        if len(operands) != (4 if hinted else 3):
            raise decoder.fail(instruction, "another number of operands is expected")
        target, source, barrier = operands[:3]
        if not isinstance(target, Addr) or not isinstance(source, Addr) or not isinstance(barrier, Addr):
            raise decoder.fail(instruction, "expected [destination], [map, {coordinates}], [mbarrier]")
        if source.coordinates is None or len(source.coordinates.items) != rank:
            raise decoder.fail(instruction, f"expected {rank} coordinates")
        destination = decoder.src(instruction, target.base, 32)
        tensor = decoder.src(instruction, source.base, 64)
        signal = decoder.src(instruction, barrier.base, 32)
        places = [decoder.src(instruction, item, 32) for item in source.coordinates.items]

        def run(warp: Warp) -> None:
            for lane in warp.mask.nonzero()[0].tolist():
                issue_tile_load(
                    warp,
                    instruction,
                    destination=int(value(warp, destination, instruction)[lane]) + target.offset,
                    tensor=int(value(warp, tensor, instruction)[lane]) + source.offset,
                    barrier=int(value(warp, signal, instruction)[lane]) + barrier.offset,
                    coordinates=tuple(int(value(warp, p, instruction)[lane].view("i4")) for p in places),
                )

        return run

    return build


_FAMILY = "cp.async.bulk.tensor.dim.space.global[.tile].mbarrier::complete_tx::bytes[.L2::cache_hint]"
for _rank in range(1, 6):
    for _space in ("shared::cta", "shared::cluster"):
        for _mode in (".tile", ""):  # tile is the default
            for _hint in ("", ".L2::cache_hint"):
                _name = f"cp.async.bulk.tensor.{_rank}d.{_space}.global{_mode}.mbarrier::complete_tx::bytes{_hint}"
                opcode(
                    _name,
                    sources=("address", "map and coordinates", "address", *(("b64",) if _hint else ())),
                    section="Data Movement and Conversion Instructions: cp.async.bulk.tensor",
                    family=_FAMILY,
                )(_tile_load(_rank, hinted=bool(_hint)))
