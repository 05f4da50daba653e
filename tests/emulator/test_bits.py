"""Bit fields, funnel shifts, counts: against the pseudocode of the PTX ISA on plain integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.emulator.opcodes.twins_bits import field, funnel, insert

DATA = np.random.Generator(np.random.Philox(7)).integers(0, 2**32, 64, np.uint32)
LOAD = "mul.wide.u32 %d1, %r60, 8;\nadd.s64 %d1, %d60, %d1;\nld.global.v2.b32 {%r1, %r2}, [%d1];\n"
PAIRS = [(int(a), int(b)) for a, b in DATA.reshape(32, 2)]
CASES: dict[str, Callable[[int, int], int]] = {
    "bfe.u32 %r3, %r1, %r6, %r7;": lambda a, b: field(a, b & 63, b >> 8 & 63, 32, signed=False),
    "bfe.s32 %r3, %r1, %r6, %r7;": lambda a, b: field(a, b & 63, b >> 8 & 63, 32, signed=True),
    "bfi.b32 %r3, %r1, %r2, %r6, %r7;": lambda a, b: insert(a, b, b & 63, b >> 8 & 63, 32),
    "shf.l.wrap.b32 %r3, %r1, %r2, %r6;": lambda a, b: funnel(a, b, b & 31, left=True),
    "shf.r.wrap.b32 %r3, %r1, %r2, %r6;": lambda a, b: funnel(a, b, b & 31, left=False),
    "shf.l.clamp.b32 %r3, %r1, %r2, %r6;": lambda a, b: funnel(a, b, min(b & 63, 32), left=True),
    "shf.r.clamp.b32 %r3, %r1, %r2, %r6;": lambda a, b: funnel(a, b, min(b & 63, 32), left=False),
    "shr.u32 %r4, %r1, %r6;\nclz.b32 %r3, %r4;": lambda a, b: 32 - (a >> (b & 63)).bit_length(),
    "brev.b32 %r3, %r1;": lambda a, b: int(f"{a:032b}"[::-1], 2),
    "popc.b32 %r3, %r1;": lambda a, b: a.bit_count(),
}


@pytest.mark.parametrize("text", CASES)
def test_against_the_pseudocode(bench: Any, text: str) -> None:
    setup = "and.b32 %r6, %r2, 63;\nshr.u32 %r7, %r2, 8;\nand.b32 %r7, %r7, 63;\n"
    ran = bench(LOAD + setup + text + "\nst.global.b32 [%d62], %r3;", DATA)
    assert ran.findings == ()
    assert ran.words().tolist() == [CASES[text](a, b) for a, b in PAIRS]


@pytest.mark.parametrize("signed", [True, False])
def test_fields_of_64_bits(bench: Any, signed: bool) -> None:
    for position in (0, 5, 31, 32, 60, 63, 64, 200):
        for length in (0, 1, 4, 32, 63, 64, 255):
            name = "bfe.s64" if signed else "bfe.u64"
            body = f"mov.b64 %d2, {{%r1, %r2}};\n{name} %d3, %d2, {position}, {length};\nst.global.b64 [%d62], %d3;"
            wanted = [field(b << 32 | a, position, length, 64, signed=signed) for a, b in PAIRS]
            assert bench(LOAD + body, DATA).words(np.uint64).tolist() == wanted


def test_insertion_into_64_bits(bench: Any) -> None:
    for position, length in ((0, 64), (3, 7), (40, 24), (60, 10), (64, 5), (7, 0)):
        body = f"mov.b64 %d2, {{%r1, %r2}};\nmov.b64 %d4, {{%r2, %r1}};\nbfi.b64 %d3, %d2, %d4, {position}, {length};\n"
        wanted = [insert(b << 32 | a, a << 32 | b, position, length, 64) for a, b in PAIRS]
        assert bench(LOAD + body + "st.global.b64 [%d62], %d3;", DATA).words(np.uint64).tolist() == wanted


@pytest.mark.parametrize("engine", ["compiled", "interpreter"])
@pytest.mark.parametrize(("number", "holds"), [(0, False), (1, True), (-1, True), (2, True), (-2, True)])
def test_a_number_as_a_predicate(bench: Any, engine: str, number: int, holds: bool) -> None:
    """Every number but 0 is true (PTX ISA, "Predicate Constants")."""
    body = f"mov.pred %p1, {number};\nselp.b32 %r1, 7, 9, %p1;\nst.global.b32 [%d62], %r1;"
    assert bench(body, engine=engine).words().tolist() == [7 if holds else 9] * 32
