"""Arithmetic that passes a carry on, against Python's integers of any size; and volatile accesses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

LOAD = """
mul.wide.u32 %d1, %r60, 32;
add.s64 %d1, %d60, %d1;
ld.global.v2.b64 {%d2, %d3}, [%d1];
ld.global.v2.b64 {%d4, %d5}, [%d1+16];
"""
STORE = """
mul.wide.u32 %d62, %r60, 32;
add.s64 %d62, %d61, %d62;
st.global.v2.b64 [%d62], {%d10, %d11};
st.global.v2.b64 [%d62+16], {%d12, %d13};
"""
EDGES = (0, 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, (1 << 64) - 2, 0xFFFFFFFF, 1 << 32)


def operands() -> Any:
    """Two numbers of 128 bits for each lane, lower halves first."""
    draw = np.random.default_rng(3)
    table = draw.integers(0, 1 << 64, (32, 4), np.uint64)
    edges = np.array(EDGES, np.uint64)[draw.integers(0, len(EDGES), (32, 4))]
    return np.where(draw.random((32, 4)) < 0.6, edges, table)


def ran(bench: Any, body: str, engine: str) -> list[list[int]]:
    done = bench(LOAD + body + STORE, operands(), out_bytes=32 * 32, engine=engine)
    assert not done.findings
    rows: list[list[int]] = done.out.view(np.uint64).reshape(32, 4).tolist()
    return rows


def parts(number: int, count: int = 4) -> list[int]:
    return [number >> (64 * place) & (1 << 64) - 1 for place in range(count)]


@pytest.mark.parametrize("engine", ["compiled", "interpreter"])
@pytest.mark.parametrize("sign", ["s", "u"])
@pytest.mark.parametrize(("name", "direction"), [("add", 1), ("sub", -1)])
def test_sums_and_differences_of_128_bits(
    bench: Any, name: str, direction: int, sign: str, engine: str
) -> None:
    body = f"""
    {name}.cc.{sign}64 %d10, %d2, %d4;
    {name}c.cc.{sign}64 %d11, %d3, %d5;
    {name}c.{sign}64 %d12, 0, 0;
    mov.b64 %d13, 0;
    """
    expected = []
    for a0, a1, b0, b1 in operands().tolist():
        total = (a0 | a1 << 64) + direction * (b0 | b1 << 64)
        # The carry into the third word, or the borrow from it.
        expected.append([*parts(total & (1 << 128) - 1, 2), *parts((total >> 128) & (1 << 64) - 1, 1), 0])
    assert ran(bench, body, engine) == expected


@pytest.mark.parametrize("engine", ["compiled", "interpreter"])
def test_a_product_of_128_bits(bench: Any, engine: str) -> None:
    """By the school's method."""
    body = """
    mul.lo.u64 %d10, %d2, %d4;
    mul.hi.u64 %d11, %d2, %d4;
    mad.lo.cc.u64 %d11, %d3, %d4, %d11;
    madc.hi.u64 %d12, %d3, %d4, 0;
    mad.lo.cc.u64 %d11, %d2, %d5, %d11;
    madc.hi.cc.u64 %d12, %d2, %d5, %d12;
    addc.u64 %d13, 0, 0;
    mad.lo.cc.u64 %d12, %d3, %d5, %d12;
    madc.hi.u64 %d13, %d3, %d5, %d13;
    """
    expected = [parts((a0 | a1 << 64) * (b0 | b1 << 64)) for a0, a1, b0, b1 in operands().tolist()]
    assert ran(bench, body, engine) == expected


def test_only_the_lanes_that_execute_it_get_a_carry(bench: Any) -> None:
    """Every lane clears its carry; lanes of odd number set theirs under a guard, on words of 32 bits."""
    body = """
    mov.b32 %r1, -1;
    add.cc.u32 %r2, 0, 0;
    and.b32 %r3, %r60, 1;
    setp.ne.u32 %p1, %r3, 0;
    @%p1 add.cc.u32 %r2, %r1, %r1;
    addc.u32 %r4, %r60, 100;
    st.global.b32 [%d62], %r4;
    """
    assert bench(body).words().tolist() == [lane + 100 + lane % 2 for lane in range(32)]


def test_volatile_accesses_are_accesses(bench: Any) -> None:
    body = """
    shl.b32 %r1, %r60, 2;
    add.s32 %r1, %r1, %r61;
    st.volatile.shared.u32 [%r1], %r60;
    bar.sync 0;
    xor.b32 %r2, %r1, 128;
    ld.volatile.shared.u32 %r3, [%r2];
    ld.volatile.global.u32 %r4, [%d60];
    add.s32 %r3, %r3, %r4;
    st.volatile.global.u32 [%d62], %r3;
    """
    data = np.array([7, 0], np.uint32)
    ran = bench(body, data, warps=2)
    assert ran.words().tolist() == [(thread ^ 32) + 7 for thread in range(64)]
    assert not ran.findings
    assert bench(body.replace("bar.sync 0;", ""), data, warps=2).kinds & {
        "race_shared",
        "uninitialised_shared",
    }
