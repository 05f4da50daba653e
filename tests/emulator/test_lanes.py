"""Lanes that meet: shuffles, votes, matches, reductions and member masks. Expected values are written from the
pseudocode and the sentences of the PTX ISA, lane by lane."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

DATA = (np.arange(64, dtype=np.uint32) * 2654435761 + 12345).astype(np.uint32)
LOAD = "mul.wide.u32 %d1, %r60, 8;\nadd.s64 %d1, %d60, %d1;\nld.global.v2.b32 {%r1, %r2}, [%d1];\n"
MINE = DATA.reshape(32, 2)[:, 0]


def by_the_book(mode: str, lane: int, by: int, control: int) -> tuple[int, bool]:
    """PTX ISA, "shfl.sync": source lane and predicate."""
    segment, clamp = control >> 8 & 31, control & 31
    most = (lane & segment) | (clamp & ~segment & 31)
    least = lane & segment
    wanted = {"up": lane - by, "down": lane + by, "bfly": lane ^ by, "idx": least | (by & ~segment & 31)}[
        mode
    ]
    inside = wanted >= most if mode == "up" else wanted <= most
    return (wanted, True) if inside else (lane, False)


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@pytest.mark.parametrize("control", [0x1F, 0x0, 0x1C03, 0x1807, 0x181F, 0x1C00])
def test_shuffles_with_segments_and_lanes_out_of_range(bench: Any, mode: str, control: int) -> None:
    for by in (0, 1, 3, 7, 13, 31):
        body = f"mov.b32 %r8, -1;\nshfl.sync.{mode}.b32 %r3|%p1, %r1, {by}, {control}, %r8;\n"
        ran = bench(LOAD + body + "@%p1 add.s32 %r3, %r3, 1;\nst.global.b32 [%d62], %r3;", DATA)
        want = []
        for lane in range(32):
            source, inside = by_the_book(mode, lane, by, control)
            want.append((int(MINE[source]) + inside) & 0xFFFFFFFF)
        assert ran.findings == ()
        assert ran.words().tolist() == want


def half(body: str, other: str = "") -> str:
    """``body`` for lanes 0 to 15, ``other`` for the rest."""
    return (
        "setp.lt.u32 %p1, %r60, 16;\nmov.b32 %r3, 0;\n@!%p1 bra REST;\n" + body + "bra JOIN;\nREST:\n" + other
        + "JOIN:\nst.global.b32 [%d62], %r3;"
    )  # fmt: skip


def test_member_masks_in_registers_and_parts_of_a_warp(bench: Any) -> None:
    low = "mov.b32 %r8, 0xFFFF;\nredux.sync.add.u32 %r3, %r1, %r8;\n"
    high = "mov.b32 %r8, 0xFFFF0000;\nredux.sync.max.s32 %r3, %r1, %r8;\n"
    ran = bench(LOAD + half(low, high), DATA)
    total = sum(int(v) for v in MINE[:16]) & 0xFFFFFFFF
    most = int(MINE[16:].astype(np.int32).max()) & 0xFFFFFFFF
    assert ran.findings == ()
    assert ran.words().tolist() == [total] * 16 + [most] * 16


@pytest.mark.parametrize(
    ("body", "want"),
    [
        ("vote.sync.ballot.b32 %r3, %p2, -1;", [sum(1 << i for i in range(32) if MINE[i] & 64)] * 32),
        ("vote.sync.ballot.b32 %r3, !%p2, -1;", [sum(1 << i for i in range(32) if not MINE[i] & 64)] * 32),
        ("vote.sync.any.pred %p3, %p2, -1;\nselp.b32 %r3, 1, 0, %p3;", [1] * 32),
        ("vote.sync.all.pred %p3, %p2, -1;\nselp.b32 %r3, 1, 0, %p3;", [0] * 32),
        ("vote.sync.uni.pred %p3, %p2, -1;\nselp.b32 %r3, 1, 0, %p3;", [0] * 32),
        (
            "and.b32 %r4, %r1, 7;\nmatch.any.sync.b32 %r3, %r4, -1;",
            [sum(1 << j for j in range(32) if MINE[j] & 7 == MINE[i] & 7) for i in range(32)],
        ),
        ("match.all.sync.b32 %r3|%p3, %r4, -1;\n@%p3 add.s32 %r3, %r3, 5;", [4] * 32),
        ("match.all.sync.b32 %r3|%p3, %r1, -1;\n@%p3 add.s32 %r3, %r3, 5;", [0] * 32),
        ("redux.sync.xor.b32 %r3, %r1, -1;", [int(np.bitwise_xor.reduce(MINE))] * 32),
        ("redux.sync.min.u32 %r3, %r1, -1;", [int(MINE.min())] * 32),
        ("activemask.b32 %r3;", [0xFFFFFFFF] * 32),
    ],
)
def test_votes_matches_and_reductions(bench: Any, body: str, want: list[int]) -> None:
    odd = "mov.b32 %r4, 9;\nand.b32 %r5, %r1, 64;\nsetp.eq.u32 %p2, %r5, 64;\n"
    ran = bench(LOAD + odd + body + "\nst.global.b32 [%d62], %r3;", DATA)
    assert ran.findings == ()
    assert ran.words().tolist() == want


def test_a_lane_that_its_mask_does_not_name(bench: Any) -> None:
    assert bench(LOAD + "shfl.sync.bfly.b32 %r3, %r1, 1, 31, 0xFFFF;", DATA).kinds == {"sync_misuse"}
    assert bench("bar.warp.sync 0x7FFFFFFF;").kinds == {"sync_misuse"}


def test_a_shuffle_from_a_lane_that_takes_no_part(bench: Any) -> None:
    assert bench(LOAD + half("shfl.sync.idx.b32 %r3, %r1, 20, 31, 0xFFFF;\n"), DATA).kinds == {"sync_misuse"}
    assert bench(LOAD + half("shfl.sync.idx.b32 %r3, %r1, 20, 15, 0xFFFF;\n"), DATA).kinds == set()
    gone = "setp.ge.u32 %p1, %r60, 30;\n@%p1 ret;\nshfl.sync.down.b32 %r3, %r1, 2, 31, -1;\n"
    for engine in ("interpreter", "compiled"):
        assert bench(LOAD + gone, DATA, engine=engine).kinds == {"sync_misuse"}, engine


def test_lanes_that_never_come_are_a_hang(bench: Any) -> None:
    """Lanes of the other half wait elsewhere, under a mask that names the first half."""
    stuck = "bar.warp.sync -1;\nadd.s32 %r3, %r3, 1;\n"
    assert bench(LOAD + half(stuck, "redux.sync.add.u32 %r3, %r1, -1;\n"), DATA).kinds == {"hang"}


def test_barriers_named_by_registers(bench: Any) -> None:
    body = (
        "shr.u32 %r3, %r62, 1;\nadd.s32 %r4, %r3, 5;\nmov.b32 %r5, 64;\nshl.b32 %r6, %r60, 2;\n"
        "add.s32 %r6, %r6, %r61;\nst.shared.b32 [%r6], %r60;\nbar.sync %r4, %r5;\nxor.b32 %r7, %r60, 32;\n"
        "shl.b32 %r7, %r7, 2;\nadd.s32 %r7, %r7, %r61;\nld.shared.b32 %r8, [%r7];\nst.global.b32 [%d62], %r8;"
    )
    ran = bench(body, warps=4)
    assert ran.findings == ()
    assert ran.words().tolist() == [thread ^ 32 for thread in range(128)]
    assert (
        "race_shared"
        in bench(body.replace("bar.sync %r4, %r5;", ""), warps=4, order="lazy").kinds
        | bench(body.replace("bar.sync %r4, %r5;", ""), warps=4).kinds
    )
