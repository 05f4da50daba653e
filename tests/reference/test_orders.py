"""The orders of other kernels: exact rationals rounded one by one, cases on paper where the order shows, twins."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mqa_ref.errors import InputError, Unsupported
from mqa_ref.flow import Flow
from mqa_ref.problem import Problem
from mqa_ref.reference import GENERATIONS, SumOrder, any_order_bounds, reference_logits, scalar_logit
from mqa_ref.reference.orders import logits_of
from mqa_ref.verification.problems import Recipe, make

FLOW = Flow.parse("fp32-fp32-fp32")
SM90: SumOrder = "deepgemm_sm90"
SM100: SumOrder = "deepgemm_sm100"
WORDS = np.random.Philox(key=20)


def nearest(value: Fraction) -> Fraction:
    """A rational rounded to fp32, to nearest even; no overflow."""
    if value == 0:
        return value
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > size
    unit = Fraction(2) ** (max(exponent, -126) - 23)
    return round(value / unit) * unit


def lanes_then_shuffles(x: list[Fraction], w: list[Fraction], scale: Fraction) -> Fraction:
    lane = []
    for q in range(4):
        chain = {}
        for parity in (0, 1):
            a, b, *rest = [8 * j + 2 * q + parity for j in range(len(x) // 8)]
            total = nearest(x[a] * w[a] + nearest(x[b] * w[b]))
            for head in rest:
                total = nearest(x[head] * w[head] + total)
            chain[parity] = total
        lane.append(nearest(nearest(chain[0] + chain[1]) * scale))
    return nearest(nearest(lane[0] + lane[1]) + nearest(lane[2] + lane[3]))


def two_pairs(x: list[Fraction], w: list[Fraction], scale: Fraction) -> Fraction:
    chain = [Fraction(0)] * 4
    for head in range(len(x)):
        chain[head % 4] = nearest(2 * x[head] * w[head] + chain[head % 4])
    low, high = nearest(chain[0] + chain[2]), nearest(chain[1] + chain[3])
    return nearest(nearest(nearest(low + high) / 2) * scale)


def rational(bits: NDArray[np.uint32]) -> list[Fraction]:
    return [Fraction(float(value)) for value in bits.view(np.float32)]


@pytest.mark.parametrize("heads", [16, 32, 64])
@pytest.mark.parametrize(
    ("order", "generation", "judge"), [(SM90, "max", lanes_then_shuffles), (SM100, "folded", two_pairs)]
)
def test_exact_rationals(heads: int, order: Any, generation: Any, judge: Any) -> None:
    """Scores of 14 bits, as the tensor core gives them, weights and scales of 24, over 16 binary orders."""
    tokens = 60
    drawn = WORDS.random_raw(heads * tokens + heads + tokens)

    def some(words: NDArray[np.uint64], bits: int) -> NDArray[np.float32]:
        whole = (words >> np.uint64(64 - bits)).astype(np.int64) - (1 << bits - 1)
        return np.ldexp(whole.astype(np.float64), -(words & np.uint64(15)).astype(int)).astype(np.float32)

    scores = some(drawn[: heads * tokens], 14).reshape(1, heads, tokens).view(np.uint32)
    weights = some(drawn[heads * tokens :][:heads], 24).reshape(1, heads).view(np.uint32)
    scales = some(drawn[-tokens:], 24).view(np.uint32)
    found = logits_of(order, FLOW, scores, weights, scales, generation)[0]
    w, c = rational(weights[0]), rational(scales)
    for token in range(tokens):
        x = [max(Fraction(0), value) for value in rational(np.ascontiguousarray(scores[0, :, token]))]
        assert Fraction(float(found[token : token + 1].view(np.float32)[0])) == judge(x, w, c[token])


def logit(
    make: Any, scores: dict[int, int], weights: dict[int, float], scale: float, order: Any, **told: Any
) -> float:
    """Of 16 heads and one token: scores as e4m3fn codes against a key of one 1."""
    q = np.zeros((1, 1, 16, 32), np.uint8)
    given = np.zeros((1, 16), np.float32)
    for head, code in scores.items():
        q[0, 0, head, 0], given[0, head] = code, weights[head]
    key = np.zeros((1, 32), np.uint8)
    key[0, 0] = 0x38
    problem = make(q, [key], weights=given, scales=[np.array([scale], np.float32)])
    bits, _ = reference_logits(problem, FLOW, "sm90", order=order, **told)
    return float(bits.view(np.float32)[0, 0])


ONE, THREE = 0x38, 0x44


def test_of_the_first_two_groups_the_second_is_rounded_by_itself(make: Any) -> None:
    """3 * (1 + 2^-23) is one and a half units above 3, a tie that goes to two; fused it stays one and a half."""
    weights = {0: -3.0, 8: 1 + 2.0**-23}
    assert logit(make, {0: ONE, 8: THREE}, weights, 1.0, SM90, generation="max") == 2.0**-21
    assert logit(make, {0: ONE, 8: THREE}, weights, 1.0, "four_chains", generation="max") == 3 * 2.0**-23
    assert logit(make, {0: ONE, 8: THREE}, weights, 1.0, SM100) == 3 * 2.0**-23
    swapped = {8: -3.0, 0: 1 + 2.0**-23}
    assert logit(make, {8: ONE, 0: THREE}, swapped, 1.0, SM90, generation="max") == 3 * 2.0**-23


def test_lanes_are_added_in_pairs(make: Any) -> None:
    """Lane 0 holds 2^24, lanes 2 and 3 hold 1: added to each other first they are not lost."""
    scores, weights = {0: ONE, 4: ONE, 6: ONE}, {0: 2.0**24, 4: 1.0, 6: 1.0}
    assert logit(make, scores, weights, 1.0, SM90, generation="max") == 2.0**24 + 2
    assert logit(make, scores, weights, 1.0, "four_chains") == 2.0**24
    scores, weights = {0: ONE, 1: ONE, 3: ONE}, {0: 2.0**24, 1: 1.0, 3: 1.0}
    assert logit(make, scores, weights, 1.0, SM100) == 2.0**24 + 2
    assert logit(make, scores, weights, 1.0, "four_chains") == 2.0**24


def test_every_lane_is_scaled_before_the_lanes_are_added(make: Any) -> None:
    """Four lanes of half a unit of the subnormals: each is a tie that goes to zero. No sum of scaled parts was within
    the bound for kernels that scale the sum; it is within the one for scaled parts."""
    scores, weights = dict.fromkeys((0, 2, 4, 6), ONE), dict.fromkeys((0, 2, 4, 6), 1.0)
    assert logit(make, scores, weights, 2.0**-149, SM90, generation="max") == 4 * 2.0**-149
    tiny = dict.fromkeys(weights, 0.5)
    assert logit(make, scores, tiny, 2.0**-149, SM90, generation="max") == 0.0
    assert logit(make, scores, tiny, 2.0**-149, SM100) == 2 * 2.0**-149


def small(kind: str, heads: int, next_n: int) -> Problem:
    recipe = Recipe(f"order-{kind}", "twins", (37, 5), 2, heads=heads, next_n=next_n, data=kind)
    return make(recipe).problem


@pytest.mark.parametrize("order", [SM90, SM100])
@pytest.mark.parametrize("kind", ["wide", "special_scales", "nan_keys", "overflow", "subnormals"])
def test_twins(kind: str, order: Any) -> None:
    problem = small(kind, 32, 2)
    for generation in GENERATIONS:
        bits, valid = reference_logits(problem, FLOW, "sm90", generation=generation, order=order)
        for row, column in np.argwhere(valid)[::17].tolist():
            slow = scalar_logit(problem, FLOW, "sm90", row, column, generation, order)
            assert slow == bits[row, column]


@pytest.mark.parametrize("kind", ["wide", "subnormals", "fma_ties"])
def test_bounds_for_scaled_parts_hold_and_can_fail(kind: str) -> None:
    """With exact dot products, so that the roundings of the sum are all there is."""
    problem = small(kind, 64, 1)
    bits, valid = reference_logits(problem, FLOW, "exact", generation="max", order=SM90)
    parts = any_order_bounds(problem, FLOW, "exact", generation="max", scaled="parts")
    whole = any_order_bounds(problem, FLOW, "exact", generation="max")
    assert parts.ratios(bits, "fp32").max() <= 1
    assert np.all(parts.bound >= whole.bound)
    if kind == "subnormals":
        assert whole.ratios(bits, "fp32").max() > 1
    wrong = bits + np.where(valid, np.uint32(1 << 16), np.uint32(0))
    assert parts.ratios(wrong, "fp32").max() > 1


def test_what_is_refused(make: Any) -> None:
    problem = small("rms", 32, 1)
    with pytest.raises(InputError, match="deepgemm_sm90, deepgemm_sm100"):
        reference_logits(problem, FLOW, order="serial")  # type: ignore[arg-type]
    with pytest.raises(Unsupported, match="fp16 epilogue"):
        reference_logits(problem, Flow.parse("fp32-fp16-fp32"), order=SM90)
    few = make(np.zeros((1, 1, 8, 32), np.uint8), [np.zeros((1, 32), np.uint8)])
    with pytest.raises(Unsupported, match="8 heads"):
        reference_logits(few, FLOW, order=SM90)
