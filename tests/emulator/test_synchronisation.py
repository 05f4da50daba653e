"""Barriers and races: small programs that are right, and the same programs with one thing missing."""

from __future__ import annotations

from typing import Any

import pytest

ORDERS = ["eager", "lazy", "random"]
INIT = """
setp.eq.u32 %p1, %r60, 0;
@%p1 mbarrier.init.shared.b64 [%r61], 1;
@%p1 mbarrier.init.shared.b64 [%r61+8], 32;
bar.sync 0;
setp.eq.u32 %p2, %r62, 0;
and.b32 %r1, %r60, 31;
setp.eq.u32 %p3, %r1, 0;
"""
# Warp 0 writes a word and arrives; warp 1 waits, reads it and lets warp 0 write the next one.
PRODUCER = """
@!%p2 bra CONSUMER;
mov.b32 %r2, 0;
PUT:
{wait_empty}
@%p3 st.shared.b32 [%r61+64], %r2;
{arrive_full}
add.s32 %r2, %r2, 1;
setp.lt.u32 %p4, %r2, 4;
@%p4 bra PUT;
bra END;
"""
CONSUMER = """
CONSUMER:
mov.b32 %r3, 0;
mov.b32 %r2, 0;
GET:
and.b32 %r4, %r2, 1;
{wait_full}
ld.shared.b32 %r5, [%r61+64];
add.s32 %r3, %r3, %r5;
{arrive_empty}
add.s32 %r2, %r2, 1;
setp.lt.u32 %p4, %r2, 4;
@%p4 bra GET;
st.global.b32 [%d62], %r3;
END:
"""
PARTS = {
    "wait_empty": "and.b32 %r4, %r2, 1;\nxor.b32 %r4, %r4, 1;\nWE:\n"
    "mbarrier.try_wait.parity.shared.b64 %p5, [%r61+8], %r4, 9;\n@!%p5 bra WE;",
    "arrive_full": "@%p3 mbarrier.arrive.shared.b64 _, [%r61];",
    "wait_full": "WF:\nmbarrier.try_wait.parity.shared.b64 %p5, [%r61], %r4, 9;\n@!%p5 bra WF;",
    "arrive_empty": "mbarrier.arrive.shared.b64 _, [%r61+8];",
}


def pipeline(**changes: str) -> str:
    parts = {**PARTS, **changes}
    return INIT + PRODUCER.format(**parts) + CONSUMER.format(**parts)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_right_pipeline_is_not_accused(bench: Any, order: str, seed: int) -> None:
    ran = bench(pipeline(), warps=2, order=order, seed=seed)
    assert not ran.findings
    assert ran.words().tolist() == [0] * 32 + [0 + 1 + 2 + 3] * 32


@pytest.mark.parametrize("engine", ["compiled", "interpreter"])
@pytest.mark.parametrize("wait", ["wait_empty", "wait_full"])
def test_a_wait_without_a_loop_is_found_in_random_orders(bench: Any, wait: str, engine: str) -> None:
    """try_wait may give up: whoever does not look at what it says goes on too early."""
    once = pipeline(**{wait: PARTS[wait].rpartition("\n")[0]})
    ran = [bench(once, warps=2, order="random", seed=seed, engine=engine) for seed in range(4)]
    assert set().union(*(one.kinds for one in ran)) & {"race_shared", "uninitialised_shared", "hang"}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("missing", ["wait_empty", "wait_full"])
def test_a_missing_wait_is_found(bench: Any, order: str, missing: str) -> None:
    """The reader that does not wait races; a writer that does not runs ahead by phases that the reader misses."""
    ran = bench(pipeline(**{missing: ""}), warps=2, order=order)
    expected = {"hang", "race_shared"} if missing == "wait_empty" else {"race_shared", "uninitialised_shared"}
    assert ran.kinds & expected


@pytest.mark.parametrize("missing", ["arrive_full", "arrive_empty"])
def test_a_missing_arrival_is_a_hang_that_names_the_barrier(bench: Any, missing: str) -> None:
    ran = bench(pipeline(**{missing: ""}), warps=2)
    (finding,) = [f for f in ran.findings if f.kind == "hang"]
    barrier, count = (0, "1 of 1") if missing == "arrive_full" else (8, "32 of 32")
    assert f"the mbarrier at shared offset {barrier}, phase parity" in finding.message
    assert f"{count} arrivals and 0 bytes missing" in finding.message


def test_two_arrivals_for_one_skip_a_phase(bench: Any) -> None:
    ran = bench(pipeline(arrive_full=PARTS["arrive_full"] * 2), warps=2)
    assert ran.kinds == {"hang"}


