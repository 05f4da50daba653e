"""Tile loads that lie whole within their tensor and one buffer, moved in pieces of 16 bytes; see ``copies``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mqa_ref.emulator.copies import COPY_ALIGNMENT, TileLoad
from mqa_ref.emulator.tensormap import TensorMap, swizzled, tile_rows

if TYPE_CHECKING:
    from mqa_ref.emulator.compiled.cta import CompiledCta

PIECE = 16
"""Bytes; what a swizzle moves as one."""
_PIECES = np.dtype("V16")


@dataclass(frozen=True)
class Plan:
    """Where each piece of the destination comes from, behind the first byte of the box; None for pieces in order.
    ``span``: bytes from the first to the last that is read.
    """

    size: int
    span: int
    source: NDArray[np.int64] | None


def plan_of(tensor: TensorMap, phase: int) -> Plan | None:
    """The plan for a tensor's boxes at destinations whose address has the low bits ``phase``, which are all that the
    swizzle looks at; None when a box cannot be moved in pieces.
    """
    if any(box > size for box, size in zip(tensor.box, tensor.sizes, strict=True)):
        return None
    rows = tile_rows(tensor, (0,) * len(tensor.box))
    source, target = rows.source - tensor.address, rows.target
    if rows.length % PIECE or (source % PIECE).any() or rows.filled:
        return None
    within = np.arange(0, rows.length, PIECE)
    read = (source[np.argsort(target, kind="stable")][:, None] + within).ravel()
    size = tensor.box_bytes
    written = swizzled(np.arange(phase, phase + size, PIECE, dtype=np.int64), tensor.swizzle) - phase
    order = np.argsort(written)
    if not np.array_equal(written[order], np.arange(0, size, PIECE)):
        return None
    read = read[order] // PIECE
    straight = np.array_equal(read, np.arange(size // PIECE))
    return Plan(size, int(read.max() + 1) * PIECE, None if straight else read)


PHASES = 1024
"""Bytes after which every swizzle repeats."""


def move_tile(cta: CompiledCta, load: TileLoad) -> bool:
    """Do what ``copies.complete_tile_load`` does; False, and nothing done, for a load that is not of the usual kind."""
    tensor = load.tensor
    if load.destination % COPY_ALIGNMENT:
        return False
    first = tensor.address + load.coordinates[0] * tensor.element_bytes
    for dimension, (at, box, size) in enumerate(zip(load.coordinates, tensor.box, tensor.sizes, strict=True)):
        if at < 0 or at + box > size:
            return False
        if dimension:
            first += at * tensor.strides[dimension - 1]
    plan = cta.workshop.plan(tensor, load.destination % PHASES)
    if plan is None:
        return False
    allocation = cta.memory.find(first, plan.span)
    offset = cta.shared.offset(load.destination, plan.size)
    barrier = cta.barriers.get(load.barrier)
    if allocation is None or allocation.writable or offset is None or barrier is None:
        return False
    start = first - allocation.address
    pieces = allocation.data[start : start + plan.span].view(_PIECES)
    into = cta.shared.data[offset : offset + plan.size].view(_PIECES)
    if plan.source is None:
        into[:] = pieces
    else:
        np.take(pieces, plan.source, out=into, mode="clip")
    granules = slice(offset // cta.granule, (offset + plan.size) // cta.granule)
    cta.write_shared_shadow(granules, load.agent, load.clock, load.warp, load.instruction)
    if not barrier.complete_tx(plan.size, load.clock):
        message = f"tx-count of {cta.barrier_name(barrier)} is {barrier.tx}"
        cta.report("mbarrier_tx_range", message, load.warp, load.instruction)
    return True
