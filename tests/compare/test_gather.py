"""Gathered elements are those of the whole problem, and what should be right in the comparison's own arithmetic gives
the reference's bits."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from mqa_ref.compare.gather import Source, bound_ratios, excerpt
from mqa_ref.compare.recipes import right
from mqa_ref.flow import FLOWS, Flow
from mqa_ref.problem import Problem
from mqa_ref.reference import (
    GENERATIONS,
    Generation,
    any_order_bounds,
    own_order_bounds,
    reference_logits,
    reordered_logits,
)
from mqa_ref.reference.attacks import attack_problems

PROBLEMS = list(islice(attack_problems(41), 3))


def some(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    rows, columns = np.nonzero(problem.valid_mask())
    at = np.random.default_rng(2).choice(rows.size, 20, replace=False)
    return rows[at], columns[at]


@pytest.mark.parametrize("name", FLOWS)
@pytest.mark.parametrize("generation", GENERATIONS)
def test_the_right_recipe_gives_the_bits_of_the_reference(name: str, generation: Generation) -> None:
    flow = Flow.parse(name)
    for problem in PROBLEMS:
        rows, columns = some(problem)
        elements = Source(problem, flow.acc, "sm100").elements(rows, columns)
        with np.errstate(all="ignore"):
            found = right(flow, generation).apply(elements)
        expected = reference_logits(problem, flow, generation=generation)[0][rows, columns]
        assert found.dtype == expected.dtype
        assert (found == expected).all()


@pytest.mark.parametrize("name", ["fp32-fp32-fp32", "fp16-fp16-bf16"])
def test_an_excerpt_computes_the_same_logits(name: str) -> None:
    flow = Flow.parse(name)
    for problem in PROBLEMS:
        rows, columns = some(problem)
        small, row = excerpt(problem, rows, columns)
        bits, valid = reference_logits(small, flow)
        assert valid[row, 0].all()
        assert (bits[row, 0] == reference_logits(problem, flow)[0][rows, columns]).all()


def test_dot_products_of_as_many_queries_as_keys() -> None:
    problem = PROBLEMS[0]
    rows, columns = some(problem)
    source = Source(problem, "fp32", "sm100")
    queries, keys = source.queries(rows), source.at(rows, columns)[0]
    each = [source.dots(queries[i : i + 1], keys[i : i + 1])[0].tolist() for i in range(rows.size)]
    assert source.dots(queries, keys).tolist() == each
    with pytest.raises(ValueError, match="zip"):
        source.dots(queries, keys[:-1])


@pytest.mark.parametrize("machine", ["sm90", "exact"])
def test_the_bounds_are_those_of_the_machine_asked_for(machine: str) -> None:
    flow, differ = Flow.parse("fp32-fp32-fp32"), 0
    for problem in PROBLEMS:
        rows, columns = some(problem)
        bits = reference_logits(problem, flow)[0] ^ np.uint32(4)  # right ones have no error to share
        whole = own_order_bounds(problem, flow, machine)
        share = whole.ratios(bits, flow.out)[rows, columns]
        bounded = ~(whole.special | whole.may_overflow)[rows, columns]
        given = own_order_bounds, problem, flow, (rows, columns), bits[rows, columns]
        found = bound_ratios(*given, machine=machine)
        assert found[bounded] == pytest.approx(share[bounded], rel=1e-9)
        differ += int(np.count_nonzero(bound_ratios(*given)[bounded] != found[bounded]))
    assert differ > 5


@pytest.mark.parametrize("bounds", [own_order_bounds, any_order_bounds])
def test_the_bounds_of_an_excerpt_are_those_of_the_whole(bounds: type) -> None:
    flow = Flow.parse("fp32-fp16-fp16")
    for problem in PROBLEMS:
        rows, columns = some(problem)
        bits = reordered_logits(problem, flow, order="pairwise")[0]
        whole = bounds(problem, flow)
        share = whole.ratios(bits, flow.out)[rows, columns]
        none = (whole.special | whole.may_overflow)[rows, columns]
        found = bound_ratios(bounds, problem, flow, (rows, columns), bits[rows, columns])
        assert (np.isnan(found) == none).all()
        assert found[~none] == pytest.approx(share[~none], rel=1e-9)
