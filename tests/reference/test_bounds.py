"""The error bounds attacked: never exceeded, not vacuous, and blind to nothing that they claim to see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import islice, product
from typing import Any

import numpy as np
import pytest

from mqa_ref.errors import InputError
from mqa_ref.flow import FLOWS, Flow
from mqa_ref.numerics import FORMATS, MACHINES, cvt_bf16_f32, cvt_f16_f32, to_float64
from mqa_ref.numerics.machines import Final32
from mqa_ref.reference import (
    GENERATIONS,
    Generation,
    any_order_bounds,
    observe,
    own_order_bounds,
    reference_logits,
)
from mqa_ref.reference.attacks import PLAIN_FLOATS, attack_problems
from mqa_ref.reference.observations import observe_flows

KINDS = (own_order_bounds, any_order_bounds)
FP32, FP16 = Flow.parse("fp32-fp32-fp32"), Flow.parse("fp32-fp16-fp16")
ONE, MAX448 = 0x38, 0x7E
FLT_MAX = float(np.finfo(np.float32).max)


def cases() -> Iterator[tuple[str, str, Generation]]:
    for machine, stages in product(MACHINES, ("fp32-fp32", "fp32-fp16", "fp16-fp16")):
        for generation in GENERATIONS[: 2 if stages == "fp32-fp32" else 1]:
            yield machine, stages, generation


CASES = list(cases())


@pytest.mark.parametrize(("machine", "stages", "generation"), CASES)
def test_attacks(machine: str, stages: str, generation: Generation, record_property: Any) -> None:
    """Some 200,000 logits of each output in all. docs/bounds.md has ten million of each flow and machine."""
    flows, tried = [Flow.parse(name) for name in FLOWS if name.startswith(stages)], 0
    seed = CASES.index((machine, stages, generation))
    for seen in observe_flows(flows, machine, seed, 17_000, generation).values():
        assert seen.elements >= seen.bounded >= 17_000
        assert 0.2 < seen.own_order <= 1
        assert 0.1 < seen.any_order <= 1
        tried += seen.bounded
    record_property("tried", tried)


@pytest.mark.parametrize(("machine", "stages", "generation"), CASES)
def test_not_vacuous(machine: str, stages: str, generation: Generation) -> None:
    """At least a fifth of the bound, where no input is rounded and no result underflows."""
    flows = [Flow.parse(name) for name in FLOWS if name.startswith(stages)]
    found = observe_flows(flows, machine, 1, 60_000, generation, PLAIN_FLOATS)
    assert len(found) == 3
    for seen in found.values():
        assert 0.2 <= seen.own_order <= 1


def test_flows_of_one_stage_are_conversions_of_one() -> None:
    """What ``observe_flows`` relies on: bits and bounds of narrower outputs come from those of fp32."""
    for problem, name in product(islice(attack_problems(6), 6), FLOWS):
        flow = Flow.parse(name)
        if flow.out in ("fp32", flow.epi):
            continue
        plain = replace(flow, out="fp32")
        store = cvt_f16_f32 if flow.out == "fp16" else cvt_bf16_f32
        bits = reference_logits(problem, flow)[0]
        assert np.array_equal(bits, store(reference_logits(problem, plain)[0]))
        for kind in KINDS:
            narrow, wide = kind(problem, flow), kind(problem, plain)
            assert np.all(narrow.bound >= wide.bound)
            assert np.array_equal(narrow.bound, wide.stored(flow.out).bound)


@pytest.mark.parametrize("fraction_bits", [1, 8, 20, 24, 40])
@pytest.mark.parametrize("final32", ["rz", "rz13", "rne"])
def test_other_machines(fraction_bits: int, final32: Final32) -> None:
    model = replace(MACHINES["sm100"], fraction_bits=fraction_bits, final32=final32)
    for name in ("fp32-fp32-fp32", "fp16-fp16-fp16"):
        seen = observe(Flow.parse(name), model, seed=7, elements=5_000)
        assert 0 < seen.own_order <= 1
        assert 0 < seen.any_order <= 1


@pytest.mark.parametrize("machine", ["sm90", "sm100"])
def test_the_cut_of_the_tensor_core_is_not_vacuous(make: Any, machine: str) -> None:
    """448 * 448 has exponent 16; 31 products of 15/16 of the unit 2**(16 - F) are cut to 0 in every head.

    15/8 * 2**(14 - F) * 2: with F = 13, 7.5 = 3.75 * 2; with F = 25, 15/8 * 2**-4 * 2**-6.
    """
    q, key = (
        np.full((1, 1, 8, 32), 0x47 if machine == "sm90" else 0x1F, np.uint8),
        np.full((1, 32), 0x40, np.uint8),
    )
    if machine == "sm100":
        key[:] = 0x08
    q[..., 0] = key[:, 0] = MAX448
    problem = make(q, [key])
    lost = 8 * 31 * (7.5 if machine == "sm90" else 15 * 2.0**-13)
    for kind, least in ((own_order_bounds, 0.8 if machine == "sm90" else 0.4), (any_order_bounds, 0.2)):
        bounds = kind(problem, FP32, machine)
        assert bounds.value[0, 0] == 8 * 448 * 448 + lost
        found = reference_logits(problem, FP32, machine)[0]
        assert found.view(np.float32)[0, 0] == 8 * 448 * 448
        assert least < bounds.ratios(found, "fp32")[0, 0] == lost / bounds.bound[0, 0] <= 1


@pytest.mark.parametrize("name", ["fp32-fp32-fp32", "fp32-fp32-bf16", "fp32-fp16-fp16", "fp16-fp16-bf16"])
def test_against_rationals(name: str, e4m3_values: Any, record_property: Any) -> None:
    """Bound and value against the true logit as a Fraction, without any float64."""
    rng, tried, flow = np.random.default_rng(3), 0, Flow.parse(name)
    for problem in islice(attack_problems(77), 40):
        bits = reference_logits(problem, flow)[0]
        bounds = [kind(problem, flow) for kind in KINDS]
        for row, token in zip(rng.integers(problem.rows, size=6), rng.integers(500, size=6), strict=True):
            if any(bound.may_overflow[row, token] for bound in bounds):
                continue
            true = rational(problem, int(row), int(token), e4m3_values)
            computed = FORMATS[flow.out].value(int(bits[row, token]))
            for found in bounds:
                bound = Fraction(float(found.bound[row, token]))
                assert abs(computed - true) <= bound
                assert abs(Fraction(float(found.value[row, token])) - true) <= bound / 1000
            tried += 1
    assert tried > 100
    record_property("tried", tried)


def rational(problem: Any, row: int, token: int, e4m3: Any) -> Fraction:
    b, t = divmod(row, problem.next_n)
    page, slot = problem.block_table[b, token // problem.page], token % problem.page
    key = e4m3[problem.key_codes[page, slot]] * 512
    total = Fraction(0)
    for head in range(problem.heads):
        dot = sum(int(x) * int(y) for x, y in zip(e4m3[problem.q[b, t, head]] * 512, key, strict=True))
        total += Fraction(float(problem.weights[row, head])) * max(dot, 0)
    scale = problem.scale_bits[page, slot : slot + 1].view("<f4")[0]
    return total * Fraction(float(scale)) / 2**18


def one_logit(make: Any, codes: tuple[int, int], weight: float = 1.0, scale: float = 1.0) -> Any:
    q, key = np.zeros((1, 1, 8, 32), np.uint8), np.zeros((1, 32), np.uint8)
    q[0, 0, 0, 0], key[0, 0] = codes
    return make(q, [key], weights=np.full((1, 8), weight), scales=[np.array([scale], np.float32)])


@pytest.mark.parametrize(
    ("name", "codes", "weight", "scale", "overflows"),
    [
        ("fp32-fp32-fp32", (MAX448, MAX448), 1.0, 1.0, False),
        ("fp32-fp32-fp32", (ONE, ONE), FLT_MAX, 0.5, True),  # twice FLT_MAX
        ("fp32-fp32-fp32", (ONE, ONE), 1.0, FLT_MAX / 2, False),
        ("fp32-fp32-fp32", (MAX448, MAX448), 1.0, FLT_MAX / 2, True),
        ("fp32-fp32-fp16", (ONE, ONE), 1.0, 65000.0, False),
        ("fp32-fp32-fp16", (ONE, ONE), 1.0, 65520.0, True),
        ("fp32-fp32-bf16", (ONE, ONE), 1.0, FLT_MAX, True),
        ("fp32-fp16-fp32", (MAX448, MAX448), 1.0, 1.0, True),
        ("fp32-fp16-fp32", (MAX448 | 0x80, MAX448), 1.0, 1.0, False),  # ReLU takes it away
        ("fp16-fp16-fp32", (MAX448 | 0x80, MAX448), 1.0, 1.0, False),
        ("fp32-fp16-fp32", (ONE, ONE), 65000.0, 1.0, False),
        ("fp32-fp16-fp32", (ONE, ONE), 65520.0, 1.0, True),
        ("fp32-fp16-fp32", (ONE, ONE), 1.0, 65520.0, True),
        ("fp32-fp16-fp16", (0x78, 0x70), 0.5, 1.0, False),  # 256 * 128 = 2**15
        ("fp32-fp16-fp16", (0x78, 0x70), 1.0, 2.0, True),
    ],
)
def test_what_may_overflow(
    make: Any, name: str, codes: tuple[int, int], weight: float, scale: float, overflows: bool
) -> None:
    """One product in one head. Where the flow does overflow, the predicate has to say so; else it must not."""
    problem, flow = one_logit(make, codes, weight, scale), Flow.parse(name)
    bounds = own_order_bounds(problem, flow)
    bits = reference_logits(problem, flow)[0]
    assert bounds.may_overflow.tolist() == [[overflows]]
    assert np.isinf(bounds.bound).tolist() == [[overflows]]
    finite = np.isfinite(to_float64(bits, FORMATS[flow.out]))
    assert finite.tolist() == [[not overflows]]
    assert bounds.ratios(bits, flow.out)[0, 0] <= 1


def test_the_max_generation_has_the_last_binade(make: Any) -> None:
    problem = one_logit(make, (ONE, ONE), 2.0**127, 0.5)
    assert [own_order_bounds(problem, FP32, generation=g).may_overflow[0, 0] for g in GENERATIONS] == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_logits_exceed_the_bound(make: Any, kind: Any) -> None:
    """A scale 0.3 % off, a swapped pair of heads' weights, a zero, an inf and a NaN; the right ones pass."""
    rng = np.random.default_rng(8)
    q, keys = (rng.integers(0x20, 0x40, size, dtype=np.uint8) for size in ((1, 1, 8, 64), (50, 64)))
    weights = rng.uniform(0.5, 2, (1, 8)).astype(np.float32)
    problem = make(q, [keys], weights=weights)
    bounds, right = kind(problem, FP32), reference_logits(problem, FP32)[0]
    assert bounds.ratios(right, "fp32").max() <= 1
    values = right.view(np.float32)
    swapped = make(q, [keys], weights=weights[:, [1, 0, 2, 3, 4, 5, 6, 7]])
    wrong = [values * np.float32(1.003), values * 0, values + np.inf, values + np.nan]
    for logits in (*(array.view(np.uint32) for array in wrong), reference_logits(swapped, FP32)[0]):
        assert bounds.ratios(logits, "fp32").min() > 1


