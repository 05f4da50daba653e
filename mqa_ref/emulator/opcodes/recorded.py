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
    return row.name in RECORDED or takes_numbers(row) or stem in _ACCESSES


RECORDED = frozenset(
    (
        "activemask.b32",
        "add.cc.s32",
        "add.cc.s64",
        "add.cc.u32",
        "add.cc.u64",
        "addc.cc.s32",
        "addc.cc.s64",
        "addc.cc.u32",
        "addc.cc.u64",
        "addc.s32",
        "addc.s64",
        "addc.u32",
        "addc.u64",
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
        "ld.volatile.global.b32",
        "ld.volatile.global.u32",
        "ld.volatile.shared.u32",
        "ld.volatile.shared::cta.b32",
        "mad.hi.cc.s32",
        "mad.hi.cc.s64",
        "mad.hi.cc.u32",
        "mad.hi.cc.u64",
        "mad.lo.cc.s32",
        "mad.lo.cc.s64",
        "mad.lo.cc.u32",
        "mad.lo.cc.u64",
        "madc.hi.cc.s32",
        "madc.hi.cc.s64",
        "madc.hi.cc.u32",
        "madc.hi.cc.u64",
        "madc.hi.s32",
        "madc.hi.s64",
        "madc.hi.u32",
        "madc.hi.u64",
        "madc.lo.cc.s32",
        "madc.lo.cc.s64",
        "madc.lo.cc.u32",
        "madc.lo.cc.u64",
        "madc.lo.s32",
        "madc.lo.s64",
        "madc.lo.u32",
        "madc.lo.u64",
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
        "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64",
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
        "st.volatile.global.b32",
        "st.volatile.global.u32",
        "st.volatile.shared.u32",
        "st.volatile.shared::cta.b32",
        "sub.cc.s32",
        "sub.cc.s64",
        "sub.cc.u32",
        "sub.cc.u64",
        "subc.cc.s32",
        "subc.cc.s64",
        "subc.cc.u32",
        "subc.cc.u64",
        "subc.s32",
        "subc.s64",
        "subc.u32",
        "subc.u64",
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
