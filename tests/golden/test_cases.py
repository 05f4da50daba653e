"""The table holds what it must: every report, every boundary, every kind, names that can be files."""

from __future__ import annotations

import pytest

from mqa_ref.errors import InputError
from mqa_ref.golden import CASES, UNCOVERED, Case, LogitsCase, RefusedCase, ScheduleCase, StaleCase, by_name
from mqa_ref.golden.metadata import is_name
from mqa_ref.golden.record import problem_of

REPORTS = range(1, 21)
BOUNDARIES = {
    0,
    1,
    *range(63, 66),
    *range(127, 130),
    *range(255, 258),
    383,
    384,
    *range(511, 514),
    1024,
    1025,
}
BOUNDARIES |= {8191, 8192, 8193}


def of_report(number: int) -> list[Case]:
    return [case for case in CASES if number in case.peers]


def test_there_are_enough_and_names_are_unique_file_names() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names) >= 60
    assert all(is_name(name) and "." not in name for name in names)
    assert all(case.why for case in CASES)


@pytest.mark.parametrize("number", REPORTS)
def test_every_report_has_a_case_of_its_number_or_a_reason(number: int) -> None:
    found = of_report(number)
    assert bool(found) != bool(UNCOVERED.get(number))
    assert all(case.name.startswith(f"peer-{number:02d}-") for case in found)


def test_no_case_names_a_report_there_is_not() -> None:
    assert {number for case in CASES for number in case.peers} <= set(REPORTS)
    assert all(case.peers for case in CASES if case.name.startswith("peer-"))


@pytest.mark.parametrize("number", [1, 2, 5, 6, 17, 18, 20])
def test_what_a_problem_cannot_say_is_said(number: int) -> None:
    assert any(isinstance(case, LogitsCase) and case.launch for case in of_report(number))


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (2, ScheduleCase),
        (3, ScheduleCase),
        (7, StaleCase),
        (9, RefusedCase),
        (12, RefusedCase),
        (19, RefusedCase),
    ],
)
def test_the_kinds_of_reports(number: int, kind: type) -> None:
    assert any(isinstance(case, kind) for case in of_report(number))


def test_the_minimal_inputs_of_peers_md() -> None:
    problems = {case.name: problem_of(case) for case in CASES if isinstance(case, LogitsCase) and case.peers}
    first = problems["peer-01-lengths-read-by-idle-ctas"]
    assert (first.batch, first.context_lens.tolist(), first.num_sms) == (1, [64], 148)
    assert {len(case.lengths) for case in of_report(2) if isinstance(case, ScheduleCase)} == {32, 64}
    assert {case.batch for case in of_report(3) if isinstance(case, ScheduleCase)} == {8192, 12288, 16384}
    assert [problems[case.name].next_n for case in of_report(4)] == [3, 5]
    sixth = problems["peer-06-sixth-entry"]
    assert (sixth.context_lens.tolist(), sixth.page, sixth.block_table.shape) == ([257], 64, (1, 5))
    assert problems["peer-06-table-width-1"].block_table.shape == (1, 1)
    (stale,) = of_report(7)
    assert isinstance(stale, StaleCase)
    assert (stale.built, stale.used) == ((257,), (256,))
    zero = problems["peer-08-zero-row-in-range"]
    assert zero.context_lens.tolist() == [128, 0, zero.num_sms * 256]
    assert len({row.tobytes() for row in zero.weights}) == zero.rows


def test_boundaries_each_with_three_cta_counts() -> None:
    found = {
        case.recipe.lengths: case.ctas
        for case in CASES
        if case.name.startswith("context-") and isinstance(case, LogitsCase)
    }
    assert set(found) == {(length,) for length in BOUNDARIES}
    assert set(found.values()) == {(1, 2, 148)}


def test_boundaries_meet_all_pages_heads_tables_and_values() -> None:
    recipes = [
        case.recipe for case in CASES if isinstance(case, LogitsCase) and case.name.startswith("context-")
    ]
    assert {recipe.page for recipe in recipes} == {32, 64, 128}
    assert {recipe.heads for recipe in recipes} == {8, 16, 32, 64}
    assert {recipe.data for recipe in recipes} == {"bits", "wide", "amax", "rms"}
    assert {recipe.rest for recipe in recipes} == {"tight", "garbage", "zeros"}


def test_shapes() -> None:
    problems = [problem_of(case) for case in CASES if isinstance(case, LogitsCase)]
    assert {problem.head_dim for problem in problems} == {32, 64, 128}
    assert {problem.next_n for problem in problems} == {1, 2, 3, 4, 5, 6}
    assert {problem.page for problem in problems} == {32, 64, 128}
    sizes = {problem.heads * problem.next_n for problem in problems}
    assert (min(sizes), max(sizes)) == (8, 256)
    assert len({problem.case_id for problem in problems}) == len(problems)


def test_by_name() -> None:
    assert by_name([]) == CASES
    names = [CASES[5].name, CASES[2].name]
    assert by_name(names) == (CASES[2], CASES[5])
    with pytest.raises(InputError) as caught:
        by_name(["nope", CASES[0].name, "neither"])
    assert [fault.value for fault in caught.value.faults] == ["'nope'", "'neither'"]
