"""The strategies draw what they say, reach what they should, and shrink to the smallest launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from mqa_ref.errors import InputError
from mqa_ref.fuzz import strategies
from mqa_ref.fuzz.description import Description, expand
from mqa_ref.fuzz.shapes import Shape
from mqa_ref.problem import Problem
from mqa_ref.schedule import check

ONE_SHAPE = st.just(Shape(num_sms=3))


def test_the_smallest_description(strategies_are: Any) -> None:
    smallest = strategies_are.minimal(strategies.descriptions())
    assert smallest == Description(lengths=(0,), shape=Shape(num_sms=1))


@pytest.mark.parametrize(
    ("condition", "lengths"),
    [
        (lambda d: any(n > 0 for n in d.lengths), (1,)),
        (lambda d: any(n > 128 for n in d.lengths), (129,)),
        (lambda d: any(n > 256 for n in d.lengths), (257,)),
        (lambda d: len(d.lengths) > 1 and d.lengths[-1] > 64, (0, 65)),
        (lambda d: any(n > 4096 for n in d.lengths), (4097,)),
    ],
)
def test_lengths_shrink_to_the_boundary(
    strategies_are: Any, condition: Any, lengths: tuple[int, ...]
) -> None:
    assert strategies_are.minimal(strategies.descriptions(shape=ONE_SHAPE), condition).lengths == lengths


@pytest.mark.parametrize("page", [32, 64, 128])
def test_a_window_of_table_entries_is_filled(strategies_are: Any, page: int) -> None:
    """64 entries of so many tokens; a launch that fills them exactly comes up, though it is never the simplest one."""
    drawn = strategies.descriptions(shape=st.just(Shape(page=page, num_sms=1)))
    strategies_are.find_any(drawn, lambda d: d.lengths == (64 * page,))
    assert strategies_are.minimal(drawn, lambda d: any(d.lengths)).lengths == (1,)


def test_a_condition_shrinks_everything_else_away(strategies_are: Any) -> None:
    found = strategies_are.minimal(
        strategies.descriptions(shape=ONE_SHAPE), lambda d: any(o.value == "nan" for o in d.overrides)
    )
    assert found.lengths == (0,)
    assert (found.data, found.order, found.rest, found.columns, found.seed) == (
        "counting",
        "in_order",
        "tight",
        0,
        0,
    )
    assert len(found.overrides) == 1


@pytest.mark.parametrize(
    "condition",
    [
        lambda lengths: len(lengths) == 1,
        lambda lengths: len(lengths) == 6,
        lambda lengths: lengths == (0,) * 32,
        lambda lengths: len(lengths) == 64 and any(lengths),
        lambda lengths: any(n % 256 == 1 for n in lengths),
        lambda lengths: 0 in lengths[1:-1] and lengths[0] and lengths[-1],
    ],
)
def test_lengths_reach(strategies_are: Any, condition: Any) -> None:
    strategies_are.find_any(strategies.context_lengths(), condition)


def test_lengths_keep_their_bounds(strategies_are: Any) -> None:
    drawn = strategies.context_lengths(min_batch=2, max_batch=4, max_length=700, max_splits=5, zeros=False)

    def good(lengths: tuple[int, ...]) -> bool:
        splits = sum(-(-n // 256) for n in lengths)
        return 2 <= len(lengths) <= 4 and splits <= 5 and all(1 <= n <= 700 for n in lengths)

    strategies_are.assert_all_examples(drawn, good, examples=300)


def test_every_schedule_fits(strategies_are: Any) -> None:
    lengths = (300, 0, 129, 1000)
    drawn = strategies.schedules(lengths, num_sms=7)
    strategies_are.assert_all_examples(
        drawn, lambda s: s.shape == (8, 2) and not check(s, lengths), examples=200
    )
    strategies_are.find_any(drawn, lambda s: bool(np.all(s[1:] == (4, 0))))
    strategies_are.find_any(drawn, lambda s: bool(np.all(s[:-1] == (0, 0))))


def test_every_problem_is_one(strategies_are: Any) -> None:
    """Expanding validates: a description that is no launch would raise here."""
    strategies_are.assert_all_examples(
        strategies.problems(), lambda problem: isinstance(problem, Problem), examples=40
    )


def test_tables_of_every_order_are_valid(strategies_are: Any) -> None:
    lengths = (300, 0, 129)
    drawn = strategies.block_tables(lengths, page=32)

    def good(table: Any) -> bool:
        needed = [-(-n // 32) for n in lengths]
        ids = [table.entries[row, :count] for row, count in enumerate(needed)]
        return all(((one >= 0) & (one < table.pages)).all() for one in ids)

    strategies_are.assert_all_examples(drawn, good, examples=100)
    strategies_are.find_any(drawn, lambda table: table.entries[0, 0] == table.entries[2, 0])


def test_a_shared_prefix_is_shared_and_the_rest_is_not() -> None:
    problem = expand(Description(lengths=(512, 256, 64), order="shared_prefix", shape=Shape(page=32)))
    first, second, third = problem.block_table
    assert second[:4].tolist() == first[:4].tolist()
    assert third[0] == first[0]
    assert not set(second[4:8].tolist()) & set(first.tolist())


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: strategies.context_lengths(min_batch=0), "min_batch"),
        (lambda: strategies.context_lengths(min_batch=3, max_batch=2), "max_batch"),
        (lambda: strategies.context_lengths(max_length=-1), "max_length"),
        (lambda: strategies.context_lengths(max_splits="many"), "max_splits"),  # type: ignore[arg-type]
        (lambda: strategies.schedules((1, -1), num_sms=2), "context_lens"),
        (lambda: strategies.schedules((1,), num_sms=0), "num_sms"),
        (lambda: strategies.block_tables((1,), page=48), "page"),
        (lambda: strategies.block_tables((1,), orders=("sideways",)), "orders"),  # type: ignore[arg-type]
        (lambda: strategies.data_patterns(kinds=("noise",)), "kinds"),
        (lambda: strategies.flows(names=("fp8-fp8-fp8",)), "names"),
        (lambda: strategies.options(heads=10), "heads"),
        (lambda: strategies.shapes(pages=(16,)), "pages"),
        (lambda: strategies.shapes(num_sms=()), "num_sms"),
        (lambda: strategies.descriptions(interleavings=()), "interleavings"),
    ],
)
def test_bad_arguments_are_named_at_once(call: Any, named: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert {fault.argument for fault in caught.value.faults} == {named}
