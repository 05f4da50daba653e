"""One lane signals for its warp: right with a bar.warp.sync before it, or for what the lane did itself; found without.

What gathers the lanes of a warp is worked out from the PTX ISA 9.1: bar.warp.sync (9.7.13.2) and the CTA's barriers
order memory among those that take part; of shuffles, votes and elections it says only that lanes wait.
"""

from __future__ import annotations

from typing import Any

import pytest

RUNS = [("compiled", order) for order in ("eager", "lazy", "random")] + [("interpreter", "random")]
FOUND = {"lanes_not_gathered"}
SYNC = "bar.warp.sync -1;"
# Warp 0 uses its row of 32 words, and lanes of it signal; warp 1 waits for that and uses the row, too.
PAIR = """
setp.eq.u32 %p1, %r60, 0;
@%p1 mbarrier.init.shared.b64 [%r61], {count};
and.b32 %r1, %r60, 31;
shl.b32 %r2, %r1, 2;
add.s32 %r2, %r2, %r61;
@%p1 st.shared.b32 [%r61+8], 0;
st.shared.b32 [%r2+128], %r1;
bar.sync 0;
setp.eq.u32 %p2, %r1, 0;
setp.eq.u32 %p3, %r62, 1;
setp.lt.u32 %p4, %r1, 16;
setp.eq.u32 %p6, %r1, 16;
@%p3 bra OTHER;
{first}
bra END;
OTHER:
W:
mbarrier.try_wait.parity.shared.b64 %p5, [%r61], 0, 9;
@!%p5 bra W;
{second}
END:
"""
START = "st.shared.b32 [%r2+128], %r1;\nbar.sync 0;"
READ, WRITE = "ld.shared.b32 %r3, [%r2+128];\n", "st.shared.b32 [%r2+128], %r1;\n"
LEADER = "@%p2 mbarrier.arrive.shared.b64 _, [%r61];\n"
HALVES = """
@%p4 bra LOW;
{high}
bra MET;
LOW:
{low}
MET:
"""


def pair(first: str, second: str, count: int = 1) -> str:
    """Both warps store to one row in ``PAIR``; one of them is enough."""
    body = PAIR.replace(START, "@!%p3 st.shared.b32 [%r2+128], %r1;\nbar.sync 0;")
    body = body.replace("setp.eq.u32 %p3, %r62, 1;\n", "").replace(
        "and.b32 %r1", "setp.eq.u32 %p3, %r62, 1;\nand.b32 %r1"
    )
    return body.format(first=first, second=second, count=count)


@pytest.mark.parametrize(("engine", "order"), RUNS)
@pytest.mark.parametrize(("first", "second", "count"), [
    (READ + SYNC + LEADER, WRITE, 1),
    (WRITE + SYNC + LEADER, READ, 1),
    (READ + "bar.sync 1, 32;\n" + LEADER, WRITE, 1),
    (READ + "mbarrier.arrive.shared.b64 _, [%r61];\n", WRITE, 32),
    ("@%p2 " + WRITE + LEADER, READ, 1),  # what the lane did itself
    (READ + SYNC + "@%p2 " + WRITE + LEADER, WRITE, 1),
    (SYNC + "@%p4 " + READ + "@%p4 bar.warp.sync 0x0000ffff;\n" + LEADER, WRITE, 1),
    (READ + HALVES.format(high="bar.warp.sync 0xffff0000;\n@%p6 mbarrier.arrive.shared.b64 _, [%r61];",
                          low="bar.warp.sync 0x0000ffff;\n" + LEADER), WRITE, 2),
    (READ + HALVES.format(high="mbarrier.arrive.shared.b64 _, [%r61];",
                          low="mbarrier.arrive.shared.b64 _, [%r61];"), WRITE, 32),
    (READ + LEADER, READ, 1),  # reads need no order
], ids=["read", "write", "cta-barrier", "all-arrive", "own", "own-later", "half", "halves-gathered", "halves-arrive",
        "reads"])  # fmt: skip
def test_a_lane_that_may_signal(
    bench: Any, first: str, second: str, count: int, engine: str, order: str
) -> None:
    assert not bench(pair(first, second, count), warps=2, engine=engine, order=order, seed=1).findings


