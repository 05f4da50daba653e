"""Kernels that add in another order: their arithmetic by MPFR, and the bound that must hold for all of them."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

from mqa_ref.errors import InputError
from mqa_ref.flow import FLOWS, Flow
from mqa_ref.numerics import MACHINES
from mqa_ref.reference import (
    GENERATIONS,
    ORDERS,
    any_order_bounds,
    own_order_bounds,
    reference_logits,
    reordered_logits,
)
from mqa_ref.reference.attacks import PLAIN_FLOATS, attack_problems


def _by_mpfr(order: str, terms: list[tuple[Any, Any]]) -> Any:
    """The sum of products in the current MPFR context, for the orders that do not shuffle."""
    import gmpy2

    if order == "serial":
        total = gmpy2.mpfr(0)
        for x, w in terms:
            total = gmpy2.fma(x, w, total)
        return total
    if order == "serial, unfused":
        total = gmpy2.mpfr(0)
        for x, w in terms:
            total = total + x * w
        return total
    if order == "two sums, split K":
        halves = [gmpy2.mpfr(0)] * 2
        for head, (x, w) in enumerate(terms):
            halves[head % 2] = gmpy2.fma(x, w, halves[head % 2])
        return halves[0] + halves[1]
    level = [x * w for x, w in terms]
    while len(level) > 1:
        level = [a + b for a, b in zip(level[::2], level[1::2], strict=True)]
    return level[0]


@pytest.mark.parametrize("name", ["fp32-fp32-fp32", "fp32-fp16-fp16"])
@pytest.mark.parametrize("order", ["serial", "serial, unfused", "two sums, split K", "pairwise"])
def test_orders_by_mpfr(
    make: Any,
    name: str,
    order: str,
    e4m3_values: Any,
    mpfr_rounded: Any,
    mpfr_contexts: Any,
    record_property: Any,
) -> None:
    """Small codes, so that dots are exact and only the sum over 16 heads differs; one K = 32 step."""
    rng, flow = np.random.default_rng(12), Flow.parse(name)
    q, keys = (
        rng.integers(0x20, 0x34, size, dtype=np.uint8) | rng.integers(0, 2, size, dtype=np.uint8) << 7
        for size in ((1, 1, 16, 32), (60, 32))
    )
    weights = rng.standard_normal((1, 16)).astype(np.float32)
    problem = make(q, [keys], weights=weights)
    found = reordered_logits(problem, flow, "sm100", order, generation="max")[0]
    assert not np.array_equal(found, reference_logits(problem, flow, generation="max")[0])
    values = found.view(np.float32 if flow.out == "fp32" else np.float16)
    dots = e4m3_values[keys] @ e4m3_values[q[0, 0]].T
    factors = [mpfr_rounded(flow.epi, float(w)) for w in weights[0]]
    for token, row in enumerate(dots):
        positive = [mpfr_rounded(flow.epi, max(0.0, float(dot))) for dot in row]
        with mpfr_contexts[flow.epi]:
            expected = _by_mpfr(order, list(zip(positive, factors, strict=True)))
        assert float(values[0, token]) == float(expected)
    record_property("tried", len(dots))


@pytest.mark.parametrize("order", ["shuffled", "shuffled tree, split K"])
def test_shuffling_moves_heads_and_nothing_else(make: Any, order: str) -> None:
    """Where all sums are exact no order shows; where they are not, a seed does."""
    rng, flow = np.random.default_rng(2), Flow.parse("fp32-fp32-fp32")
    q, keys = (rng.integers(0x38, 0x50, size, dtype=np.uint8) for size in ((2, 2, 8, 64), (2, 40, 64)))
    whole = rng.integers(1, 9, (4, 8)).astype(np.float32)
    problem = make(q, list(keys), weights=whole)
    assert np.array_equal(reordered_logits(problem, flow, order=order)[0], reference_logits(problem, flow)[0])
    problem = make(q, list(keys), weights=whole / 7)
    first, again, other = (reordered_logits(problem, flow, order=order, seed=seed)[0] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_split_steps_differ_from_a_chain(make: Any) -> None:
    """448 * 448 in the first step cuts what a chain adds later; steps by themselves keep it."""
    q, keys = np.full((1, 1, 8, 64), 0x1F, np.uint8), np.full((1, 64), 0x20, np.uint8)
    q[..., 0] = keys[:, 0] = 0x7E
    problem, flow = make(q, [keys]), Flow.parse("fp32-fp32-fp32")
    split = reordered_logits(problem, flow, order="two sums, split K")[0]
    assert split[0, 0] > reference_logits(problem, flow)[0][0, 0]


@pytest.mark.parametrize("name", FLOWS)
@pytest.mark.parametrize("machine", MACHINES)
def test_no_order_exceeds_the_bound(machine: str, name: str, record_property: Any) -> None:
    flow, tried, differ = Flow.parse(name), 0, 0
    for number, problem in enumerate(islice(attack_problems(FLOWS.index(name) + 100), 4)):
        generation = GENERATIONS[number % len(GENERATIONS)]
        bounds = any_order_bounds(problem, flow, machine, generation=generation)
        own = reference_logits(problem, flow, machine, generation=generation)[0]
        for order in ORDERS:
            bits, mask = reordered_logits(problem, flow, machine, order, generation=generation, seed=number)
            assert np.array_equal(mask, problem.valid_mask())
            assert bounds.ratios(bits, flow.out).max() <= 1, order
            tried += int((mask & ~bounds.may_overflow).sum())
            differ += int((bits != own).sum())
    assert tried > 10_000
    assert differ > 0
    record_property("tried", tried)


def test_the_own_bound_is_not_for_others() -> None:
    """Why there are two: one long sum exceeds the bound for four short ones."""
    flow, worst = Flow.parse("fp32-fp16-fp16"), 0.0
    for problem in islice(attack_problems(5, PLAIN_FLOATS), 30):
        bounds = own_order_bounds(problem, flow)
        bits = reordered_logits(problem, flow, order="serial, unfused")[0]
        worst = max(worst, float(bounds.ratios(bits, flow.out).max()))
    assert worst > 1


def test_unknown_order(make: Any) -> None:
    q = np.zeros((1, 1, 8, 32), np.uint8)
    with pytest.raises(InputError, match="order"):
        reordered_logits(make(q, [q[0, 0]]), Flow.parse("fp32-fp32-fp32"), order="random")
