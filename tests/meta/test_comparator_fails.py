"""The comparator does fail: one planted difference of every class, in every output format, anywhere in the
output."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqa_ref.compare import KINDS, Kind, compare, compare_within
from mqa_ref.flow import Flow
from mqa_ref.launch import Launch
from mqa_ref.problem import Problem
from mqa_ref.reference import any_order_bounds

# What is expected and what the launch wrote instead, per class, by the output format.
PLANTS: dict[str, dict[Kind, list[tuple[int, int]]]] = {
    "fp32": {
        "nan": [
            (0x3F800000, 0x7FC00000),
            (0x7FFFFFFF, 0x3F800000),
            (0x7F800000, 0x7F800001),
            (0xFFC00000, 0),
        ],
        "inf": [(0x7F800000, 0x7F7FFFFF), (0x3F800000, 0xFF800000)],
        "inf_sign": [(0x7F800000, 0xFF800000), (0xFF800000, 0x7F800000)],
        "zero_sign": [(0x00000000, 0x80000000), (0x80000000, 0x00000000)],
        "value": [(0x3F800000, 0x3F800001), (0x00000000, 0x00000001), (0x3F800000, 0xBF800000)],
    },
    "fp16": {
        "nan": [(0x3C00, 0x7E00), (0x7FFF, 0x7C00)],
        "inf": [(0x7BFF, 0x7C00), (0xFC00, 0xFBFF)],
        "inf_sign": [(0x7C00, 0xFC00)],
        "zero_sign": [(0x0000, 0x8000)],
        "value": [(0x3C00, 0x3C01), (0x8000, 0x8001)],
    },
    "bf16": {
        "nan": [(0x3F80, 0x7FC0), (0x7FFF, 0x7F80)],
        "inf": [(0x7F7F, 0x7F80)],
        "zero_sign": [(0x8000, 0x0000)],
        "value": [(0x3F80, 0x3F81), (0x0000, 0x0001)],
    },
}
FLOWS = {"fp32": "fp32-fp32-fp32", "fp16": "fp32-fp16-fp16", "bf16": "fp32-fp16-bf16"}
CASES = [
    (out, kind, *pair) for out, kinds in PLANTS.items() for kind, pairs in kinds.items() for pair in pairs
]


@pytest.fixture(scope="module")
def problem() -> Problem:
    lengths = np.array([300, 0, 129], np.int32)
    return Problem(
        np.zeros((3, 2, 8, 128), np.uint8),
        np.zeros((5, 64 * 132), np.uint8),
        np.zeros((6, 8), np.float32),
        np.zeros((3, 5), np.int32),
        lengths,
        page=64,
        num_sms=4,
    )


def perfect(problem: Problem, dtype: np.dtype[np.unsignedinteger]) -> tuple[np.ndarray, Launch]:
    expected = np.zeros((problem.rows, problem.max_context_len), dtype)
    logits = np.zeros((problem.rows, problem.row_stride), dtype)
    return expected, Launch(logits, np.ones(logits.shape, np.bool_), (), 4, 0, 0.0)


@pytest.mark.parametrize(("out", "kind", "expected_word", "actual_word"), CASES)
def test_one_planted_difference_of_each_class(
    problem: Problem, out: str, kind: Kind, expected_word: int, actual_word: int
) -> None:
    flow = Flow.parse(FLOWS[out])
    expected, launch = perfect(problem, flow.bits_dtype)
    expected[5, 128], launch.logits[5, 128] = expected_word, actual_word
    told = compare(expected, problem.valid_mask(), launch, problem, flow)
    assert not told.equal
    assert told.counts == {name: int(name == kind) for name in KINDS}
    assert (told.first[0].place.row, told.first[0].place.column) == (5, 128)


@pytest.mark.parametrize("out", FLOWS)
def test_an_element_that_was_not_written(problem: Problem, out: str) -> None:
    flow = Flow.parse(FLOWS[out])
    expected, launch = perfect(problem, flow.bits_dtype)
    launch.written[0, 298] = False
    told = compare(expected, problem.valid_mask(), launch, problem, flow)
    assert told.counts == {name: int(name == "unwritten") for name in KINDS}


@pytest.mark.parametrize("out", FLOWS)
def test_two_nans_are_equal_whatever_their_payload(problem: Problem, out: str) -> None:
    """The one thing that is let through; without this the tests above could pass on a comparator that always
    fails."""
    flow = Flow.parse(FLOWS[out])
    expected, launch = perfect(problem, flow.bits_dtype)
    quiet = {"fp32": (0x7FFFFFFF, 0xFFC00001), "fp16": (0x7FFF, 0xFE01), "bf16": (0x7FFF, 0xFFC1)}[out]
    expected[0, 0], launch.logits[0, 0] = quiet
    assert compare(expected, problem.valid_mask(), launch, problem, flow).equal


@given(data=st.data(), bit=st.integers(0, 31))
@settings(deadline=None, max_examples=60)
def test_any_flipped_bit_of_any_valid_element_is_found(
    problem: Problem, data: st.DataObject, bit: int
) -> None:
    flow = Flow.parse("fp32-fp32-fp32")
    expected, launch = perfect(problem, flow.bits_dtype)
    rows, columns = np.nonzero(problem.valid_mask())
    at = data.draw(st.integers(0, rows.size - 1))
    launch.logits[rows[at], columns[at]] ^= np.uint32(1 << bit)
    told = compare(expected, problem.valid_mask(), launch, problem, flow)
    assert told.mismatched == 1
    assert (told.first[0].place.row, told.first[0].place.column) == (rows[at], columns[at])


@pytest.mark.parametrize("name", FLOWS.values())
def test_the_comparison_with_bounds_fails_for_each_single_element(problem: Problem, name: str) -> None:
    """Zero queries make every true logit 0 and every bound 0: any other value anywhere is too much."""
    flow = Flow.parse(name)
    bounds = any_order_bounds(problem, flow)
    _, launch = perfect(problem, flow.bits_dtype)
    assert compare_within(launch, problem, flow, bounds).equal
    rows, columns = np.nonzero(problem.valid_mask())
    for at in range(0, rows.size, 97):
        launch.logits[rows[at], columns[at]] = 1  # the smallest subnormal
        told = compare_within(launch, problem, flow, bounds)
        launch.logits[rows[at], columns[at]] = 0
        assert told.counts["value"] == told.mismatched == 1
        assert (told.first[0].place.row, told.first[0].place.column) == (rows[at], columns[at])
