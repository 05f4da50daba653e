"""What the TMA warps and the UMMA warps do with a walk; ``score`` holds the math warps.

Each role is one function, traced once, for both warp groups: the group is a run time number that offsets the
barriers, the shared memory stages and the TMEM columns. Group *g* owns tile *g* of every split.
"""

from dataclasses import dataclass
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Int32
from cutlass.cute.nvgpu import tcgen05

from mqa_ref.kernel.accumulators import Accumulators, accumulator, first_stage
from mqa_ref.kernel.config import KernelConfig
from mqa_ref.kernel.ring import (
    Rings,
    commit_mma,
    expect,
    fence_after_sync,
    reader,
    wait_empty,
    wait_full,
    writer,
)
from mqa_ref.kernel.walk import Work, read_walk, splits_of

WARP = 32
MMA_K = 32


@dataclass(frozen=True)
class TmaLoad:
    """One TMA source: the copy atom and its tiles, of which ``smem[(None, ...)]`` takes ``gmem[(None, ...)]``."""

    atom: cute.CopyAtom
    smem: cute.Tensor
    gmem: cute.Tensor


@dataclass(frozen=True)
class TmaLoads:
    """All that the TMA warps load: codes and scales by (page of the tile, stage), queries and weights by (stage,)."""

    kv: TmaLoad
    scales: TmaLoad
    q: TmaLoad
    weights: TmaLoad


@cute.jit
def load_role(
    config: KernelConfig,
    group: Int32,
    work: Work,
    block_table: cute.Tensor,
    absent_page: Int32,
    rings: Rings,
    loads: TmaLoads,
) -> None:
    """TMA warp: the tiles of one group, and for group 0 also the queries and weights of every row it enters.

    Lane *i* holds the page id that the warp will need *i* page loads from now, so that the block table is read once
    every ``32 / pages_per_tile`` splits. An entry is read only when the row's length covers it; the others become
    ``absent_page``, which is out of the pool's range: TMA fills the buffer with zeros and still counts its bytes.
    """
    pages_per_tile = config.pages_per_tile
    lane = cute.arch.lane_idx()
    page_id = Int32(0)
    kv_slot = writer(rings.kv)
    q_slot = writer(rings.q)
    walk = read_walk(work)
    for row in cutlass.range(walk.first_row, walk.last_row + 1, 1, unroll=1):
        length = work.context_lens[row]
        first, stop = splits_of(walk, row, length)
        if first < stop:
            if group == 0:
                wait_empty(rings.q, q_slot)
                barrier = expect(rings.q, q_slot, config.q_stage_tx_bytes)
                _issue(loads.q, (q_slot.index,), row, barrier)
                _issue(loads.weights, (q_slot.index,), row, barrier)
                q_slot.advance()
            pages = (length + (config.page - 1)) >> (config.page.bit_length() - 1)
            for split in cutlass.range(first, stop, 1, unroll=1):
                turn = (split - first) & (WARP // pages_per_tile - 1)
                if turn == 0:
                    tile = 2 * (split + lane // pages_per_tile) + group
                    entry = tile * pages_per_tile + lane % pages_per_tile
                    page_id = absent_page
                    if entry < pages:
                        page_id = block_table[(row, entry)]
                wait_empty(rings.kv, kv_slot)
                barrier = expect(rings.kv, kv_slot, config.kv_stage_tx_bytes)
                stage = group * config.kv_stages + kv_slot.index
                for i in cutlass.range_constexpr(pages_per_tile):
                    page = cute.arch.shuffle_sync(page_id, turn * pages_per_tile + i)
                    _issue(loads.kv, (i, stage), page, barrier)
                    _issue(loads.scales, (i, stage), page, barrier)
                kv_slot.advance()


@cute.jit
def mma_role(
    config: KernelConfig,
    group: Int32,
    work: Work,
    rings: Rings,
    tiled_mma: cute.TiledMma,
    kv: cute.Tensor,
    q: cute.Tensor,
    acc: Accumulators,
) -> None:
    """UMMA warp: K (128 tokens) times Q (all heads) of one group's tiles, into the group's accumulator stages."""
    kv_slot = reader(rings.kv)
    q_slot = reader(rings.q)
    acc_slot = writer(rings.acc)
    acc_first = first_stage(config, acc, group)
    walk = read_walk(work)
    for row in cutlass.range(walk.first_row, walk.last_row + 1, 1, unroll=1):
        first, stop = splits_of(walk, row, work.context_lens[row])
        if first < stop:
            wait_full(rings.q, q_slot)
            for _ in cutlass.range(first, stop, 1, unroll=1):
                wait_full(rings.kv, kv_slot)
                wait_empty(rings.acc, acc_slot)
                fence_after_sync()
                kv_stage = group * config.kv_stages + kv_slot.index
                target = accumulator(config, acc, acc_first, acc_slot.index)
                for k in cutlass.range_constexpr(config.head_dim // MMA_K):
                    tiled_mma.set(tcgen05.Field.ACCUMULATE, k > 0)
                    tile, queries = kv[(None, None, k, kv_stage)], q[(None, None, k, q_slot.index)]
                    cute.gemm(tiled_mma, target, tile, queries, target)
                commit_mma(rings.acc, acc_slot)
                kv_slot.advance()
                acc_slot.advance()
            q_slot.advance()


def _issue(load: TmaLoad, smem_coord: tuple[Any, ...], tile: Int32, barrier: cute.Pointer) -> None:
    """Start one TMA load of ``tile`` into a stage, by a lane that the copy itself elects."""
    cute.copy(load.atom, load.gmem[(None, tile)], load.smem[(None, *smem_coord)], tma_bar_ptr=barrier)