@pytest.mark.parametrize("kind", KINDS)
def test_special_inputs_have_no_bound(make: Any, kind: Any) -> None:
    q, keys = np.full((1, 2, 8, 32), ONE, np.uint8), np.full((4, 32), ONE, np.uint8)
    q[0, 1, 3, 5] = keys[1, 7] = 0x7F
    problem = make(q, [keys], scales=[np.array([1, 1, np.inf, 1], np.float32)])
    bounds = kind(problem, FP16)
    assert bounds.mask.tolist() == [[True] * 3 + [False], [True] * 4]
    assert bounds.special.tolist() == [[False, True, True, False], [True] * 4]
    assert bounds.ratios(np.full((2, 4), 0x7FFF, np.uint16), "fp16").tolist() == [[np.inf, 0, 0, 0], [0] * 4]
    infinite = make(q[:, :1], [keys], weights=np.array([[1] * 7 + [-np.inf]]))
    assert kind(infinite, FP32).special.all()


def test_zeros_have_a_bound_of_zero(make: Any) -> None:
    """No positive dot, or a scale of 0: nothing can be rounded."""
    for problem in (one_logit(make, (ONE, ONE | 0x80)), one_logit(make, (ONE, ONE), scale=0.0)):
        for kind, name in product(KINDS, FLOWS):
            assert kind(problem, Flow.parse(name)).bound.tolist() == [[0.0]]


def test_bad_requests(make: Any) -> None:
    problem = one_logit(make, (ONE, ONE))
    for kind in KINDS:
        with pytest.raises(InputError, match=r"machine.*generation"):
            kind(problem, FP32, "sm42", generation="new")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"seed.*elements"):
        observe(FP32, seed=-1, elements=0)
    with pytest.raises(InputError, match="flows"):
        observe_flows([FP32, FP16], "sm100", 0, 1)
