"""Products that the assembler may fuse with the addition after them. The classes and counts of the cases are what ptxas
13.5 made of them, counted in the disassembly."""

from __future__ import annotations

from typing import Any

import pytest

from mqa_ref.emulator import parse
from mqa_ref.emulator.contraction import expected_counts, exposed_pairs

SETUP = "mov.b32 %r1, 0f3F800000;\nmov.b32 %r2, 0f40000000;\n"
CERTAIN, POSSIBLE = "contracted_mul_add", "contractible_mul_add"
PRODUCT = "mul.f32 %r3, %r1, %r2;\n"


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        (PRODUCT + "add.f32 %r4, %r3, %r1;", {CERTAIN}),
        (PRODUCT + "sub.f32 %r4, %r1, %r3;", {CERTAIN}),
        (PRODUCT + "add.f32 %r4, %r3, %r1;\nadd.f32 %r5, %r3, %r2;", {CERTAIN}),
        (PRODUCT + "mov.b32 %r5, %r3;\nadd.f32 %r4, %r5, %r1;", {CERTAIN}),
        (PRODUCT + "neg.f32 %r5, %r3;\nadd.f32 %r4, %r5, %r1;", {CERTAIN}),
        (PRODUCT + "add.f32 %r4, %r3, %r1;\nst.global.b32 [%d62], %r3;", {POSSIBLE}),
        (PRODUCT + "add.f32 %r4, %r3, %r3;", {POSSIBLE}),
        (PRODUCT + "add.f32 %r4, %r3, %r1;\nfma.rn.f32 %r5, %r3, %r1, %r2;", {POSSIBLE}),
        (
            PRODUCT + "mov.b32 %r5, %r3;\nshfl.sync.bfly.b32 %r6, %r5, 1, 31, -1;\nadd.f32 %r4, %r3, %r6;",
            {POSSIBLE},
        ),
        (
            "setp.eq.u32 %p1, %r60, 3;\n" + PRODUCT + "@%p1 mul.f32 %r3, %r1, %r1;\nadd.f32 %r4, %r3, %r1;",
            {POSSIBLE},
        ),
        (PRODUCT + "abs.f32 %r5, %r3;\nadd.f32 %r4, %r5, %r1;", set()),
        ("mul.rn.f32 %r3, %r1, %r2;\nadd.f32 %r4, %r3, %r1;", set()),
        (PRODUCT + "add.rn.f32 %r4, %r3, %r1;", set()),
        (PRODUCT + "mul.f32 %r4, %r3, %r1;", set()),
        ("add.f32 %r3, %r1, %r2;\nmul.f32 %r4, %r3, %r1;", set()),
    ],
)
def test_which_pairs_are_exposed(bench: Any, body: str, kinds: set[str]) -> None:
    ran = bench(SETUP + body)
    assert ran.kinds == kinds
    assert all(f.severity == ("error" if f.kind == CERTAIN else "info") for f in ran.findings)


def test_packed_and_half_precision_pairs(bench: Any) -> None:
    packed = "mov.b64 %d1, {%r1, %r2};\nmul.f32x2 %d2, %d1, %d1;\nadd.f32x2 %d3, %d2, %d1;"
    assert bench(SETUP + packed).kinds == {CERTAIN}
    apart = (
        "mov.b64 %d1, {%r1, %r2};\nmul.f32x2 %d2, %d1, %d1;\nmov.b64 {%r3, %r4}, %d2;\nadd.f32 %r5, %r3, %r4;"
    )
    assert bench(SETUP + apart).kinds == set()
    half = "mul.f16x2 %r3, %r1, %r2;\nadd.f16x2 %r4, %r3, %r1;"
    assert bench(SETUP + half).kinds == {CERTAIN}


@pytest.mark.parametrize(
    ("body", "ffma", "fmul", "fadd"),
    [
        ("mul.f32 %f5,%f1,%f2; add.f32 %f6,%f5,%f3;", 1, 0, 0),
        ("mul.f32 %f5,%f1,%f2; add.f32 %f6,%f5,%f3; add.f32 %f7,%f5,%f4;", 2, 0, 0),
        ("mul.f32 %f5,%f1,%f2; mul.f32 %f7,%f3,%f4; add.f32 %f6,%f5,%f7;", 1, 1, 0),
        ("mul.f32 %f5,%f1,%f2; add.f32 %f6,%f5,%f5;", 0, 1, 1),
        ("mul.f32 %f5,%f1,%f2; add.f32 %f6,%f5,%f3; fma.rn.f32 %f7,%f5,%f1,%f2;", 1, 1, 1),
        ("mul.rn.f32 %f5,%f1,%f2; add.f32 %f6,%f5,%f3;", 0, 1, 1),
    ],
)
def test_counts_are_those_of_the_disassembly(body: str, ffma: int, fmul: int, fadd: int) -> None:
    program = parse(
        ".version 8.8 .target sm_90a .address_size 64 .visible .entry k() { .reg .f32 %f<9>; "
        + body
        + " ret; }"
    )
    counts = expected_counts(program)
    assert (counts["FFMA"], counts["FMUL"], counts["FADD"]) == (ffma, fmul, fadd)
    assert counts["FFMA2"] == counts["FMUL2"] == counts["FADD2"] == 0


def test_packed_counts() -> None:
    text = (
        ".version 8.8 .target sm_100a .address_size 64 .visible .entry k() { .reg .b64 %d<9>; "
        "mul.f32x2 %d7,%d5,%d6; add.f32x2 %d8,%d7,%d5; add.rn.f32x2 %d1,%d5,%d6; ret; }"
    )
    counts = expected_counts(parse(text))
    assert (counts["FFMA2"], counts["FMUL2"], counts["FADD2"]) == (1, 0, 1)
    assert len(exposed_pairs(parse(text))) == 1
