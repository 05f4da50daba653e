"""Checks: a schedule is accused exactly when stepping every CTA shows a fault, and the fault is what it is called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqa_ref.errors import InputError
from mqa_ref.schedule import FORMS, MAX_CTAS, build, check, describe, partition, same_partition

Entry = tuple[int, int]
Stepper = Callable[[Sequence[Entry], Sequence[int]], list[Any]]
WorkOf = Callable[[Sequence[int]], list[Entry]]

few_lengths = st.lists(st.sampled_from([0, 1, 128, 256, 257, 700, 1025]), min_size=1, max_size=6)
many_lengths = st.lists(st.integers(0, 5000), min_size=1, max_size=40)


@st.composite
def nearly_good(draw: st.DrawFn) -> tuple[list[int], list[Entry]]:
    """A schedule in the right order with none, one or a few entries changed."""
    lengths = draw(few_lengths)
    places = [(row, split) for row, n in enumerate(lengths) for split in range(max(1, (n + 255) // 256))]
    middle = draw(st.lists(st.sampled_from(places), max_size=6).map(sorted))
    schedule = [places[0], *middle, (len(lengths), 0)]
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(schedule) - 1))
        schedule[at] = (draw(st.integers(-1, 7)), draw(st.integers(-1, 6)))
    return lengths, schedule


@given(case=nearly_good())
@settings(deadline=None, max_examples=600)
def test_accuses_exactly_the_bad(
    case: tuple[list[int], list[Entry]], stepper: Stepper, work_of: WorkOf
) -> None:
    lengths, schedule = case
    steps = stepper(schedule, lengths)
    executed = Counter(item for step in steps for item in step.items if lengths[item[0]])
    exist = all(0 <= row <= len(lengths) and split >= 0 for row, split in schedule)
    exist &= all(split == 0 for step in steps for row, split in step.items if not lengths[row])
    good = exist and all(step.ends for step in steps) and executed == Counter(work_of(lengths))
    assert (not check(schedule, lengths)) is good


@given(case=nearly_good())
@settings(deadline=None, max_examples=300)
def test_termination_faults_are_the_ctas_that_never_end(
    case: tuple[list[int], list[Entry]], stepper: Stepper
) -> None:
    lengths, schedule = case
    faults = check(schedule, lengths)
    if any(fault.kind == "bounds" for fault in faults):
        return
    never = [cta for cta, step in enumerate(stepper(schedule, lengths)) if not step.ends]
    assert [fault.cta for fault in faults if fault.kind == "no_termination"] == never


@given(lengths=many_lengths, ctas=st.integers(1, 60))
@settings(deadline=None)
def test_builders_pass_and_cover_the_same(lengths: list[int], ctas: int, work_of: WorkOf) -> None:
    for form in FORMS:
        schedule = build(lengths, ctas, form)
        assert check(schedule, lengths) == ()
        parts = partition(schedule, lengths)
        assert list(parts) == list(range(ctas))
        assert [item for items in parts.values() for item in items] == work_of(lengths)
        sizes = [len(items) for items in parts.values()]
        report = describe(schedule, lengths)
        assert (report.least, report.most) == (min(sizes), max(sizes))
        assert report.most - report.least <= 1
        assert list(report.zero_work) == [cta for cta, items in parts.items() if not items]
        assert report.form == ("forward" if sizes == sorted(sizes, reverse=True) else form)


@given(lengths=few_lengths, ctas=st.integers(1, 9))
@settings(deadline=None)
def test_zero_rows_executed_are_those_stepped_on(lengths: list[int], ctas: int, stepper: Stepper) -> None:
    schedule = [tuple(entry) for entry in build(lengths, ctas).tolist()]
    stepped = [
        (cta, row)
        for cta, s in enumerate(stepper(schedule, lengths))
        for row, _ in s.items
        if not lengths[row]
    ]
    assert list(describe(schedule, lengths).zero_length_executed) == stepped


CASES = {
    "257 replayed with 256": ([(0, 0), (0, 1), (1, 0)], [256], [("stale", 1), ("no_termination", 0)]),
    "600, 300 used with 200, 300": (
        [(0, 0), (0, 2), (1, 1), (2, 0)],
        [200, 300],
        [("stale", 1), ("no_termination", 0)],
    ),
    "made with split 128": ([(0, 0), (0, 2), (0, 4), (1, 0)], [600], [("stale", 2), ("no_termination", 1)]),
    "made for 2 rows of next_n 2": ([(0, 0), (2, 0), (4, 0)], [256, 256], [("bounds", 2)]),
    "first split missing": ([(0, 1), (1, 0)], [300], [("missing", None)]),
    "last row missing": ([(0, 0), (1, 0)], [256, 256], [("missing", None)]),
    "backwards": (
        [(0, 0), (1, 0), (0, 0), (2, 0)],
        [256, 256],
        [("no_termination", 1), ("duplicate", 2)],
    ),
    "past the end": ([(0, 0), (1, 1)], [256], [("bounds", 1)]),
    "a row too far": ([(0, 0), (2, 0)], [256], [("bounds", 1)]),
    "negative": ([(0, -1), (1, 0)], [256], [("bounds", 0)]),
    "end before start": ([(1, 0), (0, 0)], [256], [("no_termination", 0), ("missing", None)]),
    "no split at all, good": ([(0, 0), (2, 0)], [0, 0], []),
    "a start in a row without tokens, good": ([(0, 0), (1, 0), (3, 0)], [256, 0, 256], []),
}


@pytest.mark.parametrize(("schedule", "lengths", "expected"), CASES.values(), ids=CASES)
def test_known_cases(
    schedule: list[Entry], lengths: list[int], expected: list[tuple[str, int | None]]
) -> None:
    assert [(fault.kind, fault.cta) for fault in check(schedule, lengths)] == expected


def test_fault_says_where() -> None:
    missing, twice = check([(0, 1), (1, 2), (1, 1), (2, 0)], [700, 700])[-2:]
    assert (missing.kind, missing.row, missing.split, missing.count) == ("missing", 0, 0, 1)
    assert str(missing) == "no CTA executes 1 split from (0, 0) on"
    assert (twice.kind, twice.cta, twice.row, twice.split, twice.count) == ("duplicate", 2, 1, 1, 1)


@pytest.mark.parametrize(
    "schedule",
    [[], [[0, 0]], [[0, 0, 0], [1, 0, 0]], [[0.5, 0], [1, 0]], np.zeros((MAX_CTAS + 2, 2), np.int32)],
)
def test_what_is_no_schedule(schedule: Any) -> None:
    assert {fault.kind for fault in check(schedule, [256])} == {"shape"}


def test_bad_lengths_are_an_error() -> None:
    with pytest.raises(InputError, match="context_lens"):
        check([[0, 0], [1, 0]], [-5])


def test_partitions_not_bytes() -> None:
    lengths = [256, 0, 256]
    assert same_partition(
        [(0, 0), (2, 0), (3, 0)], [(0, 0), (1, 0), (3, 0)], lengths
    )  # the idle row goes elsewhere
    assert same_partition([(0, 0), (3, 0), (3, 0)], [(0, 0), (2, 1), (3, 0)], lengths)
    assert same_partition([(2, 0), (0, 0), (3, 0)], [(0, 0), (0, 0), (3, 0)], lengths)  # idle in two ways
    assert not same_partition([(0, 0), (2, 0), (3, 0)], [(0, 0), (0, 0), (3, 0)], lengths)
    assert not same_partition([(0, 0), (3, 0)], [(0, 0), (3, 0), (3, 0)], lengths)  # 1 CTA against 2
    assert not same_partition(build([600, 300], 3), build([600, 300], 3, "reversed"), [600, 300])


def test_usable_but_made_for_other_lengths() -> None:
    """Longer rows keep every entry in place: nothing is wrong, but no builder shares like this."""
    report = describe(build([256, 256, 256], 3), [256, 256, 2560])
    assert (report.faults, report.form, report.least, report.most) == ((), None, 1, 10)


@pytest.mark.parametrize("batch", [8192, 16384])
def test_large_batches(batch: int) -> None:
    lengths = np.random.default_rng(batch).integers(0, 70_000, batch).astype(np.int32)
    schedule = build(lengths, 148)
    assert check(schedule, lengths) == ()
    other = schedule.copy()
    other[70] = other[71]
    report = describe(other, lengths)
    assert (report.faults, report.zero_work, report.form) == ((), (70,), None)
    other[70] = (batch, 0)
    kinds = Counter(fault.kind for fault in check(other, lengths))
    assert kinds == {"no_termination": 1, "duplicate": 77}
