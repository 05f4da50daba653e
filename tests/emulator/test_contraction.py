"""Products that the assembler may fuse with the addition after them."""

from __future__ import annotations

from typing import Any

import pytest

SETUP = "mov.b32 %r1, 0f3F800000;\nmov.b32 %r2, 0f40000000;\n"


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        ("mul.f32 %r3, %r1, %r2;\nadd.f32 %r4, %r3, %r1;", {"contracted_mul_add"}),
        ("mul.f32 %r3, %r1, %r2;\nsub.f32 %r4, %r1, %r3;", {"contracted_mul_add"}),
        (
            "mul.f32 %r3, %r1, %r2;\nadd.f32 %r4, %r3, %r1;\nst.global.b32 [%d62], %r3;",
            {"contractible_mul_add"},
        ),
        ("mul.rn.f32 %r3, %r1, %r2;\nadd.f32 %r4, %r3, %r1;", set()),
        ("mul.f32 %r3, %r1, %r2;\nadd.rn.f32 %r4, %r3, %r1;", set()),
        ("mul.f32 %r3, %r1, %r2;\nmul.f32 %r4, %r3, %r1;", set()),
        ("add.f32 %r3, %r1, %r2;\nmul.f32 %r4, %r3, %r1;", set()),
    ],
)
def test_which_pairs_are_exposed(bench: Any, body: str, kinds: set[str]) -> None:
    ran = bench(SETUP + body)
    assert ran.kinds == kinds
    assert all(f.severity == ("error" if f.kind == "contracted_mul_add" else "info") for f in ran.findings)


def test_packed_and_half_precision_pairs(bench: Any) -> None:
    packed = "mov.b64 %d1, {%r1, %r2};\nmul.f32x2 %d2, %d1, %d1;\nadd.f32x2 %d3, %d2, %d1;"
    assert bench(SETUP + packed).kinds == {"contracted_mul_add"}
    half = "mul.f16x2 %r3, %r1, %r2;\nadd.f16x2 %r4, %r3, %r1;"
    assert bench(SETUP + half).kinds == {"contracted_mul_add"}
