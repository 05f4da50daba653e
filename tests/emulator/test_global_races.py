"""Accesses to global memory that nothing orders: found, with the line of the other access; ordered ones are not."""

from __future__ import annotations

from typing import Any

import pytest

FIRST = "setp.eq.u32 %p1, %r62, 0;\n"
BARRIER = "bar.sync 0;\n"


@pytest.mark.parametrize("engine", ["compiled", "interpreter"])
@pytest.mark.parametrize("order", ["eager", "random"])
def test_two_warps_and_a_barrier(bench: Any, engine: str, order: str) -> None:
    store = "@%p1 st.global.b32 [%d62], %r60;\n"
    load = "add.s64 %d3, %d61, 8;\n@!%p1 ld.global.b32 %r3, [%d3];\n"
    cases: dict[str, set[str]] = {
        store + BARRIER + load: set(),
        store + load: {"race_global"},
        load + BARRIER + store: set(),
        load + store: {"race_global"},
        store + BARRIER + "@!%p1 st.global.b32 [%d61+264], %r62;\n": set(),
    }
    for body, expected in cases.items():
        assert bench(FIRST + body, warps=2, engine=engine, order=order).kinds == expected, body


def test_lanes_that_write_one_place(bench: Any) -> None:
    assert bench("st.global.b32 [%d61], %r62;\n").kinds == set()
    assert bench("st.global.b32 [%d61], %r60;\n").kinds == {"race_global"}
    assert bench("st.global.b32 [%d61], %r62;\n", warps=2).kinds == {"race_global"}
    assert bench("st.global.b32 [%d61], %r62;\nbar.sync 0;\nst.global.b32 [%d61], 7;\n").kinds == set()


def test_both_lines_are_named(bench: Any) -> None:
    (found,) = bench(
        FIRST + "@%p1 st.global.b32 [%d61], 1;\n@!%p1 st.global.b32 [%d61], 2;\n", warps=2
    ).findings
    lines = {found.ptx_line, int(found.message.split("PTX line ")[1].split()[0])}
    assert lines == {21, 22}
    assert "write-write race on byte 0 of out" in found.message


def test_two_ctas(bench: Any) -> None:
    mine = "mov.u32 %r5, %ctaid.z;\nmul.wide.u32 %d2, %r5, 256;\nadd.s64 %d2, %d2, %d62;\n"
    options = {"ctas": 2, "out_bytes": 1024}
    assert bench(mine + "st.global.b32 [%d2], %r60;\nld.global.b32 %r3, [%d2];\n", **options).kinds == set()
    assert bench("st.global.b32 [%d62], %r60;\n", **options).kinds == {"global_write_conflict"}
    assert bench(mine + "st.global.b32 [%d2], %r60;\nld.global.b32 %r3, [%d62];\n", **options).kinds == {
        "race_global"
    }
    assert bench(mine + "ld.global.b32 %r3, [%d62+256];\nst.global.b32 [%d2], %r60;\n", **options).kinds == {
        "race_global"
    }
    assert bench(mine + "ld.global.b32 %r3, [%d62];\n", **options).kinds == set()
