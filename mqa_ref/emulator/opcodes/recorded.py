"""The opcodes that recorded programs and operations use: what they do was compared with an H200, bit for bit.

These are all that take numbers and give one, all loads and stores without a hint, and those that are named here. Tests
say that these are the opcodes of ``mqa_ref.golden.silicon``, and that every result there is the emulator's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqa_ref.emulator.opcodes.table import Row

_NUMBERS = frozenset(f"{letter}{width}" for width in (8, 16, 32, 64) for letter in "bsuf") | {
    "pred",
    "f16",
    "f16x2",
}
_OTHERS = ("cvta", "shfl", "vote", "match", "redux", "elect")
"""Their operands are addresses, or the other lanes."""
_ACCESSES = (
    *("ld.global", "ld.global.nc", "ld.shared", "ld.shared::cta", "ld", "ld.param"),
    *("st.global", "st.shared", "st.shared::cta", "st"),
)


def takes_numbers(row: Row) -> bool:
    """Does it take numbers of its own lane, and give one? sm_90 has all of these."""
    kinds = {kind.removesuffix(" or {parts}") for kind in (row.result, *row.sources)} - {"constant"}
    return bool(row.sources) and kinds <= _NUMBERS and row.base not in _OTHERS


def is_recorded(row: Row) -> bool:
    """Was it compared with hardware?"""
    stem = row.name.rpartition(".")[0].removesuffix(".v2").removesuffix(".v4")
    numbers = takes_numbers(row) and row.name not in UNRECORDED
    return row.name in RECORDED or numbers or stem in _ACCESSES


UNRECORDED: frozenset[str] = frozenset(
    (
        "abs.f16",
        "abs.f16x2",
        "copysign.f32",
        "fns.b32",
        "max.NaN.f16",
        "max.NaN.f16x2",
        "max.s16x2.relu",
        "max.s32.relu",
        "min.NaN.f16",
        "min.NaN.f16x2",
        "min.f16",
        "min.f16x2",
        "min.s16x2.relu",
        "min.s32.relu",
        "neg.f16",
        "neg.f16x2",
        "setp.eq.and.f16",
        "setp.eq.f16",
        "setp.eq.or.f16",
        "setp.eq.xor.f16",
        "setp.equ.and.f16",
        "setp.equ.f16",
        "setp.equ.or.f16",
        "setp.equ.xor.f16",
        "setp.ge.and.f16",
        "setp.ge.f16",
        "setp.ge.or.f16",
        "setp.ge.xor.f16",
        "setp.geu.and.f16",
        "setp.geu.f16",
        "setp.geu.or.f16",
        "setp.geu.xor.f16",
        "setp.gt.and.f16",
        "setp.gt.f16",
        "setp.gt.or.f16",
        "setp.gt.xor.f16",
        "setp.gtu.and.f16",
        "setp.gtu.f16",
        "setp.gtu.or.f16",
        "setp.gtu.xor.f16",
        "setp.le.and.f16",
        "setp.le.f16",
        "setp.le.or.f16",
        "setp.le.xor.f16",
        "setp.leu.and.f16",
        "setp.leu.f16",
        "setp.leu.or.f16",
        "setp.leu.xor.f16",
        "setp.lt.and.f16",
        "setp.lt.f16",
        "setp.lt.or.f16",
        "setp.lt.xor.f16",
        "setp.ltu.and.f16",
        "setp.ltu.f16",
        "setp.ltu.or.f16",
        "setp.ltu.xor.f16",
        "setp.nan.and.f16",
        "setp.nan.f16",
        "setp.nan.or.f16",
        "setp.nan.xor.f16",
        "setp.ne.and.f16",
        "setp.ne.f16",
        "setp.ne.or.f16",
        "setp.ne.xor.f16",
        "setp.neu.and.f16",
        "setp.neu.f16",
        "setp.neu.or.f16",
        "setp.neu.xor.f16",
        "setp.num.and.f16",
        "setp.num.f16",
        "setp.num.or.f16",
        "setp.num.xor.f16",
        "sub.f16",
        "sub.f16x2",
        "sub.rn.f16",
        "sub.rn.f16x2",
    )
)
"""Take numbers, and were not recorded yet."""
RECORDED = frozenset(
    (
        "activemask.b32",
        "bar.arrive",
        "bar.sync",
        "bar.warp.sync",
        "barrier.arrive",
        "barrier.cta.arrive",
        "barrier.cta.arrive.aligned",
        "barrier.cta.sync",
        "barrier.cta.sync.aligned",
        "barrier.sync",
        "barrier.sync.aligned",
        "bra",
        "bra.uni",
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint",
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
        "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint",
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint",
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
        "cp.async.bulk.tensor.3d.shared::cta.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint",
        "cvta.global.u64",
        "cvta.param.u64",
        "cvta.shared.u64",
        "cvta.to.global.u64",
        "cvta.to.shared.u64",
        "elect.sync",
        "exit",
        "fence.acq_rel.cta",
        "fence.acq_rel.gpu",
        "fence.mbarrier_init.release.cluster",
        "fence.proxy.async",
        "fence.proxy.async.shared::cta",
        "fence.sc.cta",
        "griddepcontrol.launch_dependents",
        "griddepcontrol.wait",
        "ld.global.nc.L1::no_allocate.v2.b64",
        "ld.global.nc.L2::128B.b32",
        "match.all.sync.b32",
        "match.all.sync.b64",
        "match.any.sync.b32",
        "match.any.sync.b64",
        "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64",
        "mbarrier.arrive.expect_tx.shared.b64",
        "mbarrier.arrive.expect_tx.shared::cta.b64",
        "mbarrier.arrive.release.cta.shared.b64",
        "mbarrier.arrive.release.cta.shared::cta.b64",
        "mbarrier.arrive.shared.b64",
        "mbarrier.arrive.shared::cta.b64",
        "mbarrier.init.shared.b64",
        "mbarrier.init.shared::cta.b64",
        "mbarrier.inval.shared::cta.b64",
        "mbarrier.test_wait.parity.acquire.cta.shared::cta.b64",
        "mbarrier.test_wait.parity.shared.b64",
        "mbarrier.try_wait.parity.acquire.cta.shared.b64",
        "mbarrier.try_wait.parity.shared.b64",
        "mbarrier.try_wait.parity.shared::cta.b64",
        "membar.cta",
        "nanosleep.u32",
        "prefetch.param.tensormap",
        "prefetch.tensormap",
        "redux.sync.add.s32",
        "redux.sync.add.u32",
        "redux.sync.and.b32",
        "redux.sync.max.s32",
        "redux.sync.max.u32",
        "redux.sync.min.s32",
        "redux.sync.min.u32",
        "redux.sync.or.b32",
        "redux.sync.xor.b32",
        "ret",
        "setmaxnreg.dec.sync.aligned.u32",
        "setmaxnreg.inc.sync.aligned.u32",
        "shfl.sync.bfly.b32",
        "shfl.sync.down.b32",
        "shfl.sync.idx.b32",
        "shfl.sync.up.b32",
        "vote.sync.all.pred",
        "vote.sync.any.pred",
        "vote.sync.ballot.b32",
        "vote.sync.uni.pred",
        "wgmma.commit_group.sync.aligned",
        "wgmma.fence.sync.aligned",
        "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3",
        "wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e4m3",
        "wgmma.mma_async.sync.aligned.m64n24k32.f32.e4m3.e4m3",
        "wgmma.mma_async.sync.aligned.m64n32k32.f32.e4m3.e4m3",
        "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3",
        "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3",
        "wgmma.wait_group.sync.aligned",
    )
)
