"""Lanes that part and meet again, and instructions that need all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest


def test_each_lane_takes_its_own_path(bench: Any) -> None:
    body = """
    mov.b32 %r1, 0;
    setp.lt.u32 %p1, %r60, 10;
    @%p1 bra LOW;
    setp.lt.u32 %p2, %r60, 20;
    @%p2 bra MIDDLE;
    add.s32 %r1, %r60, 1000;
    bra JOIN;
    MIDDLE:
    add.s32 %r1, %r60, 2000;
    bra JOIN;
    LOW:
    add.s32 %r1, %r60, 3000;
    JOIN:
    add.s32 %r1, %r1, 1;
    st.global.b32 [%d62], %r1;
    """
    expected = [lane + (3001 if lane < 10 else 2001 if lane < 20 else 1001) for lane in range(32)]
    ran = bench(body)
    assert ran.words().tolist() == expected
    assert not ran.findings


def test_a_loop_with_a_count_of_its_own_in_each_lane(bench: Any) -> None:
    body = """
    mov.b32 %r1, 0;
    mov.b32 %r2, 0;
    AGAIN:
    setp.ge.u32 %p1, %r2, %r60;
    @%p1 bra OUT;
    add.s32 %r2, %r2, 1;
    add.s32 %r1, %r1, %r2;
    bra AGAIN;
    OUT:
    shfl.sync.idx.b32 %r3, %r1, 31, 31, -1;
    add.s32 %r1, %r1, %r3;
    st.global.b32 [%d62], %r1;
    """
    ran = bench(body)
    assert ran.words().tolist() == [n * (n + 1) // 2 + 496 for n in range(32)]
    assert not ran.findings


def test_lanes_that_spin_do_not_starve_the_lane_they_wait_for(bench: Any) -> None:
    """31 lanes wait, at a lower program counter, for the one that comes later in the text."""
    body = """
    setp.eq.u32 %p2, %r60, 0;
    @%p2 mbarrier.init.shared.b64 [%r61], 1;
    bar.warp.sync -1;
    setp.eq.u32 %p1, %r60, 5;
    @%p1 bra SIGNAL;
    SPIN:
    mbarrier.try_wait.parity.shared.b64 %p3, [%r61], 0, 1000;
    @!%p3 bra SPIN;
    bra JOIN;
    SIGNAL:
    mbarrier.arrive.shared.b64 _, [%r61];
    JOIN:
    bar.warp.sync -1;
    st.global.b32 [%d62], %r60;
    """
    ran = bench(body)
    assert ran.words().tolist() == list(range(32))
    assert not ran.findings


def test_a_sync_that_not_all_lanes_reach_is_a_hang(bench: Any) -> None:
    body = """
    setp.eq.u32 %p2, %r60, 0;
    @%p2 mbarrier.init.shared.b64 [%r61], 1;
    bar.warp.sync -1;
    setp.eq.u32 %p1, %r60, 5;
    @!%p1 bra SYNC;
    SPIN:
    mbarrier.try_wait.parity.shared.b64 %p3, [%r61], 0, 1000;
    @!%p3 bra SPIN;
    SYNC:
    bar.warp.sync -1;
    """
    ran = bench(body)
    (finding,) = ran.findings
    assert finding.kind == "hang"
    assert "lanes that wait for the rest of their warp" in finding.message
    assert "the mbarrier at shared offset 0, phase parity 0" in finding.message


def test_lanes_that_have_left_are_not_waited_for(bench: Any) -> None:
    body = """
    setp.ge.u32 %p1, %r60, 8;
    @%p1 bra GONE;
    elect.sync %r1|%p2, 255;
    selp.b32 %r2, 1, 2, %p2;
    st.global.b32 [%d62], %r2;
    GONE:
    """
    ran = bench(body)
    assert ran.words().tolist() == [1] + [2] * 7 + [0] * 24
    assert not ran.findings


def test_shuffles(bench: Any) -> None:
    """Each mode against the rule of the PTX ISA, written lane by lane."""
    rules: dict[str, Callable[[int], int]] = {
        "idx.b32 %r2, %r1, %r3, 31": lambda lane: (7 * lane) % 32,
        "bfly.b32 %r2, %r1, 5, 31": lambda lane: lane ^ 5,
        "up.b32 %r2, %r1, 3, 0": lambda lane: lane - 3 if lane >= 3 else lane,
        "down.b32 %r2, %r1, 3, 31": lambda lane: lane + 3 if lane + 3 < 32 else lane,
        "bfly.b32 %r2, %r1, 1, 6175": lambda lane: lane ^ 1,  # segments of eight lanes: clamp 31, mask 24
        "down.b32 %r2, %r1, 3, 6151": lambda lane: lane + 3 if lane % 8 + 3 < 8 else lane,
    }
    for text, source in rules.items():
        body = f"""
        add.s32 %r1, %r60, 100;
        mul.lo.s32 %r3, %r60, 7;
        shfl.sync.{text}, -1;
        st.global.b32 [%d62], %r2;
        """
        assert bench(body).words().tolist() == [source(lane) + 100 for lane in range(32)], text


def test_a_register_written_by_some_lanes_only(bench: Any) -> None:
    body = """
    setp.lt.u32 %p1, %r60, 16;
    @%p1 mov.b32 %r1, 5;
    @%p1 st.global.b32 [%d62], %r1;
    """
    fine = bench(body)
    assert fine.words().tolist() == [5] * 16 + [0] * 16
    assert not fine.findings
    assert bench(body + "st.global.b32 [%d62], %r1;").kinds == {"uninitialised_register"}
    assert bench("add.s32 %r2, %r1, 1;").kinds == {"uninitialised_register"}


def test_an_endless_loop_is_a_runaway(bench: Any) -> None:
    ran = bench("FOREVER:\nbra FOREVER;", budget=1000)
    (finding,) = ran.findings
    assert finding.kind == "runaway"
    assert "warp 0 at PTX line" in finding.message


def test_special_registers_of_a_grid(bench: Any) -> None:
    body = """
    mov.u32 %r1, %ctaid.z;
    mov.u32 %r2, %nctaid.z;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %laneid;
    mad.lo.s32 %r5, %r1, 100, %r2;
    mad.lo.s32 %r5, %r5, 100, %r3;
    mad.lo.s32 %r5, %r5, 100, %r4;
    shl.b32 %r6, %r1, 9;
    cvt.u64.u32 %d1, %r6;
    add.s64 %d1, %d1, %d62;
    st.global.b32 [%d1], %r5;
    """
    ran = bench(body, warps=2, ctas=3, out_bytes=3 * 512)
    assert not ran.findings
    expected = [((cta * 100 + 3) * 100 + 64) * 100 + thread % 32 for cta in range(3) for thread in range(64)]
    assert ran.words().tolist() == np.array(expected, np.uint32).tolist()


@pytest.mark.parametrize("engine", ["compiled", "interpreter"])
def test_lanes_that_leave_under_a_guard_do_not_take_the_others_along(bench: Any, engine: str) -> None:
    body = "setp.ge.u32 %p1, %r60, 30;\n@%p1 ret;\nst.global.b32 [%d62], 7;\nsetp.ne.u32 %p2, %r60, 3;\n@!%p2 exit;\n"
    ran = bench(body + "st.global.b32 [%d62], 9;", engine=engine)
    assert ran.findings == ()
    assert ran.words().tolist() == [7 if lane == 3 else 9 if lane < 30 else 0 for lane in range(32)]


def test_a_trap_is_a_finding(bench: Any) -> None:
    assert bench("setp.eq.u32 %p1, %r60, 5;\n@%p1 trap;\n").kinds == {"trap"}
    assert bench("setp.eq.u32 %p1, %r60, 99;\n@%p1 trap;\n").kinds == set()


@pytest.mark.parametrize("engine", ["compiled", "interpreter"])
@pytest.mark.parametrize("order", ["eager", "lazy", "random", "systematic"])
@pytest.mark.parametrize("leaves", ["ret", "exit", "a guard"])
def test_lanes_that_wait_for_others_which_leave_go_on(
    bench: Any, leaves: str, order: str, engine: str
) -> None:
    """Those that leave come later in the text, so that the others wait first; then the loop sends lanes away one pair
    after the other."""
    guarded = leaves == "a guard"
    body = f"""
    setp.ge.u32 %p1, %r60, 20;
    mov.b32 %r1, 0;
    and.b32 %r2, %r60, -2;
    @%p1 bra LATER;
    AGAIN:
    bar.warp.sync -1;
    shfl.sync.bfly.b32 %r3, %r60, 1, 31, -1;
    vote.sync.ballot.b32 %r4, %p1, -1;
    add.s32 %r1, %r1, 1;
    setp.lt.u32 %p2, %r1, %r2;
    @%p2 bra AGAIN;
    shl.b32 %r5, %r1, 8;
    add.s32 %r5, %r5, %r3;
    st.global.b32 [%d62], %r5;
    ret;
    LATER:
    mov.b32 %r5, 77;
    st.global.b32 [%d62], %r5;
    {"@%p1 ret;" if guarded else leaves + ";"}
    """
    expected = [(max(1, lane & -2) << 8) + (lane ^ 1) if lane < 20 else 77 for lane in range(32)]
    ran = bench(body, order=order, engine=engine)
    assert ran.words().tolist() == expected
    assert not ran.findings


def test_lanes_that_are_still_there_are_waited_for(bench: Any) -> None:
    """Half of the lanes wait for all at one barrier, the others at another."""
    body = """
    setp.ge.u32 %p1, %r60, 16;
    @%p1 bra OTHER;
    bar.warp.sync -1;
    st.global.b32 [%d62], %r60;
    ret;
    OTHER:
    shfl.sync.bfly.b32 %r3, %r60, 1, 31, -1;
    st.global.b32 [%d62], %r3;
    """
    assert bench(body).kinds == {"hang"}
