"""The comparison with bounds where inputs are NaN or inf, and what it leaves out of the scores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mqa_ref.compare import Comparison, compare_within
from mqa_ref.flow import Flow
from mqa_ref.launch import Launch
from mqa_ref.numerics import E4M3FN
from mqa_ref.problem import Problem
from mqa_ref.reference import ErrorBounds, any_order_bounds, reference_logits

FLOW = Flow.parse("fp32-fp32-fp32")
ONE, NAN, INF = 0x3F800000, 0x7FC00000, 0x7F800000
LENGTH = 70


def make(
    q: dict[tuple[int, ...], float] | None = None,
    weight: dict[tuple[int, int], float] | None = None,
    scale: dict[int, float] | None = None,
    key: dict[tuple[int, int], float] | None = None,
) -> Problem:
    """Two rows of 70 tokens with zero queries, keys of one, weights and scales of one; then some numbers put in.

    Tokens of row b begin at 128 * b among all 256.
    """

    def code(value: float) -> int:
        return E4M3FN.canonical_nan if np.isnan(value) else E4M3FN.encode(int(value))

    queries, keys = np.zeros((2, 1, 8, 64), np.uint8), np.full((256, 64), 0x38, np.uint8)
    weights, scales = np.ones((2, 8), np.float32), np.ones(256, "<f4")
    for place, value in (q or {}).items():
        queries[place[0], 0, place[1], place[2]] = code(value)
    for at, value in (key or {}).items():
        keys[at] = code(value)
    for where, value in (weight or {}).items():
        weights[where] = value
    for token, value in (scale or {}).items():
        scales[token] = value
    pool = np.concatenate([keys.reshape(4, -1), scales.view(np.uint8).reshape(4, -1)], axis=1)
    table, lengths = np.arange(4, dtype=np.int32).reshape(2, 2), np.array([LENGTH, LENGTH], np.int32)
    return Problem(queries, pool, weights, table, lengths, page=64, num_sms=1)


def told(problem: Problem, bits: np.ndarray, bounds: ErrorBounds | None = None, **given: Any) -> Comparison:
    launch = Launch(bits, np.ones(bits.shape, np.bool_), (), 1, 0, 0.0)
    if bounds is None:
        bounds = any_order_bounds(problem, FLOW, **given)
    return compare_within(launch, problem, FLOW, bounds, **given)


def test_the_generation_says_what_a_nan_becomes() -> None:
    """max.f32 takes the number, so with "max" a NaN query leaves finite logits; x + |x| hands it on."""
    problem = make(q={(0, 2, 7): np.nan})
    for generation, other in (("folded", "max"), ("max", "folded")):
        kind: Any = generation
        bits = reference_logits(problem, FLOW, generation=kind)[0]
        assert told(problem, bits, generation=generation).equal
        wrong = told(problem, bits, generation=other)
        assert (wrong.counts["nan"], wrong.mismatched) == (LENGTH, LENGTH)


def test_the_machine_says_what_an_infinity_becomes() -> None:
    """448 * 448 - 448 * 448 + 1: sm90 keeps multiples of 8 beside 2**16, so the dot is 0 there, and 0 * inf is NaN."""
    numbers: dict[tuple[int, ...], float] = {(0, 0, 0): 448, (0, 0, 1): -448, (0, 0, 2): 1}
    problem = make(q=numbers, key={(3, 0): 448, (3, 1): 448}, weight={(0, 0): np.inf})
    bits = reference_logits(problem, FLOW, "sm90")[0].copy()
    bits[0, 3] = ONE
    for machine, kind, expected in (("sm90", "nan", "0x7fffffff"), ("sm100", "inf", "0x7f800000")):
        wrong = told(problem, bits, machine=machine)
        here = [one for one in wrong.first if (one.place.row, one.place.column) == (0, 3)]
        assert [(one.kind, one.expected) for one in here] == [(kind, expected)]


def test_an_infinite_weight_excuses_its_own_row_alone() -> None:
    """A scale that is NaN gives NaN; an infinity in its place is excused where a weight or the scale is infinite."""
    problem = make(
        q={(0, 0, 0): 1, (1, 0, 0): 1}, weight={(0, 0): np.inf}, scale={5: np.nan, 128 + 5: np.nan}
    )
    bits = reference_logits(problem, FLOW)[0].copy()
    assert (bits[:, 5].tolist(), int(bits[0, 0]), int(bits[1, 0])) == ([0x7FFFFFFF] * 2, INF, ONE)
    assert told(problem, bits).equal
    bits[0, 5] = INF
    assert told(problem, bits).equal
    bits[1, 5] = INF
    wrong = told(problem, bits)
    assert (wrong.counts["nan"], wrong.mismatched) == (1, 1)
    assert (wrong.first[0].place.row, wrong.first[0].place.column) == (1, 5)


def test_an_infinite_scale_excuses_its_own_token_alone() -> None:
    problem = make(q={(0, 0, 0): 1, (1, 0, 0): 1}, scale={5: np.inf, 6: np.nan, 128 + 5: np.nan})
    bits = reference_logits(problem, FLOW)[0].copy()
    assert bits[0, [5, 6]].tolist() == [INF, 0x7FFFFFFF]
    for row, column, word, right in ((0, 5, 0xFF800000, True), (0, 5, NAN, True), (0, 5, ONE, False)):
        changed = bits.copy()
        changed[row, column] = word
        assert told(problem, changed).equal == right
    for row, column in ((0, 6), (1, 5)):
        changed = bits.copy()
        changed[row, column] = INF
        wrong = told(problem, changed)
        assert (wrong.counts["nan"], wrong.mismatched) == (1, 1)


def test_scores_are_of_bounded_elements() -> None:
    """Neither invalid elements nor those without a bound: one of them would make the scores NaN."""
    problem = replace(make(q={(0, 0, 0): 1, (1, 0, 0): 1}, scale={6: np.nan}, weight={(1, 0): 3e38}))
    bits = reference_logits(problem, FLOW)[0].copy()
    bounds = any_order_bounds(problem, FLOW)
    assert (int(bounds.special.sum()), int(bounds.may_overflow.sum())) == (1, LENGTH)
    bounds = replace(bounds, mask=bounds.mask.copy())
    bounds.mask[0, 60:] = False
    bits[0, 60:] = NAN
    bits[1] = 0x7F800000
    right = told(problem, bits, bounds)
    assert (right.equal, right.calc_diff, right.compared) == (True, 0.0, 60 + LENGTH)
    assert right.cosine == pytest.approx(1.0)
    bits[0, 10] = ONE + 0x00800000  # 2.0
    wrong = told(problem, bits, bounds)
    # 58 agree and one is twice as large: 1 - 2 * (58 + 2) / (59 + 62).
    assert wrong.calc_diff == pytest.approx(1 / 121)
    assert (wrong.mismatched, wrong.suspects) == (1, ())


def test_a_factor_must_leave_the_bounds_on_one_side() -> None:
    """Every logit 1.0025 times too large: an interval of quotients is two bounds wide on either side, and 1.0025 less
    0.24 % is above 1, less 0.252 % below."""
    problem = make()
    truth = 1000.0 + np.arange(2 * LENGTH, dtype=np.float64).reshape(2, LENGTH)
    bounds = any_order_bounds(problem, FLOW)
    for allowed, named in ((0.0012, True), (0.00126, False)):
        wide = replace(bounds, value=truth, bound=truth * allowed)
        bits = (truth * 1.0025).astype(np.float32).view(np.uint32)
        found = told(problem, bits, wide).suspects
        assert (len(found) == 1) == named
        assert not found or found[0].startswith("the right logits times 1.00")
