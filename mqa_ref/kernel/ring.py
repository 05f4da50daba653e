"""Rings of buffers guarded by mbarriers: who may fill a slot, and who may read it.

A ring of ``stages`` slots owns two rows of mbarriers in shared memory. ``full[i]`` completes when slot *i* holds
data, ``empty[i]`` when its last reader has let go. A slot position is a ``cutlass.pipeline`` state (index and
phase); this module adds what that package does not have: a ring picked by a *run time* group number, so that one
trace of a role serves both warp groups.
"""

from dataclasses import dataclass
from typing import Any

import cutlass.cute as cute
from cutlass import Int32
from cutlass._mlir.dialects import nvvm
from cutlass.cute.nvgpu import tcgen05
from cutlass.cutlass_dsl import dsl_user_op
from cutlass.pipeline import PipelineState, PipelineUserType, make_pipeline_state


@dataclass(frozen=True)
class Ring:
    """One ring: the first full barrier, the first empty barrier, and the number of slots."""

    full: cute.Pointer
    empty: cute.Pointer
    stages: int


@dataclass(frozen=True)
class Rings:
    """The rings a warp takes part in: tiles of its group, queries of all, accumulators of its group."""

    kv: Ring
    q: Ring
    acc: Ring


def ring_at(base: cute.Pointer, stages: int, group: Int32 | int = 0) -> Ring:
    """The ring of one group, where ``base`` starts the rings of all groups: full barriers, then empty, per group."""
    first = base + group * (2 * stages)
    return Ring(first, first + stages, stages)


def init_rings(base: cute.Pointer, groups: int, stages: int, readers: int) -> None:
    """Initialise the barriers of ``groups`` rings: one arrival fills a slot, ``readers`` arrivals empty it.

    For one thread; a fence and a CTA barrier must follow before any other thread uses them.
    """
    for group in range(groups):
        ring = ring_at(base, stages, group)
        for stage in range(stages):
            cute.arch.mbarrier_init(ring.full + stage, 1)
            cute.arch.mbarrier_init(ring.empty + stage, readers)


def writer(ring: Ring) -> PipelineState:
    """The first slot of a writer: a wait on its empty barrier passes at once."""
    return make_pipeline_state(PipelineUserType.Producer, ring.stages)


def reader(ring: Ring) -> PipelineState:
    """The first slot of a reader: a wait on its full barrier holds until the first fill."""
    return make_pipeline_state(PipelineUserType.Consumer, ring.stages)


def wait_full(ring: Ring, slot: PipelineState) -> None:
    """Wait, every lane, until the slot holds data."""
    cute.arch.mbarrier_wait(ring.full + slot.index, slot.phase)


def wait_empty(ring: Ring, slot: PipelineState) -> None:
    """Wait, every lane, until the slot may be filled."""
    cute.arch.mbarrier_wait(ring.empty + slot.index, slot.phase)


def expect(ring: Ring, slot: PipelineState, nbytes: int) -> cute.Pointer:
    """One elected lane arrives for the writer, announcing the bytes of the slot's TMA loads. Returns the barrier."""
    barrier = ring.full + slot.index
    with cute.arch.elect_one():
        cute.arch.mbarrier_arrive_and_expect_tx(barrier, nbytes)
    return barrier


def commit_mma(ring: Ring, slot: PipelineState) -> None:
    """Let the full barrier complete once every MMA this warp has issued is done.

    The lane that commits is the one that issued them: every election elects the same lane (PTX ISA, elect.sync).
    """
    with cute.arch.elect_one():
        tcgen05.commit(ring.full + slot.index)


def release(ring: Ring, slot: PipelineState) -> None:
    """Arrive on the empty barrier. Call it from one lane a warp, with the whole warp past its last read."""
    cute.arch.mbarrier_arrive(ring.empty + slot.index)


@dsl_user_op
def fence_before_sync(*, loc: Any = None, ip: Any = None) -> None:
    """Order this thread's TMEM accesses before a barrier arrival that lets another thread touch the same TMEM."""
    nvvm.tcgen05_fence(nvvm.Tcgen05FenceKind.BEFORE_THREAD_SYNC, loc=loc, ip=ip)


@dsl_user_op
def fence_after_sync(*, loc: Any = None, ip: Any = None) -> None:
    """Order this thread's TMEM accesses after a barrier that another thread's TMEM accesses led to."""
    nvvm.tcgen05_fence(nvvm.Tcgen05FenceKind.AFTER_THREAD_SYNC, loc=loc, ip=ip)
