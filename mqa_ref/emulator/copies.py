"""Issuing and completing asynchronous tile loads in one CTA."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mqa_ref.emulator.clocks import Clock, tick
from mqa_ref.emulator.ptx import Instruction
from mqa_ref.emulator.tensormap import TensorMap, swizzled, tile_rows
from mqa_ref.emulator.warp import Warp

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]

COORDINATE_ALIGNMENT = 16
"""Bytes; the first coordinate of a tile. Others end in an illegal instruction (hw: an H200, fp32 elements)."""
COPY_ALIGNMENT = 128
"""Bytes; destination of a tensor copy (PTX ISA, "cp.async.bulk.tensor")."""


@dataclass(frozen=True)
class TileLoad:
    """One tile load in flight. ``clock`` is the issuer's, with the copy's own component set."""

    warp: Warp
    instruction: Instruction
    tensor: TensorMap
    coordinates: tuple[int, ...]
    destination: int
    barrier: int
    agent: int
    clock: Clock


def issue_tile_load(
    warp: Warp,
    instruction: Instruction,
    *,
    destination: int,
    tensor: int,
    barrier: int,
    coordinates: tuple[int, ...],
) -> None:
    """Start a load; the CTA's policy decides when it completes."""
    cta = warp.cta
    cta.check_grid_wait(warp, instruction)
    found = cta.barrier(warp, barrier, instruction, asynchronous=True)
    if found is None:
        return
    decoded = cta.tensor_map(tensor)
    if destination % COPY_ALIGNMENT:
        message = f"tile load to {destination:#x}, which is no multiple of {COPY_ALIGNMENT}"
        cta.report("misaligned", message, warp, instruction)
    if coordinates[0] * decoded.element_bytes % COORDINATE_ALIGNMENT:
        message = (
            f"a tile starts at element {coordinates[0]}, which is no multiple of {COORDINATE_ALIGNMENT} bytes"
        )
        cta.report("misaligned", message, warp, instruction)
    agent, use = cta.slots.take(warp.clock)
    clock = warp.handed()
    tick(clock, agent, use)
    load = TileLoad(warp, instruction, decoded, coordinates, destination, barrier, agent, clock)
    warp.released()
    cta.start_async(None, lambda: cta.complete_tile(load))


def complete_tile_load(load: TileLoad) -> None:
    """Move the bytes, check the shared-memory writes against every earlier access, and signal the mbarrier."""
    cta, tensor = load.warp.cta, load.tensor
    rows = tile_rows(tensor, load.coordinates)
    box = np.zeros(tensor.box_bytes, np.uint8)
    if rows.filled:
        message = f"a tile at {load.coordinates} reaches out of the tensor: {rows.filled} bytes are filled with zeros"
        cta.report("tma_out_of_range_fill", message, load.warp, load.instruction)
    if len(rows.source):
        _gather(load, box, rows.source, rows.target, rows.length)
    offset = cta.shared.offset(load.destination, tensor.box_bytes)
    if offset is None:
        message = (
            f"a tile load writes {tensor.box_bytes} bytes to {load.destination:#x}, out of shared memory"
        )
        cta.report("shared_out_of_bounds", message, load.warp, load.instruction)
    else:
        order = cta.swizzle_order(load.destination, tensor.box_bytes, tensor.swizzle)
        if order is None:
            cta.shared.data[offset : offset + tensor.box_bytes] = box
        else:
            cta.shared.data[order] = box
        granules = slice(offset // cta.granule, (offset + tensor.box_bytes) // cta.granule)
        cta.write_shared_shadow(granules, load.agent, load.clock, load.warp, load.instruction)
    barrier = cta.barriers.get(load.barrier)
    if barrier is not None and not barrier.complete_tx(tensor.box_bytes, load.clock):
        message = f"tx-count of {cta.barrier_name(barrier)} is {barrier.tx}"
        cta.report("mbarrier_tx_range", message, load.warp, load.instruction)


def _gather(load: TileLoad, box: Bytes, source: Offsets, target: Offsets, run: int) -> None:
    cta = load.warp.cta
    low, high = int(source.min()), int(source.max()) + run
    allocation = cta.memory.find(low, high - low)
    columns = np.arange(run)
    if allocation is None:
        for begin, place in zip(source.tolist(), target.tolist(), strict=True):
            part = cta.memory.find(begin, run)
            if part is None:
                message = f"a tile load reads {cta.memory.nearest(begin + run - 1)}"
                cta.report("global_out_of_bounds", message, load.warp, load.instruction)
                continue
            at = begin - part.address
            box[place : place + run] = part.data[at : at + run]
        return
    where = (source - allocation.address)[:, None] + columns
    box[target[:, None] + columns] = allocation.data[where]
    if allocation.writable:
        cta.record_load(allocation, where.ravel(), load.agent, load.clock, load.warp, load.instruction)


def swizzle_order(base: int, destination: int, size: int, mode: int) -> Offsets | None:
    """Byte offsets in shared memory of the bytes of a box, or None when they are in order."""
    if mode == 0:
        return None
    addresses = np.arange(destination, destination + size, dtype=np.int64)
    return swizzled(addresses, mode) - base
