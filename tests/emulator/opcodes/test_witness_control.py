"""Barriers, shuffles, branches and what changes no value, under the names that the kernels spell, executed: the
expected numbers are worked out here, lane by lane.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mqa_ref.golden.silicon.bodies_nvcc import HINTS

BARRIERS = tuple(
    (space, semantics)
    for space in ("shared", "shared::cta")
    for semantics in (("", ""), (".acquire.cta", ".release.cta"))
)
SHUFFLES = ("shfl.sync.bfly.b32", "shfl.sync.idx.b32", "shfl.sync.up.b32", "shfl.sync.down.b32")
QUIET = (
    "cvta.to.global.u64",
    "griddepcontrol.launch_dependents",
    "griddepcontrol.wait",
    "prefetch.tensormap",
    "setmaxnreg.dec.sync.aligned.u32",
    "setmaxnreg.inc.sync.aligned.u32",
)


def barrier_names(space: str, semantics: tuple[str, str]) -> tuple[str, ...]:
    acquire, release = semantics
    return (
        f"mbarrier.init.{space}.b64",
        f"mbarrier.arrive{release}.{space}.b64",
        f"mbarrier.arrive.expect_tx{release}.{space}.b64",
        f"mbarrier.try_wait.parity{acquire}.{space}.b64",
    )


NAMES = frozenset(
    (
        *(name for each in BARRIERS for name in barrier_names(*each)),
        *("bar.sync", "bar.warp.sync", "bra", "bra.uni", "elect.sync", "ret", "trap"),
        *SHUFFLES,
        *QUIET,
    )
)


@pytest.mark.parametrize("order", ["eager", "lazy", "random"])
@pytest.mark.parametrize(("space", "semantics"), BARRIERS)
def test_mbarriers(bench: Any, space: str, semantics: tuple[str, str], order: str) -> None:
    """Two arrivals complete phase 0, an arrival that counts twice phase 1; warp 1 reads what warp 0 stored before."""
    init, arrive, expect, wait = barrier_names(space, semantics)
    body = f"""
    setp.eq.u32 %p1, %r60, 0;
    @%p1 {init} [%r61], 2;
    bar.sync 0;
    setp.ge.u32 %p2, %r60, 32;
    @%p2 bra READING;
    add.s32 %r1, %r60, 500;
    shl.b32 %r2, %r60, 2;
    add.s32 %r2, %r2, %r61;
    st.shared.b32 [%r2+64], %r1;
    bar.warp.sync -1;
    @%p1 {expect} _, [%r61], 0;
    @%p1 {arrive} _, [%r61];
    bar.sync 0;
    @%p1 {arrive} _, [%r61], 2;
    bra.uni DONE;
    READING:
    {wait} %p3, [%r61], 0, 1000;
    @!%p3 bra READING;
    shl.b32 %r2, %r60, 2;
    add.s32 %r2, %r2, %r61;
    ld.shared.b32 %r1, [%r2+-64];
    bar.sync 0;
    AGAIN:
    {wait} %p4, [%r61], 1;
    @!%p4 bra AGAIN;
    add.s32 %r1, %r1, 1000;
    DONE:
    st.global.b32 [%d62], %r1;
    """
    ran = bench(body, warps=2, order=order)
    assert ran.words().tolist() == [500 + lane for lane in range(32)] + [1500 + lane for lane in range(32)]
    assert not ran.findings
    assert bench(body.replace(f"@%p1 {arrive} _, [%r61], 2;", ""), warps=2, order=order).kinds == {"hang"}


def source(mode: str, lane: int, by: int) -> int:
    """The lane that is read, in segments of 32; its own where that does not exist."""
    wanted = {"bfly": lane ^ by, "idx": by, "up": lane - by, "down": lane + by}[mode]
    return wanted if 0 <= wanted < 32 else lane


@pytest.mark.parametrize("name", SHUFFLES)
def test_shuffles(bench: Any, name: str) -> None:
    mode = name.split(".")[2]
    clamp = 0 if mode == "up" else 31
    for by in (0, 1, 7, 16, 31):
        body = f"mul.lo.s32 %r1, %r60, 1000;\n{name} %r2, %r1, {by}, {clamp}, -1;\nst.global.b32 [%d62], %r2;"
        assert bench(body).words().tolist() == [1000 * source(mode, lane, by) for lane in range(32)]


def test_election_and_warp_barrier(bench: Any) -> None:
    """Lanes 7 to 31 elect 7, all elect 0; then every lane reads what its neighbour wrote before the barrier."""
    body = """
    setp.lt.u32 %p1, %r60, 7;
    mov.b32 %r1, 0;
    @%p1 bra JOIN;
    elect.sync %r1|%p2, 0xFFFFFF80;
    @%p2 add.s32 %r1, %r1, 100;
    JOIN:
    shl.b32 %r2, %r60, 2;
    add.s32 %r2, %r2, %r61;
    st.shared.b32 [%r2], %r1;
    bar.warp.sync -1;
    xor.b32 %r3, %r60, 1;
    shl.b32 %r3, %r3, 2;
    add.s32 %r3, %r3, %r61;
    ld.shared.b32 %r4, [%r3];
    elect.sync %r5|%p3, -1;
    @%p3 add.s32 %r5, %r5, 1000;
    mov.b64 %d1, {%r4, %r5};
    st.global.b64 [%d62], %d1;
    """
    ran = bench(body)
    elected = [0] * 7 + [107] + [7] * 24
    assert ran.out.view(np.uint32).reshape(32, 2).tolist() == [
        [elected[lane ^ 1], 1000 if lane == 0 else 0] for lane in range(32)
    ]
    assert not ran.findings


def test_barrier_of_the_cta(bench: Any) -> None:
    body = """
    shl.b32 %r2, %r60, 2;
    add.s32 %r2, %r2, %r61;
    st.shared.b32 [%r2], %r60;
    bar.sync 0;
    xor.b32 %r3, %r60, 96;
    shl.b32 %r3, %r3, 2;
    add.s32 %r3, %r3, %r61;
    ld.shared.b32 %r4, [%r3];
    st.global.b32 [%d62], %r4;
    """
    ran = bench(body, warps=4)
    assert ran.words().tolist() == [thread ^ 96 for thread in range(128)]
    assert not ran.findings
    assert "race_shared" in bench(body.replace("bar.sync 0;", ""), warps=4).kinds


def test_branches_and_the_end(bench: Any) -> None:
    """A loop that each lane leaves by itself, a jump over a store, and nothing after ret."""
    body = """
    mov.b32 %r1, 0;
    AGAIN:
    add.s32 %r1, %r1, 3;
    setp.lt.u32 %p1, %r1, %r60;
    @%p1 bra AGAIN;
    bra.uni PAST;
    mov.b32 %r1, 77;
    PAST:
    st.global.b32 [%d62], %r1;
    setp.lt.u32 %p2, %r60, 16;
    @%p2 ret;
    add.s32 %r1, %r1, 100;
    st.global.b32 [%d62], %r1;
    """
    ends = [max(3, -(-lane // 3) * 3) + (100 if lane >= 16 else 0) for lane in range(32)]
    assert bench(body).words().tolist() == ends


def test_a_trap_is_a_finding(bench: Any) -> None:
    body = "setp.eq.u32 %p1, %r60, 3;\n@%p1 trap;\nst.global.b32 [%d62], %r60;"
    ran = bench(body)
    assert ran.kinds == {"trap"}
    assert ran.words().tolist() == [0 if lane == 3 else lane for lane in range(32)]
    assert not bench("setp.eq.u32 %p1, %r60, 99;\n@%p1 trap;").findings


def test_what_changes_no_value(bench: Any) -> None:
    """Hints, and the address that cvta gives for global memory: what is stored there is where it belongs."""
    text = "\n".join(
        line for line in HINTS.splitlines() if "map" not in line or line.startswith("prefetch.tensormap")
    )
    text = text.replace("LOADS", "mov.b32 %r1, 5;\nmov.b32 %r2, %r60;\nmov.b64 %d3, 0;\n")
    text = "mov.b64 %d3, 0;\n" + text
    assert all(f"{name} " in text or f"{name};" in text for name in QUIET)
    ran = bench(text, warps=4, overlaps=True)
    assert not ran.findings
    words = ran.out.view(np.uint32).reshape(128, 2)
    assert words[:, 0].tolist() == [5 ^ 0xFFFFFFFF] * 128
    assert words[:, 1].tolist() == list(range(128))


def test_reading_before_the_grid_ahead_has_ended_is_a_finding(bench: Any) -> None:
    body = "{}ld.global.b32 %r1, [%d60];\n{}st.global.b32 [%d62], %r1;"
    wait = "griddepcontrol.wait;\n"
    data = np.array([9, 9], np.uint32)
    assert not bench(body.format(wait, ""), data, overlaps=True).findings
    early = bench(body.format("", wait), data, overlaps=True)
    assert early.kinds == {"read_before_griddepcontrol_wait"}
