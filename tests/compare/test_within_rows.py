"""The comparison with bounds, row by row and fault by fault."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mqa_ref.compare import Comparison, compare_within
from mqa_ref.errors import InputError
from mqa_ref.flow import Flow
from mqa_ref.launch import Launch
from mqa_ref.problem import Problem
from mqa_ref.reference import ErrorBounds, any_order_bounds, own_order_bounds, reference_logits

FLOW = Flow.parse("fp32-fp32-fp32")
BATCH, ROWS = 100, 200


@pytest.fixture(scope="module")
def problem() -> Problem:
    """One token for each of 200 rows; queries, keys, weights and scales of one: every logit is 8 * 128 = 1024."""
    keys = np.full((1, 32 * 132), 0x38, np.uint8)
    keys[:, 32 * 128 :] = np.ones((1, 32), "<f4").view(np.uint8)
    return Problem(
        np.full((BATCH, 2, 8, 128), 0x38, np.uint8),
        keys,
        np.ones((ROWS, 8), np.float32),
        np.zeros((BATCH, 1), np.int32),
        np.full(BATCH, 2, np.int32),
        page=32,
        num_sms=2,
    )


def told(problem: Problem, bits: np.ndarray, bounds: ErrorBounds, factor: float = 1.0) -> Comparison:
    logits = np.zeros((ROWS, problem.row_stride), np.uint32)
    logits[:, :2] = bits
    launch = Launch(logits, np.ones(logits.shape, np.bool_), (), 2, 0, 0.0)
    return compare_within(launch, problem, FLOW, bounds, factor)


@pytest.mark.parametrize("row", [0, 63, 64, 127, 128, 191, 192, ROWS - 2])
def test_the_greatest_ratio_of_any_row_is_found(problem: Problem, row: int) -> None:
    bounds = any_order_bounds(problem, FLOW)
    bits = np.full((ROWS, 2), 0x44800000, np.uint32)
    right = told(problem, bits, bounds)
    assert (right.equal, right.max_ratio, right.calc_diff) == (True, 0.0, 0.0)
    assert right.cosine == pytest.approx(1.0)
    assert right.compared == BATCH * (2 + 1)
    bits[row, 0] = 0x44800001  # 2**-13 more
    ratio = 2.0**-13 / float(bounds.bound[row, 0])
    few = told(problem, bits, bounds, 2 * ratio)
    assert (few.equal, few.max_ratio, few.factor) == (True, ratio, 2 * ratio)
    (top,) = few.worst
    assert (top.element.place.row, top.element.place.column) == (row, 0)
    assert top.element.expected == "0x44800000"
    assert told(problem, bits, bounds, ratio).equal
    wrong = told(problem, bits, bounds, 0.99 * ratio)
    assert (wrong.mismatched, wrong.counts["value"], wrong.max_ulp, wrong.max_abs) == (1, 1, 1, 2.0**-13)
    assert (wrong.first[0].place.row, wrong.first[0].place.column) == (row, 0)
    assert told(problem, bits, bounds, 0.0).mismatched == 1
    # 299 elements agree and one is twice as large: 1 - 2 * (299 + 2) / (300 + 303) in units of 1024 squared.
    bits[row, 0] = 0x45000000
    assert told(problem, bits, bounds).calc_diff == pytest.approx(1 / 603)


def test_the_first_of_equal_ratios_is_told(problem: Problem) -> None:
    bits = np.full((ROWS, 2), 0x44800000, np.uint32)
    bits[[70, 150], 0] = 0x44800001
    (top,) = told(problem, bits, any_order_bounds(problem, FLOW), 1e9).worst
    assert top.element.place.row == 70


ARRAYS = ["mask", "value", "bound", "special", "may_overflow"]


@pytest.mark.parametrize("name", ARRAYS)
def test_each_array_of_the_bounds_is_checked(problem: Problem, name: str) -> None:
    bounds: Any = any_order_bounds(problem, FLOW)
    array = getattr(bounds, name)
    wanted = str(array.dtype)
    bits = np.full((ROWS, 2), 0x44800000, np.uint32)
    for given, said in (
        (array.astype(np.float16), [f"bounds.{name}: got dtype float16, expected {wanted} for output fp32"]),
        (array[:, :1], [f"bounds.{name}: got shape (200, 1), expected (200, 2), as bounds.mask has"]),
    ):
        with pytest.raises(InputError) as caught:
            told(problem, bits, replace(bounds, **{name: given}))
        faults = [str(fault) for fault in caught.value.faults]
        if name == "mask" and given.shape != (ROWS, 2):
            assert faults == [
                f"bounds.{other}: got shape (200, 2), expected (200, 1), as bounds.mask has"
                for other in ARRAYS[1:]
            ]
        else:
            assert faults == said


@pytest.mark.parametrize("factor", [-1.0, float("nan"), float("inf")])
def test_what_is_said_of_a_factor(problem: Problem, factor: float) -> None:
    with pytest.raises(InputError) as caught:
        told(problem, np.zeros((ROWS, 2), np.uint32), any_order_bounds(problem, FLOW), factor)
    (fault,) = caught.value.faults
    assert str(fault) == f"factor: got {factor!r}, expected a finite number, at least 0"


def test_the_ratio_of_an_element_without_a_bound_is_none(problem: Problem) -> None:
    """Weights of 3e38: every sum may overflow; where only row 3 may, the others keep their ratios."""
    weights = problem.weights.copy()
    weights[3] = 3e38
    huge = replace(problem, weights=weights)
    bounds = own_order_bounds(huge, FLOW)
    assert bounds.may_overflow.sum() == 2
    bits = reference_logits(huge, FLOW)[0]
    few = told(huge, bits, bounds)
    assert (few.equal, few.unbounded, few.compared, few.max_ratio) == (True, 2, 300, 0.0)
    bits[3] = 0x7FFFFFFF
    bits[2, 0] = 0x7FC00000
    wrong = told(huge, bits, bounds)
    assert (wrong.mismatched, wrong.counts["nan"], wrong.max_ratio) == (1, 1, np.inf)
    (top,) = [one for one in wrong.worst if one.measure == "bound ratio"]
    assert (top.element.place.row, top.element.place.column) == (2, 0)