def test_a_phase_that_expects_bytes_never_completes_without_them(bench: Any) -> None:
    body = f"""{INIT}
    @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r61], 16;
    W:
    mbarrier.try_wait.parity.shared.b64 %p5, [%r61], 0, 9;
    @!%p5 bra W;
    """
    (finding,) = bench(body).findings
    assert finding.kind == "hang"
    assert "phase 0: 0 of 1 arrivals and 16 bytes missing" in finding.message


def test_over_arrival_at_a_phase_that_waits_for_bytes(bench: Any) -> None:
    body = f"""{INIT}
    @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r61], 16;
    @%p1 mbarrier.arrive.shared.b64 _, [%r61];
    """
    assert bench(body).kinds == {"mbarrier_over_arrival"}


def test_uses_of_an_mbarrier_that_is_not_there(bench: Any) -> None:
    assert bench("mbarrier.arrive.shared.b64 _, [%r61];").kinds == {"mbarrier_misuse"}
    assert bench(INIT + "@%p1 mbarrier.init.shared.b64 [%r61], 1;").kinds == {"mbarrier_misuse"}
    assert bench(INIT + "ld.shared.b32 %r9, [%r61+4];").kinds == {"mbarrier_misuse", "uninitialised_shared"}
    assert bench("setp.eq.u32 %p1, %r60, 0;\n@%p1 mbarrier.init.shared.b64 [%r61], 0;").kinds == {
        "mbarrier_misuse"
    }


def test_an_mbarrier_used_before_its_initialisation_is_known(bench: Any) -> None:
    """Without the CTA barrier warp 1 arrives at an object that warp 0 may not have initialised."""
    body = INIT.replace("bar.sync 0;", "") + "@!%p2 mbarrier.arrive.shared.b64 _, [%r61+8];"
    assert bench(body, warps=2).kinds == {"mbarrier_misuse"}
    assert not bench(INIT + "@!%p2 mbarrier.arrive.shared.b64 _, [%r61+8];", warps=2).findings


SHARE = """
shl.b32 %r1, %r60, 2;
add.s32 %r1, %r1, %r61;
st.shared.b32 [%r1], %r60;
{barrier}
xor.b32 %r2, %r60, 32;
shl.b32 %r2, %r2, 2;
add.s32 %r2, %r2, %r61;
ld.shared.b32 %r3, [%r2];
st.global.b32 [%d62], %r3;
"""


@pytest.mark.parametrize("order", ORDERS)
def test_bar_sync_orders_two_warps(bench: Any, order: str) -> None:
    ran = bench(SHARE.format(barrier="bar.sync 3, 64;"), warps=2, order=order)
    assert not ran.findings
    assert ran.words().tolist() == [thread ^ 32 for thread in range(64)]
    assert bench(SHARE.format(barrier=""), warps=2, order=order).kinds & {
        "race_shared",
        "uninitialised_shared",
    }


def test_a_barrier_for_more_threads_than_come(bench: Any) -> None:
    (finding,) = (bench(SHARE.format(barrier="bar.sync 3, 96;"), warps=2).kinds - {"mbarrier_misuse"},)
    assert finding == {"hang"}


def test_arrive_then_sync(bench: Any) -> None:
    """Warp 1 only arrives, warp 0 waits for both and reads what warp 1 wrote."""
    body = """
    setp.eq.u32 %p1, %r62, 1;
    @%p1 bra WRITER;
    bar.sync 2, 64;
    ld.shared.b32 %r1, [%r61];
    st.global.b32 [%d62], %r1;
    bra END;
    WRITER:
    st.shared.b32 [%r61], 77;
    bar.arrive 2, 64;
    END:
    """
    ran = bench(body, warps=2)
    assert not ran.findings
    assert ran.words().tolist() == [77] * 32 + [0] * 32


@pytest.mark.parametrize(
    "store",
    ["st.shared.b16 [%r1]", "st.volatile.shared.b16 [%r1]", "st.shared::cta.b16 [%r1]", "st.b16 [%d1]"],
)
def test_neighbouring_bytes_are_different_places(bench: Any, store: str) -> None:
    """Two warps write the two halves of one word: no race, whatever the granule of other programs."""
    body = f"""
    shl.b32 %r1, %r62, 1;
    add.s32 %r1, %r1, %r61;
    and.b32 %r2, %r60, 31;
    setp.eq.u32 %p1, %r2, 0;
    cvt.u16.u32 %h1, %r60;
    cvt.u64.u32 %d1, %r1;
    cvta.shared.u64 %d1, %d1;
    @%p1 {store}, %h1;
    bar.sync 0;
    ld.shared.b32 %r3, [%r61];
    st.global.b32 [%d62], %r3;
    """
    ran = bench(body, warps=2)
    assert not ran.findings
    assert ran.words().tolist() == [32 << 16] * 64
    same = body.replace("shl.b32 %r1, %r62, 1;", "mov.b32 %r1, 0;")
    assert bench(same, warps=2).kinds == {"race_shared", "uninitialised_shared"}
