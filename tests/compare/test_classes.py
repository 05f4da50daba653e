"""The class of every pair of patterns, worked out from the formats' definitions."""

from __future__ import annotations

import numpy as np
import pytest

from mqa_ref.compare.classes import EQUAL, KINDS, classify
from mqa_ref.numerics import BF16, FP16, FP32, Format

# format: +0, -0, 1.0, the next number, +inf, -inf, quiet NaN, another NaN
WORDS: dict[str, tuple[Format, list[int]]] = {
    "fp32": (
        FP32,
        [0x00000000, 0x80000000, 0x3F800000, 0x3F800001, 0x7F800000, 0xFF800000, 0x7FFFFFFF, 0xFFC00001],
    ),
    "fp16": (FP16, [0x0000, 0x8000, 0x3C00, 0x3C01, 0x7C00, 0xFC00, 0x7FFF, 0xFE01]),
    "bf16": (BF16, [0x0000, 0x8000, 0x3F80, 0x3F81, 0x7F80, 0xFF80, 0x7FFF, 0xFFC1]),
}
# Rows: actual, columns: expected, both in the order above. "." is equal.
TABLE = """
.         zero_sign value value inf  inf  nan nan
zero_sign .         value value inf  inf  nan nan
value     value     .     value inf  inf  nan nan
value     value     value .     inf  inf  nan nan
inf       inf       inf   inf   .    inf_sign nan nan
inf       inf       inf   inf   inf_sign .    nan nan
nan       nan       nan   nan   nan  nan  .   .
nan       nan       nan   nan   nan  nan  .   .
"""


@pytest.mark.parametrize("name", WORDS)
def test_every_pair_of_kinds_of_number(name: str) -> None:
    fmt, words = WORDS[name]
    bits = np.array(words, f"uint{fmt.bits}")
    actual, expected = np.meshgrid(bits, bits, indexing="ij")
    kinds = classify(actual, expected, np.ones(actual.shape, np.bool_), fmt)
    told = [["." if kind == EQUAL else KINDS[kind] for kind in row] for row in kinds]
    assert told == [line.split() for line in TABLE.strip().splitlines()]


@pytest.mark.parametrize("name", WORDS)
def test_unwritten_comes_first_even_when_the_poison_is_right(name: str) -> None:
    fmt, words = WORDS[name]
    bits = np.array(words, f"uint{fmt.bits}")
    kinds = classify(bits, bits, np.zeros(bits.shape, np.bool_), fmt)
    assert [KINDS[kind] for kind in kinds] == ["unwritten"] * len(words)


def test_the_order_of_the_classes() -> None:
    assert KINDS == ("unwritten", "nan", "inf", "inf_sign", "zero_sign", "value")
