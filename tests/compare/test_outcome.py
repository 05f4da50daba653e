"""From classes to what is told: the greatest distances, the greatest ratio, the elements that are looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mqa_ref.compare import Comparison, outcome
from mqa_ref.compare.classes import EQUAL, code
from mqa_ref.compare.families import Sample
from mqa_ref.compare.measures import Scores
from mqa_ref.compare.outcome import Judged, assemble
from mqa_ref.flow import Flow
from mqa_ref.launch import Launch
from mqa_ref.problem import Problem

MakeProblem = Callable[..., Problem]
FLOW = Flow.parse("fp32-fp32-fp32")
ONE = 0x3F800000
Samples = list[tuple[Sample, Sample]]


def nothing(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    return np.full(rows.shape, np.nan)


class Case:
    """All elements expected to be 1.0, and right, in the rows and columns of a problem; then some are made wrong."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.valid = problem, problem.valid_mask()
        self.kinds = np.full(self.valid.shape, EQUAL, np.int8)
        self.expected = np.full(self.valid.shape, ONE, np.uint32)
        self.got = self.expected.copy()
        self.seen: Samples = []

    def wrong(self, row: int, column: int, kind: Any, expected: int, got: int) -> None:
        self.kinds[row, column] = code(kind)
        self.expected[row, column], self.got[row, column] = expected, got

    def told(self, ratios: Any = nothing, also: tuple[int, int] | None = None) -> Comparison:
        def explain(wrong: Sample, right: Sample) -> tuple[str, ...]:
            self.seen.append((wrong, right))
            return ("a cause",)

        judged = Judged(self.kinds, self.got, self.expected, self.valid, Scores(), ratios, explain, also)
        logits = np.zeros((self.problem.rows, self.problem.row_stride), np.uint32)
        launch = Launch(logits, np.ones(logits.shape, np.bool_), (), 2, 0, 0.0)
        return assemble(judged, launch, self.problem, FLOW)


