"""Causes in the bits alone, on words chosen by hand: constants, a common factor, the logits of another place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mqa_ref.compare.families import Sample
from mqa_ref.compare.patterns import common_factor, constants, patterns, shared_quotient
from mqa_ref.flow import Flow
from mqa_ref.numerics import BF16, FP16, FP32

FP32_FLOW, FP16_FLOW = Flow.parse("fp32-fp32-fp32"), Flow.parse("fp32-fp16-fp16")
NAN = float("nan")


def words(values: Any, dtype: Any = np.float32) -> np.ndarray:
    kind = np.uint32 if dtype is np.float32 else np.uint16
    with np.errstate(over="ignore"):
        return np.asarray(values, np.float64).astype(dtype).view(kind)


def sample(found: Any, expected: Any, dtype: Any = np.float32) -> Sample:
    at = np.arange(len(found))
    return Sample(np.zeros_like(at), at, words(found, dtype), words(expected, dtype))


def factor(found: Any, expected: Any, flow: Flow = FP32_FLOW, dtype: Any = np.float32) -> str | None:
    return common_factor(flow, sample(found, expected, dtype))


def test_constants() -> None:
    zeros = ("zeros, as if nothing was computed or the result was cleared",)
    assert constants(words([0.0, -0.0]), FP32) == zeros
    assert constants(words([0.0, 0.0, 0.0]), FP32) == zeros
    assert constants(words([1.5, 1.5]), FP32) == ("one constant, 0x3fc00000",)
    assert constants(words([1.5, 1.5, 1.5], np.float16), FP16) == ("one constant, 0x3e00",)
    assert constants(np.array([0x7FC0] * 2, np.uint16), BF16) == ("one constant, 0x7fc0",)
    for none in ([], [0.0], [1.5], [1.5, 1.5, 2.0], [2.0, 1.5, 1.5], [1.0, 2.0, 3.0], [0.0, 1.0]):
        assert constants(words(none), FP32) == ()


RIGHT = np.array([1.1, 2.3, 3.7, 5.9, 9.13])


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (2, "2"),
        (0.5, "0.5"),
        (-1, "-1"),
        (-3, "-3"),
        (0.1, "0.1"),
        (1.003, "1.003"),
        (448, "448"),
        (1e-5, "1e-05"),
    ],
)
def test_a_factor_in_as_few_digits_as_say_it(number: float, told: str) -> None:
    right = RIGHT.astype(np.float32).astype(np.float64)
    assert factor(right * number, right) == told
    assert factor(-right * number, -right) == told
    assert factor(right[:4] * number, right[:4]) == told


def test_what_is_no_factor() -> None:
    right = RIGHT.astype(np.float32).astype(np.float64)
    wrong = right * 2
    wrong[2] *= 1 + 2.0**-20  # 2**-24 * 16, four times what three roundings may be
    assert factor(wrong, right) is None
    wrong[2] = right[2] * 2 * (1 + 2.0**-23)  # within them
    assert factor(wrong, right) == "2"
    assert factor(right, right) is None, "it might be one"
    assert factor(right * (1 + 2.0**-24), right) is None
    assert factor(right * [2, 2, 2, 2, -2], right) is None
    assert factor(right * [-2, 2, 2, 2, 2], right) is None
    assert factor(right * [2, 2, 0.5, 2, 2], right) is None
    assert factor(right[:3] * 2, right[:3]) is None, "three numbers are too few"
    assert factor([2, 2, 4, 6, 6], [1, 1, 2, 3, 3]) is None, "three different ones too"
    assert factor([2, 2, 4, 6, 8], [1, 1, 2, 3, 4]) == "2"
    for other in (0.0, NAN, np.inf, -np.inf):
        assert factor([*(right * 2), other], [*right, 1.0]) is None
        assert factor([*(right * 2), 1.0], [*right, other]) is None
    assert factor([*(right * 2), NAN], [*right, NAN]) is None


def test_subnormal_numbers_are_no_part_of_a_factor() -> None:
    """The least normal numbers of fp32 and fp16 are 2**-126 and 2**-14, on both sides."""
    small = np.array([1.0, 1.25, 1.5, 1.75])
    assert factor(small * 2.0**-125, small * 2.0**-126) == "2"
    assert factor(small * 2.0**-126, small * 2.0**-127) is None
    assert factor(small * 2.0**-127, small * 2.0**-126) is None
    half: dict[str, Any] = {"flow": FP16_FLOW, "dtype": np.float16}
    assert factor(small * 2.0**-13, small * 2.0**-14, **half) == "2"
    assert factor(small * 2.0**-14, small * 2.0**-15, **half) is None
    # An fp32 output of an fp16 epilogue has the epilogue's roundings and its least number.
    wide = Flow.parse("fp32-fp16-fp32")
    assert factor(small * 2.0**-13, small * 2.0**-14, wide) == "2"
    assert factor(small * 2.0**-14, small * 2.0**-15, wide) is None


def test_how_far_apart_quotients_may_be() -> None:
    """Within 4 * 2**-p of the factor on either side: p = 24, 11, 8 for fp32, fp16 and bf16; here the odd one is off by
    so many 2**-p, and its interval must meet that of the others."""
    right = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    for name, precision, dtype in (("fp32-fp32-fp32", 24, np.float32), ("fp32-fp16-fp32", 11, np.float32)):
        for steps, told in ((0, "3"), (7.5, True), (9, None)):
            found = right * 3
            found[3] *= 1 + steps * 2.0**-precision
            got = factor(found, right, Flow.parse(name), dtype)
            assert got == told if told is not True else got is not None, (name, steps)


def quotient(got: Any, right: Any, slack: float) -> str | None:
    values = np.asarray(got, np.float64), np.asarray(right, np.float64)
    return shared_quotient(*values, np.full(len(got), slack))


def test_shared_quotients() -> None:
    right = np.array([1.0, 2.0, 3.0, 5.0])
    assert quotient(right * 2, right, 0.0) == "2", "one number alone is an interval"
    assert quotient(right * (1 / 3), right, 0.0) in {None, "0.3333333333333333"}
    assert quotient(right * 0.3, right, 0.01) == "0.3"
    assert quotient(right * 1.1, right, 0.05) == "1.1"
    assert quotient(right * 1.1, right, 0.2) is None, "one element would not exclude 1"
    assert quotient(right * 1.25, right, 0.2) is None, "1.25 * 0.8 is 1"
    assert quotient(right * 0.8, right, 0.25) is None, "0.8 * 1.25 is 1"
    assert quotient(right * 0.8, right, 0.2) == "0.8"
    assert quotient(right * -1.1, right, 0.2) == "-1", "the sign alone is enough"
    assert quotient(right * [1.2, 0.8, 1.2, 1.2], right, 0.3) is None
    assert quotient(right * [2, 2.5, 2, 2], right, 0.1) is None, "2.2 is below 2.25"
    assert quotient(right * [2, 2.2, 2, 2], right, 0.05) in {"2.1", "2.09"}
    assert quotient([1.0, 2.0, 3.0, 5.0], right / 2, 0.0) == "2", "a one is a number like others"
    assert quotient(right * 0.5, right, 1.0) is None, "0.5 * 2 is 1"
    assert quotient(right * [0.5, -0.5, 0.5, 0.5], right, 0.0) is None
    assert quotient(np.zeros(4), right, 0.1) is None
    assert quotient(np.full(4, np.inf), right, 0.1) is None
    assert quotient([2.0, 4.0, 6.0, np.inf], [1.0, 2.0, 3.0, np.inf], 0.1) is None
    # 1/1024 needs seven digits, 1 + 2**-40 more.
    assert quotient(right / 1024, right, 0.0) == "0.0009765625"
    assert quotient(right * (1 + 2.0**-40), right, 2.0**-45) == "1.0000000000009"


# Six rows of eight columns, all different; two rows of them are shorter.
EXPECTED = words(1.0 + np.arange(48).reshape(6, 8) / 64)
VALID = np.ones((6, 8), np.bool_)
VALID[1, 6:] = VALID[4, 5:] = False


def moved(rows: list[int], columns: list[int], found: Any, valid: np.ndarray = VALID) -> list[str]:
    r, c = np.array(rows), np.array(columns)
    return list(
        patterns(FP32_FLOW, Sample(r, c, np.asarray(found, np.uint32), EXPECTED[r, c]), EXPECTED, valid)
    )


def test_logits_of_another_place() -> None:
    assert moved([2, 2], [1, 2], EXPECTED[2, [4, 5]]) == ["the logits 3 columns further on"]
    assert moved([2, 2], [4, 5], EXPECTED[2, [1, 2]]) == ["the logits 3 columns before"]
    assert moved([2, 2], [4, 6], EXPECTED[2, [5, 7]]) == ["the logits 1 columns further on"]
    assert moved([2, 2], [4, 6], EXPECTED[2, [3, 5]]) == ["the logits 1 columns before"]
    assert moved([2, 3], [4, 5], EXPECTED[[2, 3], [4, 5]] * 0 + EXPECTED[[2, 3], [0, 1]]) == [
        "the logits 4 columns before"
    ]
    assert moved([2, 3], [4, 1], EXPECTED[[3, 4], [4, 1]]) == ["the logits 1 rows further on"]
    assert moved([2, 3], [4, 1], EXPECTED[[0, 1], [4, 1]]) == ["the logits 2 rows before"]
    assert moved([2, 3], [4, 1], EXPECTED[[5, 5], [4, 1]]) == ["the logits of row 5"]
    assert moved([5, 3], [4, 1], EXPECTED[[0, 0], [4, 1]]) == ["the logits of row 0"]


def test_what_is_no_other_place() -> None:
    assert moved([2, 2], [1, 2], EXPECTED[2, [4, 6]]) == []
    assert moved([2, 2], [1, 2], EXPECTED[[2, 3], [4, 5]]) == []
    assert moved([2], [1], EXPECTED[2, [4]]) == [], "one word is no evidence"
    assert moved([2, 2], [1, 2], EXPECTED[1, [6, 7]], VALID) == []
    assert moved([1, 1], [1, 2], EXPECTED[1, [6, 7]], VALID) == [], "what is not valid is nobody's logit"
    assert moved([1, 1], [1, 2], EXPECTED[1, [6, 7]], np.ones_like(VALID)) == [
        "the logits 5 columns further on"
    ]
    assert moved([2, 2], [1, 5], [EXPECTED[2, 4], EXPECTED[3, 0]]) == []
    # Beyond the last column, the first row, the last row.
    assert moved([2, 2], [1, 7], [EXPECTED[2, 4], EXPECTED[3, 2]]) == []
    assert moved([2, 0], [1, 1], [EXPECTED[1, 1], EXPECTED[5, 1]]) == []
    assert moved([2, 5], [1, 1], [EXPECTED[3, 1], EXPECTED[0, 1]]) == []
    assert moved([2, 2], [4, 1], [EXPECTED[2, 1], EXPECTED[2, 6]]) == []


def test_special_words_are_no_evidence() -> None:
    table = EXPECTED.copy()
    table[3, :4] = [0x7F800000, 0x7FC00000, 0, 0x80000000]
    rows, columns = np.array([2, 2, 2, 2]), np.arange(4)
    found = np.array([0x7F800000, 0x7FFFFFFF, 0, 0x80000000], np.uint32)
    one = Sample(rows, columns, found, table[2, :4])
    assert list(patterns(FP32_FLOW, one, table, np.ones_like(VALID))) == []
    longer = np.concatenate([found, table[3, 4:6]])
    more = Sample(np.full(6, 2), np.arange(6), longer, table[2, :6])
    told = list(patterns(FP32_FLOW, more, table, np.ones_like(VALID)))
    assert told == ["the logits 1 rows further on"], "a NaN is a NaN, whatever its payload"


def test_narrow_outputs_need_four_different_words() -> None:
    table = words(1.0 + np.arange(16).reshape(2, 8) / 64, np.float16)
    for count, told in ((3, []), (4, ["the logits 1 rows further on"])):
        at = np.arange(count)
        one = Sample(np.zeros_like(at), at, table[1, :count], table[0, :count])
        assert list(patterns(FP16_FLOW, one, table, np.ones(table.shape, np.bool_))) == told


def test_constants_come_alone_and_factors_with_places() -> None:
    assert moved([2, 2], [1, 2], words([0.0, 0.0])) == [
        "zeros, as if nothing was computed or the result was cleared"
    ]
    assert moved([0, 0, 0, 0], [1, 2, 3, 4], words(2 * EXPECTED[0, 1:5].view(np.float32))) == [
        "the right logits times 2"
    ]
