"""Every row is compared, however many there are; and what is said of one element, word for word.

Rows are compared some at a time: a comparison that stopped after the first of them would pass all small outputs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mqa_ref.compare import compare
from mqa_ref.compare.comparison import Extreme, mismatch
from mqa_ref.flow import Flow
from mqa_ref.launch import Launch
from mqa_ref.numerics import FORMATS
from mqa_ref.problem import Problem

FLOW = Flow.parse("fp32-fp32-fp32")
BATCH, ROWS = 100, 200


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem(
        np.zeros((BATCH, 2, 8, 128), np.uint8),
        np.zeros((1, 32 * 132), np.uint8),
        np.zeros((ROWS, 8), np.float32),
        np.zeros((BATCH, 1), np.int32),
        np.ones(BATCH, np.int32),
        page=32,
        num_sms=2,
    )


@pytest.mark.parametrize("row", [0, 63, 64, 127, 128, 191, 192, ROWS - 1])
def test_a_wrong_logit_of_any_row_is_found(problem: Problem, row: int) -> None:
    expected = np.zeros((ROWS, 1), np.uint32)
    logits = np.zeros((ROWS, problem.row_stride), np.uint32)
    logits[row, 0] = 0x3F800000
    launch = Launch(logits, np.ones(logits.shape, np.bool_), (), 2, 0, 0.0)
    told = compare(expected, np.ones(expected.shape, np.bool_), launch, problem, FLOW)
    assert (told.compared, told.mismatched, told.counts["value"]) == (ROWS, 1, 1)
    (first,) = told.first
    assert (first.place.row, first.expected, first.actual) == (row, "0x00000000", "0x3f800000")


def test_every_row_counts_once_in_the_score(problem: Problem) -> None:
    """calc_diff is 1 - 2 sum(xy) / sum(x^2 + y^2) over all valid elements (DeepGEMM, testing), in float64."""
    right = np.linspace(1, 3, ROWS, dtype=np.float32)
    wrong = right.copy()
    wrong[::7] *= np.float32(1.5)
    logits = np.zeros((ROWS, problem.row_stride), np.uint32)
    logits[:, 0] = wrong.view(np.uint32)
    launch = Launch(logits, np.ones(logits.shape, np.bool_), (), 2, 0, 0.0)
    expected = right.view(np.uint32).reshape(ROWS, 1)
    told = compare(expected, np.ones(expected.shape, np.bool_), launch, problem, FLOW)
    x, y = right.astype(np.float64), wrong.astype(np.float64)
    assert told.calc_diff == pytest.approx(1 - 2 * (x * y).sum() / (x * x + y * y).sum(), rel=1e-12)
    assert told.cosine == pytest.approx((x * y).sum() / np.sqrt((x * x).sum() * (y * y).sum()), rel=1e-12)
    assert told.mismatched == -(-ROWS // 7)


def test_the_words_for_an_element(problem: Problem) -> None:
    logits = np.zeros((ROWS, problem.row_stride), np.uint32)
    logits[5, 0] = 1
    launch = Launch(logits, np.ones(logits.shape, np.bool_), (), 2, 0, 0.0)
    expected = np.zeros((ROWS, 1), np.uint32)
    place = compare(expected, np.ones(expected.shape, np.bool_), launch, problem, FLOW).first[0].place
    fp32 = FORMATS["fp32"]
    value = mismatch("value", place, 0x3F800000, 0x3F800003, fp32)
    assert str(value) == (
        f"value: expected 0x3f800000 (1.0), got 0x3f800003 (1.0000003576278687), 3 ULP, at {place}"
    )
    assert str(mismatch("inf", place, 0x3F800000, 0x7F800000, fp32)) == (
        f"inf: expected 0x3f800000 (1.0), got 0x7f800000 (inf), at {place}"
    )
    zeros = mismatch("zero_sign", place, 0x80000000, 0, fp32)
    assert (zeros.ulp, zeros.expected_value, zeros.actual_value) == (0, 0.0, 0.0)
    assert str(zeros) == f"zero_sign: expected 0x80000000 (-0.0), got 0x00000000 (0.0), 0 ULP, at {place}"
    unwritten = mismatch("unwritten", place, 0x3F800000, 0x7F800000, fp32)
    assert str(unwritten) == f"unwritten: expected 0x3f800000 (1.0), nothing was written, at {place}"
    assert str(Extreme("ulp", 3.0, value)) == f"greatest distance 3 ULP: {value}"
    assert str(Extreme("absolute", 0.1234567, value)) == f"greatest difference 0.123457: {value}"
    shown = str(Extreme("bound ratio", 12345678.0, replace(value, ulp=7)))
    assert shown.startswith("greatest share of the error bound 1.23457e+07: value: ")
