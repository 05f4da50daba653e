"""The comparison with error bounds: other orders pass, one wrong element fails, nothing special is let through."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mqa_ref.compare import Comparison, compare_within
from mqa_ref.errors import InputError
from mqa_ref.flow import FLOWS, Flow
from mqa_ref.launch import Launch
from mqa_ref.numerics import FORMATS
from mqa_ref.problem import Problem
from mqa_ref.reference import (
    ORDERS,
    any_order_bounds,
    exact_logits,
    own_order_bounds,
    reference_logits,
    reordered_logits,
)

BATCH, HEADS, DIM, PAGE, LENGTH = 2, 16, 64, 64, 200
PAGES = BATCH * 4
FP32 = Flow.parse("fp32-fp32-fp32")
NAN, INF = 0x7FC00000, 0x7F800000


def make(scales: Any = None, weights: Any = None, q: Any = None) -> Problem:
    random = np.random.default_rng(3)

    def codes(*shape: int) -> Any:
        return (random.integers(0x20, 0x40, shape) + 128 * random.integers(0, 2, shape)).astype(np.uint8)

    keys, queries = codes(PAGES, PAGE * DIM), codes(BATCH, 1, HEADS, DIM)
    some_scales = random.uniform(0.25, 1, (PAGES, PAGE)).astype("<f4")
    some_weights = random.normal(size=(BATCH, HEADS)).astype(np.float32)
    return Problem(
        queries if q is None else q(queries),
        np.concatenate(
            [keys, (some_scales if scales is None else scales(some_scales)).view(np.uint8)], axis=1
        ),
        some_weights if weights is None else weights(some_weights),
        np.arange(PAGES, dtype=np.int32).reshape(BATCH, -1),
        np.array([LENGTH, LENGTH - 7], np.int32),
        page=PAGE,
        num_sms=2,
    )


def within(problem: Problem, flow: Flow, bits: np.ndarray, factor: float = 1.0, **given: Any) -> Comparison:
    written = given.pop("written", np.ones(bits.shape, np.bool_))
    bounds = any_order_bounds(problem, flow)
    return compare_within(Launch(bits, written, (), 2, 0, 0.0), problem, flow, bounds, factor)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", FLOWS)
def test_other_orders_pass(name: str, order: str) -> None:
    problem, flow = make(), Flow.parse(name)
    told = within(problem, flow, reordered_logits(problem, flow, order=order)[0])
    assert told.equal
    assert told.compared == LENGTH + LENGTH - 7
    assert told.max_ratio is not None
    assert 0 < told.max_ratio <= 1
    (top,) = told.worst  # of a right element, told all the same
    assert (top.measure, top.value, top.element.kind) == ("bound ratio", told.max_ratio, "value")
    assert (told.factor, told.unbounded, told.where, told.suspects) == (1.0, 0, (), ())


@pytest.mark.parametrize("name", FLOWS)
def test_one_element_beyond_its_bound_fails_and_is_placed(name: str) -> None:
    problem, flow = make(), Flow.parse(name)
    bits = reordered_logits(problem, flow, order="pairwise")[0]
    bounds = any_order_bounds(problem, flow)
    dtype: Any = {"fp32": np.float32, "fp16": np.float16}.get(flow.out)
    if dtype is None:
        bits[1, 70] ^= 0x0040  # the highest bit of a bf16 fraction
    else:
        bits[1, 70] = dtype(bounds.value[1, 70] + 3 * bounds.bound[1, 70]).view(bits.dtype)
    told = within(problem, flow, bits)
    assert told.counts["value"] == told.mismatched == 1
    assert told.where[0].startswith("one element: row 1 column 70 ")
    assert told.max_ratio is not None
    assert told.max_ratio > 2.5
    (ratio,) = [worst for worst in told.worst if worst.measure == "bound ratio"]
    assert (ratio.element.place.row, ratio.element.place.column) == (1, 70)
    truth = exact_logits(problem, flow.out)[0][1, 70]
    assert int(ratio.element.expected, 16) == truth
    assert ratio.element.actual == f"0x{int(bits[1, 70]):0{FORMATS[flow.out].bits // 4}x}"


def test_the_factor_multiplies_every_bound() -> None:
    problem = make()
    bits = reordered_logits(problem, FP32, order="pairwise")[0]
    ratios = any_order_bounds(problem, FP32).ratios(bits, "fp32")
    factor = float(np.quantile(ratios[ratios > 0], 0.9))
    told = within(problem, FP32, bits, factor)
    assert told.mismatched == int((ratios > factor).sum()) > 5
    assert told.max_ratio == ratios.max()
    assert within(problem, FP32, bits, float(ratios.max())).equal


def test_own_order_bounds_are_the_narrower_ones() -> None:
    problem = make()
    launch = Launch(
        *reference_logits(problem, FP32, "sm90")[:1], np.ones((2, LENGTH), np.bool_), (), 2, 0, 0.0
    )
    assert compare_within(
        launch, problem, FP32, own_order_bounds(problem, FP32, "sm90"), machine="sm90"
    ).equal
    assert not compare_within(launch, problem, FP32, own_order_bounds(problem, FP32, "sm100")).equal


@pytest.mark.parametrize(("word", "kind"), [(NAN, "nan"), (INF, "inf"), (0xFF800000, "inf")])
def test_what_cannot_overflow_must_be_finite(word: int, kind: Any) -> None:
    problem = make()
    bits = reference_logits(problem, FP32)[0]
    bits[0, 3] = word
    told = within(problem, FP32, bits)
    assert told.counts[kind] == told.mismatched == 1
    assert told.max_ratio == np.inf


def test_unwritten_and_invalid_elements() -> None:
    problem = make()
    bits = reference_logits(problem, FP32)[0]
    bits[1, LENGTH - 7 :] = NAN
    written = np.ones(bits.shape, np.bool_)
    written[0, 9] = written[1, LENGTH - 1] = False
    told = within(problem, FP32, bits, written=written)
    assert told.counts["unwritten"] == told.mismatched == 1


def test_where_overflow_is_right_every_value_passes_and_is_counted() -> None:
    problem = make(weights=lambda w: np.full_like(w, 3e38))
    bits = reference_logits(problem, FP32)[0]
    assert (bits == INF).sum() > 100
    told = within(problem, FP32, bits)
    assert told.equal
    assert told.unbounded == told.compared
    assert told.max_ratio is None
    assert within(problem, FP32, np.zeros_like(bits)).equal
    written = np.ones(bits.shape, np.bool_)
    written[0, 0] = False
    assert within(problem, FP32, bits, written=written).counts["unwritten"] == 1


def one_scale(value: float) -> Any:
    def change(scales: np.ndarray) -> np.ndarray:
        scales[0, 5] = value
        return scales

    return change


# What the reference gives at row 0 column 5, what the launch has there, and the class of the difference.
SPECIAL: list[tuple[float, int, Any]] = [
    (np.nan, NAN, None),
    (np.nan, 0xFFC00001, None),
    (np.nan, 0x3F800000, "nan"),
    (np.nan, INF, "nan"),
    (np.inf, NAN, None),  # the sum may round to 0 in another order
    (np.inf, INF, None),
    (np.inf, 0xFF800000, None),  # and its sign may turn
    (np.inf, 0x3F800000, "inf"),
]


@pytest.mark.parametrize(("scale", "word", "kind"), SPECIAL)
def test_special_inputs_are_held_against_the_class_of_the_reference(
    scale: float, word: int, kind: Any
) -> None:
    problem = make(scales=one_scale(scale))
    bits = reordered_logits(problem, FP32, order="serial")[0]
    bits[0, 5] = word
    told = within(problem, FP32, bits)
    assert told.equal == (kind is None)
    assert told.counts == {name: int(name == kind) for name in told.counts}


def first_weight_inf(weights: np.ndarray) -> np.ndarray:
    out = np.abs(weights)
    out[0, 0] = np.inf
    return out


def test_the_sign_of_an_infinity_that_a_weight_makes_is_held() -> None:
    problem = make(weights=first_weight_inf)
    bits = reference_logits(problem, FP32)[0]
    at = int(np.flatnonzero(bits[0] == INF)[0])
    assert within(problem, FP32, bits).equal
    bits[0, at] = 0xFF800000
    told = within(problem, FP32, bits)
    assert told.counts["inf_sign"] == told.mismatched == 1


def test_a_nan_that_the_flow_turns_into_zero_must_stay_finite() -> None:
    """max.f16x2 takes the number (docs/flows.md), so a NaN in a query head gives a finite logit in fp16 epilogues."""

    def spoil(q: np.ndarray) -> np.ndarray:
        q[0, 0, 2, 7] = 0x7F
        return q

    flow, problem = Flow.parse("fp32-fp16-fp16"), make(q=spoil)
    bits = reference_logits(problem, flow)[0]
    assert within(problem, flow, bits).equal
    bits[0, 11] = 0x7E00
    assert within(problem, flow, bits).counts["nan"] == 1


def test_a_zeroed_tile_and_a_common_factor_are_explained() -> None:
    problem = make()
    right = reordered_logits(problem, FP32, order="pairwise")[0]
    zeroed = right.copy()
    zeroed[1, :128] = 0
    told = within(problem, FP32, zeroed)
    assert "tile 0 of row 1" in told.where[0]
    assert told.suspects == ("zeros, as if nothing was computed or the result was cleared",)
    larger = (right.view(np.float32) * np.float32(1.003)).view(np.uint32)
    assert within(problem, FP32, larger).suspects == ("the right logits times 1.003, within the bounds",)


@pytest.mark.parametrize("factor", [-1.0, np.nan, np.inf])
def test_a_factor_that_is_none_is_refused(factor: float) -> None:
    problem = make()
    with pytest.raises(InputError) as caught:
        within(problem, FP32, reference_logits(problem, FP32)[0], factor)
    assert [fault.argument for fault in caught.value.faults] == ["factor"]


def test_arrays_that_do_not_fit_are_refused() -> None:
    problem = make()
    with pytest.raises(InputError) as caught:
        within(problem, FP32, np.zeros((2, 100), np.uint16))
    assert [fault.argument for fault in caught.value.faults] == ["launch.logits", "launch.logits"]