@pytest.mark.parametrize(("engine", "order"), RUNS)
@pytest.mark.parametrize(("first", "second", "lanes"), [
    (READ + LEADER, WRITE, 0xFFFFFFFE),
    (WRITE + LEADER, READ, 0xFFFFFFFE),
    (SYNC + READ + LEADER, WRITE, 0xFFFFFFFE),  # gathered too early
    (READ + "shfl.sync.idx.b32 %r4, %r3, 0, 31, -1;\n" + LEADER, WRITE, 0xFFFFFFFE),
    (READ + "vote.sync.any.pred %p7, %p2, -1;\n" + LEADER, WRITE, 0xFFFFFFFE),
    (READ + "elect.sync %r4|%p2, -1;\n" + LEADER, WRITE, 0xFFFFFFFE),
    (READ + "@%p4 bar.warp.sync 0x0000ffff;\n" + LEADER, WRITE, 0xFFFF0000),
    ("@!%p4 " + READ + LEADER, WRITE, 0xFFFF0000),
], ids=["read", "write", "too-early", "shuffle", "vote", "elect", "half", "other-half"])  # fmt: skip
def test_a_lane_that_signals_for_others(
    bench: Any, first: str, second: str, lanes: int, engine: str, order: str
) -> None:
    body = pair(first, second)
    (finding,) = bench(body, warps=2, engine=engine, order=order, seed=1).findings
    assert (finding.kind, finding.severity, finding.warp) == ("lanes_not_gathered", "error", 1)
    assert f"lanes {lanes:#010x} of warp 0 used this shared memory" in finding.message
    assert second.strip() in finding.ptx_text
    assert "no bar.warp.sync between" in finding.message


TENSOR = """
setp.ne.u32 %p2, %r62, 0;
setp.eq.u32 %p1, %r60, 0;
@%p1 mbarrier.init.shared.b64 [%r61+8], 1;
@%p2 bra ALLOCATED;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r61], 32;
ALLOCATED:
bar.sync 0;
ld.shared.b32 %r8, [%r61];
@%p2 bra OTHER;
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r8], {{%r60}};
tcgen05.wait::st.sync.aligned;
tcgen05.fence::before_thread_sync;
{gather}
@%p1 mbarrier.arrive.shared.b64 _, [%r61+8];
bra END;
OTHER:
setp.ne.u32 %p3, %r62, 4;
@%p3 bra END;
W:
mbarrier.try_wait.parity.shared.b64 %p5, [%r61+8], 0, 9;
@!%p5 bra W;
tcgen05.fence::after_thread_sync;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r12}}, [%r8];
tcgen05.wait::ld.sync.aligned;
tcgen05.fence::before_thread_sync;
END:
bar.sync 0;
@%p2 bra FREED;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r8, 32;
FREED:
"""


@pytest.mark.parametrize(("engine", "order"), RUNS)
def test_a_lane_that_signals_for_tensor_memory(bench: Any, engine: str, order: str) -> None:
    """Lanes wait for each other at tcgen05.wait, but whoever signals must know that all of them are through."""

    def run(gather: str) -> Any:
        return bench(TENSOR.format(gather=gather), warps=5, engine=engine, order=order)

    assert not run(SYNC).findings
    (finding,) = run("").findings
    assert finding.kind == "lanes_not_gathered"
    assert "used this tensor memory" in finding.message


ROW = """
shl.b32 %r2, %r60, 2;
add.s32 %r2, %r2, %r61;
xor.b32 %r3, %r60, 1;
shl.b32 %r3, %r3, 2;
add.s32 %r3, %r3, %r61;
setp.eq.u32 %p1, %r60, 0;
@%p1 mbarrier.init.shared.b64 [%r61+256], 32;
bar.warp.sync -1;
st.shared.b32 [%r2], %r60;
{between}
{then}
st.global.b32 [%d62], %r4;
"""
MEETING = """
mbarrier.arrive.shared.b64 _, [%r61+256];
W:
mbarrier.try_wait.parity.shared.b64 %p5, [%r61+256], 0, 9;
@!%p5 bra W;
"""
NEIGHBOUR = "ld.shared.b32 %r4, [%r3];"


@pytest.mark.parametrize(("engine", "order"), RUNS)
@pytest.mark.parametrize(("between", "then", "kinds"), [
    ("", "ld.shared.b32 %r4, [%r2];", set()),
    (SYNC, NEIGHBOUR, set()),
    ("bar.sync 0;", NEIGHBOUR, set()),
    (MEETING, NEIGHBOUR, set()),
    ("", NEIGHBOUR, FOUND),
    ("", "ld.shared.b32 %r4, [%r61+12];", FOUND),
    ("", "@%p1 ld.shared.b32 %r4, [%r61+12];\nmov.b32 %r4, 0;", FOUND),
    ("", "st.shared.b32 [%r3], %r60;\nmov.b32 %r4, 0;", FOUND),
    ("shfl.sync.idx.b32 %r4, %r60, 0, 31, -1;", NEIGHBOUR, FOUND),
], ids=["own", "gathered", "cta-barrier", "mbarrier", "neighbour", "one-place", "elected", "overwritten",
        "shuffle"])  # fmt: skip
def test_lanes_of_one_warp(
    bench: Any, between: str, then: str, kinds: set[str], engine: str, order: str
) -> None:
    """Each lane stores a word; then lanes use what another one stored."""
    assert bench(ROW.format(between=between, then=then), engine=engine, order=order).kinds == kinds