@pytest.mark.parametrize("chunk", [1, 2, 3, 100])
def test_the_greatest_distances_are_found_wherever_they_are(
    make_problem: MakeProblem, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    """ULP and numbers on paper: 1 to 1 + 2**-20 are 8 ULP; 0 to 2**-126 are 2**23 ULP; 2**20 to 2**20 + 1 are 8."""
    monkeypatch.setattr(outcome, "_CHUNK", chunk)
    case = Case(make_problem([40, 40]))
    case.wrong(0, 1, "inf", ONE, 0x7F800000)
    case.wrong(0, 2, "nan", ONE, 0x7FFFFFFF)
    case.wrong(0, 3, "unwritten", ONE, 0xFF7FFFFF)
    case.wrong(0, 5, "value", ONE, ONE + 8)
    case.wrong(0, 9, "value", 0, 0x00800000)
    case.wrong(0, 11, "value", 0x49800000, 0x49800008)
    case.wrong(1, 1, "zero_sign", 0, 0x80000000)
    case.wrong(1, 4, "value", 0x00800000, 0)  # as far as the one of row 0, which is told
    case.wrong(1, 5, "value", 0x49800008, 0x49800000)
    case.wrong(1, 39, "inf_sign", 0x7F800000, 0xFF800000)
    told = case.told()
    assert (told.max_ulp, told.max_abs, told.max_ratio) == (1 << 23, 1.0, None)
    assert type(told.max_ulp) is int
    places = [(top.measure, top.value, top.element.place.row, top.element.place.column) for top in told.worst]
    assert places == [("ulp", float(1 << 23), 0, 9), ("absolute", 1.0, 0, 11)]
    counts = {"unwritten": 1, "nan": 1, "inf": 1, "inf_sign": 1, "zero_sign": 1, "value": 5}
    assert told.counts == counts
    assert {type(number) for number in told.counts.values()} == {int}


def test_zeros_of_either_sign_have_no_distance_at_all(make_problem: MakeProblem) -> None:
    case = Case(make_problem([40]))
    case.wrong(0, 3, "zero_sign", 0, 0x80000000)
    assert (case.told().max_ulp, case.told().max_abs) == (0, 0.0)


def test_the_greatest_ratio_is_looked_for_in_the_sample_too(make_problem: MakeProblem) -> None:
    case = Case(make_problem([40, 40]))
    for column in range(10):
        case.wrong(1, column, "value", ONE, ONE + 50 - column)

    def ratios(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        asked.append((rows.tolist(), columns.tolist()))
        return np.where(columns == 7, 3.0, np.where(columns == 4, np.nan, 2.0)) + rows

    asked: list[Any] = []
    told = case.told(ratios)
    assert asked == [([1] * 10, list(range(10)))]
    assert told.max_ratio == 4.0
    assert [(top.measure, top.element.place.column) for top in told.worst] == [
        ("ulp", 0),
        ("absolute", 0),
        ("bound ratio", 7),
    ]
    assert told.worst[2].element.kind == "value"


def test_extremes_that_are_not_in_the_sample_and_the_one_asked_for_have_a_ratio(
    make_problem: MakeProblem,
) -> None:
    case = Case(make_problem([400, 40]))
    for column in range(100):
        case.wrong(0, column, "value", ONE, ONE + (9 if column == 50 else 1))
    sample = [int(at) for at in np.linspace(0, 99, 16)]
    assert 50 not in sample
    asked: list[list[int]] = []

    def ratios(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        asked.append(columns.tolist())
        return np.ones(rows.size)

    case.told(ratios)
    case.told(ratios, also=(1, 33))
    assert asked == [sorted([*sample, 50]), [*sorted([*sample, 50]), 33]]


def test_one_right_element_can_be_told(make_problem: MakeProblem) -> None:
    told = Case(make_problem([40, 40])).told(lambda rows, columns: 0.5 + 0.0 * rows, also=(1, 30))
    (top,) = told.worst
    assert (told.max_ratio, top.value, top.element.kind) == (0.5, 0.5, "value")
    assert (top.element.place.row, top.element.place.column, told.mismatched) == (1, 30, 0)
    assert (told.counts["value"], told.where, told.first) == (0, (), ())


def test_causes_are_asked_for_what_was_written_only(make_problem: MakeProblem) -> None:
    case = Case(make_problem([40]))
    case.wrong(0, 3, "unwritten", ONE, 0)
    assert (case.told().suspects, case.seen) == ((), [])
    case.wrong(0, 9, "value", ONE, ONE + 2)
    assert case.told().suspects == ("a cause",)
    ((wrong, right),) = case.seen
    assert (wrong.rows.tolist(), wrong.columns.tolist()) == ([0], [9])
    assert (wrong.found.tolist(), wrong.expected.tolist()) == ([ONE + 2], [ONE])
    assert set(right.columns.tolist()) == set(range(40)) - {3, 9}
    assert (right.found == ONE).all()


@pytest.mark.parametrize("row", [3, 20, 38])
def test_right_elements_come_from_other_rows_where_those_have_none(
    make_problem: MakeProblem, row: int
) -> None:
    """40 rows of which one has a right element: it is found, whichever row that is."""
    case = Case(make_problem([2] * 40))
    case.kinds[:] = code("value")
    case.got += 1
    case.kinds[row, 1], case.got[row, 1] = EQUAL, ONE
    case.kinds[row, 0], case.got[row, 0] = code("unwritten"), 5
    case.told()
    ((wrong, right),) = case.seen
    assert wrong.rows.size == 16
    assert row not in wrong.rows
    assert (right.rows.tolist(), right.columns.tolist(), right.found.tolist()) == ([row], [1], [ONE])
    case.kinds[row, 1] = code("value")
    case.told()
    assert case.seen[1][1].rows.size == case.seen[1][1].columns.size == 0


def test_at_most_sixty_four_right_elements_are_taken_evenly(make_problem: MakeProblem) -> None:
    case = Case(make_problem([300, 200]))
    case.wrong(0, 299, "value", ONE, ONE + 1)
    case.told()
    right = case.seen[0][1]
    assert set(right.rows.tolist()) == {0}
    assert right.columns.tolist() == [int(at) for at in np.linspace(0, 298, 64)]


def test_elements_beyond_the_valid_ones_are_counted(make_problem: MakeProblem) -> None:
    """Rows of 512 columns: 300 tokens reach into the second split, none into none."""
    case = Case(make_problem([300, 0, 20]))
    told = case.told()
    assert told.tail_written == (512 - 300) + (256 - 20)
    assert told.stray_written == 512 + 256
    assert told.compared == 320
