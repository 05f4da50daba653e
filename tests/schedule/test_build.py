"""Builders: hand-made schedules, the known traps, and exact sharing for whatever lengths and CTA counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqa_ref.errors import InputError
from mqa_ref.schedule import FORMS, MAX_CTAS, Form, build

Entry = tuple[int, int]
WorkOf = Callable[[Sequence[int]], list[Entry]]

lengths_strategy = st.lists(
    st.one_of(st.sampled_from([0, 1, 127, 128, 255, 256, 257, 512, 513]), st.integers(0, 6000)),
    min_size=1,
    max_size=40,
)


@pytest.mark.parametrize(
    ("lengths", "ctas", "form", "expected"),
    [
        # 3 + 2 splits on 3 CTAs: 2, 2, 1 against 1, 2, 2
        ([600, 300], 3, "forward", [(0, 0), (0, 2), (1, 1), (2, 0)]),
        ([600, 300], 3, "reversed", [(0, 0), (0, 1), (1, 0), (2, 0)]),
        # one split for each of the first (last) CTAs
        ([257], 4, "forward", [(0, 0), (0, 1), (1, 0), (1, 0), (1, 0)]),
        ([257], 4, "reversed", [(0, 0), (0, 0), (0, 0), (0, 1), (1, 0)]),
        # rows without tokens are stepped over, at the front, between CTAs and at the back
        ([0, 0, 256, 0, 512, 0], 3, "forward", [(2, 0), (4, 0), (4, 1), (6, 0)]),
        ([128, 0, 768], 2, "forward", [(0, 0), (2, 1), (3, 0)]),
        ([128, 0, 768], 4, "reversed", [(0, 0), (2, 0), (2, 1), (2, 2), (3, 0)]),
        ([1], 1, "forward", [(0, 0), (1, 0)]),
    ],
)
def test_hand_made(lengths: list[int], ctas: int, form: Form, expected: list[Entry]) -> None:
    schedule = build(np.array(lengths, np.int32), ctas, form)
    assert schedule.dtype == np.int32
    assert [tuple(entry) for entry in schedule.tolist()] == expected


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("batch", [1, 31, 32, 33, 64])
def test_no_token_at_all(batch: int, form: Form) -> None:
    assert build([0] * batch, 148, form).tolist() == [[batch, 0]] * 149


@given(lengths=lengths_strategy, ctas=st.integers(1, 40))
@settings(deadline=None)
def test_shares_exactly(lengths: list[int], ctas: int, work_of: WorkOf) -> None:
    """Dealing out the list of all splits by hand gives every CTA's start."""
    work = work_of(lengths)
    few, more = divmod(len(work), ctas)
    sizes: dict[Form, list[int]] = {
        "forward": [few + 1] * more + [few] * (ctas - more),
        "reversed": [few] * (ctas - more) + [few + 1] * more,
    }
    for form in FORMS:
        schedule = [tuple(entry) for entry in build(lengths, ctas, form).tolist()]
        places = [*work, (len(lengths), 0)]
        expected, at = [], 0
        for size in [*sizes[form], 0]:
            expected.append(places[at])
            at += size
        assert schedule == expected


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("batch", [8192, 12288, 16384])
def test_large_batches(batch: int, form: Form, work_of: WorkOf) -> None:
    lengths = np.random.default_rng(batch).integers(0, 5000, batch)
    work = work_of(lengths.tolist())
    few, more = divmod(len(work), 148)
    schedule = build(lengths.astype(np.int32), 148, form)
    for cta in (0, 1, more, 73, 147):
        at = cta * few + (min(cta, more) if form == "forward" else max(0, cta - 148 + more))
        assert tuple(schedule[cta].tolist()) == work[at]
    assert schedule[148].tolist() == [batch, 0]


@pytest.mark.parametrize("next_n", [1, 2, 3, 5])
def test_only_the_last_column_counts(next_n: int) -> None:
    last = [300, 0, 1024]
    table = np.full((3, next_n), 99_999, np.int32)
    table[:, -1] = last
    assert np.array_equal(build(table, 7), build(last, 7))


def test_total_past_32_bits() -> None:
    """1024 rows of the longest length: 2**33 splits do not overflow."""
    schedule = build(np.full(1024, 2**31 - 1, np.int32), 2)
    assert schedule.tolist() == [[0, 0], [512, 0], [1024, 0]]


@pytest.mark.parametrize(
    ("lengths", "ctas", "form", "arguments"),
    [
        ([1], 0, "forward", ["num_sms"]),
        ([1], MAX_CTAS + 1, "forward", ["num_sms"]),
        ([1], True, "forward", ["num_sms"]),
        ([1], 2.0, "forward", ["num_sms"]),
        ([-1], 1, "forward", ["context_lens"]),
        ([2**31], 1, "forward", ["context_lens"]),
        ([1.0], 1, "forward", ["context_lens"]),
        ([], 1, "forward", ["context_lens"]),
        ([[[1]]], 1, "forward", ["context_lens"]),
        ([1], 1, "backward", ["form"]),
        ([-1], -3, "backward", ["context_lens", "form", "num_sms"]),
    ],
)
def test_every_fault_at_once(lengths: Any, ctas: Any, form: Any, arguments: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        build(lengths, ctas, form)
    assert sorted(fault.argument for fault in caught.value.faults) == arguments


@pytest.mark.parametrize("ctas", [1, MAX_CTAS])
def test_limits_are_inclusive(ctas: int) -> None:
    assert build([1], ctas).tolist() == [[0, 0], *[[1, 0]] * ctas]
