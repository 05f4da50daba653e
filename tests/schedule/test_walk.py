"""Walks: against a step-by-step simulation for any schedule, good or broken, and by hand for known cases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqa_ref.errors import InputError
from mqa_ref.schedule import FORMS, build, walk

Entry = tuple[int, int]
Stepper = Callable[[Sequence[Entry], Sequence[int]], list[Any]]
WorkOf = Callable[[Sequence[int]], list[Entry]]

few_lengths = st.lists(st.sampled_from([0, 1, 128, 256, 257, 700, 1025]), min_size=1, max_size=6)
any_schedule = st.lists(st.tuples(st.integers(-1, 7), st.integers(-1, 6)), min_size=2, max_size=9)


@given(lengths=few_lengths, schedule=any_schedule)
@settings(deadline=None, max_examples=400)
def test_execute_equals_stepping(lengths: list[int], schedule: list[Entry], stepper: Stepper) -> None:
    for walked, stepped in zip(
        walk(schedule, lengths, zero_rows="execute"), stepper(schedule, lengths), strict=True
    ):
        assert (walked.items, walked.terminates) == (stepped.items, stepped.ends)
        assert walked.reads_row_beyond is not stepped.ends
        assert walked.splits == len(stepped.items)
        assert walked.zero_work is (stepped.ends and not stepped.items)


@given(lengths=few_lengths, schedule=any_schedule)
@settings(deadline=None, max_examples=400)
def test_skip_is_the_ordered_part_of_the_work(
    lengths: list[int], schedule: list[Entry], work_of: WorkOf
) -> None:
    work = work_of(lengths)
    for walked in walk(schedule, lengths, zero_rows="skip"):
        assert walked.terminates
        inside = 0 <= walked.start[0] < len(lengths) and walked.start[1] >= 0
        assert walked.items == [item for item in work if inside and walked.start <= item < walked.end]


@given(lengths=few_lengths, ctas=st.integers(1, 9))
@settings(deadline=None)
def test_builders_end_and_both_walks_cover_the_work(lengths: list[int], ctas: int, work_of: WorkOf) -> None:
    for form in FORMS:
        for zero_rows in ("skip", "execute"):
            walks = walk(build(lengths, ctas, form), lengths, zero_rows=zero_rows)
            assert all(w.terminates and not w.reads_row_beyond for w in walks)
            items = [item for w in walks for item in w.items if lengths[item[0]]]
            assert items == work_of(lengths)


def test_schedule_for_257_replayed_with_256() -> None:
    """peers.md, bug 7: CTA 0 runs past the only row, because the entry (0, 1) is no place any more."""
    first, second = walk(build([257], 2), [256], zero_rows="execute")
    assert (first.items, first.terminates, first.reads_row_beyond) == ([(0, 0)], False, True)
    assert (second.items, second.terminates) == ([(0, 1)], True)
    assert [w.items for w in walk(build([257], 2), [256])] == [[(0, 0)], []]


def test_schedule_for_600_300_used_with_200_300() -> None:
    ends = [w.terminates for w in walk(build([600, 300], 3), [200, 300], zero_rows="execute")]
    assert ends == [False, True, True]


def test_split_of_128_tokens_never_ends() -> None:
    """600 tokens are 5 splits of 128 but 3 of 256, so (0, 4) is never met."""
    schedule = [(0, 0), (0, 2), (0, 4), (1, 0)]
    assert [w.terminates for w in walk(schedule, [600], zero_rows="execute")] == [True, False, True]


def test_zero_row_inside_a_range() -> None:
    """peers.md, bug 8: [128, 0, S*256]. The kernel without a test executes the row as one split; trailing rows too."""
    lengths = [128, 0, 4 * 256, 0]
    schedule = build(lengths, 1)
    (executed,) = walk(schedule, lengths, zero_rows="execute")
    assert executed.items == [(0, 0), (1, 0), (2, 0), (2, 1), (2, 2), (2, 3), (3, 0)]
    (skipped,) = walk(schedule, lengths)
    assert skipped.items == [(0, 0), (2, 0), (2, 1), (2, 2), (2, 3)]


def test_idle_ctas_read_no_row_beyond() -> None:
    """peers.md, bug 1: an idle CTA stands at (B, 0) and must not read context_lens[B]."""
    walks = walk(build([64], 148), [64], zero_rows="execute")
    assert [w.cta for w in walks if not w.zero_work] == [0]
    assert not any(w.reads_row_beyond for w in walks)


@pytest.mark.parametrize("zero_rows", ["skip", "execute"])
@pytest.mark.parametrize(
    "start", [(-(2**31), 0), (0, -(2**31)), (2**31 - 1, 0), (2**31 - 1, 2**31 - 1), (0, 2**31 - 1), (1, 0)]
)
def test_extreme_entries_take_no_time(start: Entry, zero_rows: Any) -> None:
    """Billions of steps would be needed to find out by stepping."""
    (walked,) = walk([start, (2**31 - 1, 7)], [2**31 - 1], zero_rows=zero_rows)
    outside = start[0] != 0 or start[1] < 0
    assert walked.terminates is (zero_rows == "skip")
    assert not (outside and walked.runs)
    assert len(walked.runs) <= 1


def test_limit_cuts_the_list_not_the_verdict() -> None:
    lengths = np.full(100, 300, np.int32)
    (whole,) = walk(build(lengths, 1), lengths)
    (cut,) = walk(build(lengths, 1), lengths, limit=3)
    assert (len(whole.runs), whole.truncated) == (100, False)
    assert (cut.runs, cut.truncated, cut.terminates) == (whole.runs[:3], True, True)


@pytest.mark.parametrize(
    ("schedule", "lengths", "options", "argument"),
    [
        ([[0, 0]], [1], {}, "schedule"),
        ([[0, 0, 0], [1, 0, 0]], [1], {}, "schedule"),
        ([[0.0, 0.0], [1.0, 0.0]], [1], {}, "schedule"),
        ([[0, 0], [1, 0]], [-1], {}, "context_lens"),
        ([[0, 0], [1, 0]], [1], {"zero_rows": "both"}, "zero_rows"),
    ],
)
def test_bad_input(schedule: Any, lengths: Any, options: dict[str, Any], argument: str) -> None:
    with pytest.raises(InputError) as caught:
        walk(schedule, lengths, **options)
    assert [fault.argument for fault in caught.value.faults] == [argument]
