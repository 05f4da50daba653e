"""Whole problems against judges from outside: integer dot products or MMA-Sim's, and the epilogue by MPFR."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from mqa_ref.flow import FLOWS, Flow
from mqa_ref.reference import GENERATIONS, Generation, reference_logits

Rng = np.random.Generator


def _small_codes(rng: Rng, shape: tuple[int, ...]) -> Any:
    """Codes of magnitude up to 2 or so: every sum is exact on every machine."""
    return rng.integers(0, 0x40, shape, dtype=np.uint8) | rng.integers(0, 2, shape, dtype=np.uint8) << 7


def _finite_codes(rng: Rng, shape: tuple[int, ...]) -> Any:
    return rng.integers(0, 0x7F, shape, dtype=np.uint8) | rng.integers(0, 2, shape, dtype=np.uint8) << 7


def _all_codes(rng: Rng, shape: tuple[int, ...]) -> Any:
    """Few vectors of 32 uniform codes are without a NaN, so most heads get one only in one vector of four."""
    found = _finite_codes(rng, shape)
    found[rng.random(shape[:-1]) < 0.25, 3] = 0x7F
    return found


def _normal(rng: Rng, shape: tuple[int, ...]) -> Any:
    return rng.standard_normal(shape).astype(np.float32)


def _wide(rng: Rng, shape: tuple[int, ...]) -> Any:
    """All exponents, so that sums overflow, cancel and become subnormal."""
    return np.ldexp(rng.uniform(-2, 2, shape), rng.integers(-149, 128, shape)).astype(np.float32)


def _bit_patterns(rng: Rng, shape: tuple[int, ...]) -> Any:
    return rng.integers(0, 2**32, shape, dtype=np.uint32).view(np.float32)


def _halves(rng: Rng, shape: tuple[int, ...]) -> Any:
    """All exponents of fp16 and a few more, so that weights and scales vanish, round, overflow in fp16."""
    return np.ldexp(rng.uniform(-2, 2, shape), rng.integers(-26, 4, shape)).astype(np.float32)


CLASSES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "small": (_small_codes, _normal),
    "finite": (_finite_codes, _normal),
    "wide": (_finite_codes, _wide),
    "halves": (_small_codes, _halves),
    "bits": (_all_codes, _bit_patterns),
}
GENERATIONS_OF = {flow: GENERATIONS if flow.split("-")[1] == "fp32" else GENERATIONS[:1] for flow in FLOWS}
CASES = [(flow, generation) for flow in FLOWS for generation in GENERATIONS_OF[flow]]


def _compare(
    problem: Any, machine: str, case: tuple[str, Generation], dots: Any, epilogue: Any, parts: Any
) -> int:
    """Every valid logit of the problem against the judges; how many there were."""
    flow, generation = Flow.parse(case[0]), case[1]
    found, mask = reference_logits(problem, flow, machine, generation=generation)
    keys, scales = parts
    for row in range(problem.rows):
        b, t = divmod(row, problem.next_n)
        valid = int(mask[row].sum())
        acc = dots(keys[b], problem.q[b, t], flow.acc)
        expected = epilogue(acc, problem.weights[row], scales[b], flow, generation)
        assert np.array_equal(found[row, :valid], expected[:valid])
    return int(mask.sum())


@pytest.mark.parametrize("case", CASES, ids="/".join)
@pytest.mark.parametrize("kind", CLASSES)
def test_exact_machine(
    kind: str,
    case: tuple[str, Generation],
    make: Any,
    exact_dots: Any,
    mpfr_epilogue: Any,
    record_property: Any,
) -> None:
    draw_codes, draw_floats = CLASSES[kind]
    rng = np.random.default_rng([7, *kind.encode()])
    keys = [draw_codes(rng, (n, 64)) for n in (35, 2)]
    scales = [draw_floats(rng, (n,)) for n in (35, 2)]
    problem = make(
        draw_codes(rng, (2, 3, 8, 64)), keys, scales=scales, weights=draw_floats(rng, (6, 8)), seed=3
    )
    compared = _compare(problem, "exact", case, exact_dots, mpfr_epilogue, (keys, scales))
    assert compared == 33 + 34 + 35 + 0 + 1 + 2
    record_property("tried", compared)


@pytest.mark.parametrize("machine", ["sm90", "sm100"])
@pytest.mark.parametrize("kind", CLASSES)
def test_tensor_cores(
    kind: str, machine: str, make: Any, mmasim_dots: Any, mpfr_epilogue: Any, record_property: Any
) -> None:
    draw_codes, draw_floats = CLASSES[kind]
    rng = np.random.default_rng([9, *kind.encode()])
    keys, scales = [draw_codes(rng, (64, 128)) for _ in range(2)], [draw_floats(rng, (64,)) for _ in range(2)]
    problem = make(
        draw_codes(rng, (2, 2, 8, 128)), keys, scales=scales, weights=draw_floats(rng, (4, 8)), page=64
    )

    known: dict[tuple[bytes, bytes, str], Any] = {}

    def dots(tokens: Any, queries: Any, acc: str) -> Any:
        """MMA-Sim is asked once for each accumulator format; the cases with the same one differ behind it."""
        name = tokens.tobytes(), queries.tobytes(), acc
        if name not in known:
            known[name] = mmasim_dots(machine, tokens, queries, acc)
        return known[name].copy()

    compared = sum(_compare(problem, machine, case, dots, mpfr_epilogue, (keys, scales)) for case in CASES)
    assert compared == len(CASES) * 2 * (63 + 64)
    record_property("tried", compared)


def test_the_generations_are_one_in_the_fp16_epilogue(make: Any) -> None:
    rng = np.random.default_rng(4)
    keys = [_all_codes(rng, (100, 32))]
    problem = make(_all_codes(rng, (1, 2, 8, 32)), keys, weights=_wide(rng, (2, 8)))
    for name in FLOWS:
        ways = [reference_logits(problem, Flow.parse(name), generation=g)[0] for g in GENERATIONS]
        for first, second in combinations(ways, 2):
            assert np.array_equal(first, second) == (name.split("-")[1] == "fp16")


FACTS: dict[str, dict[str, set[str]]] = {  # by flow and class, what must be seen at least
    "fp32-fp32-fp32": {
        "finite": {"sm100 is not exact", "sm90 is not sm100"},
        "wide": {"inf", "subnormal"},
        "bits": {"nan"},
    },
    "fp32-fp16-fp16": {
        "finite": {"inf", "sm90 is not sm100"},
        "halves": {"subnormal", "zero"},
        "bits": {"nan"},
    },
    "fp16-fp16-fp16": {
        "finite": {"inf", "sm90 is not sm100"},
        "halves": {"subnormal", "zero"},
        "bits": {"nan"},
    },
}


@pytest.mark.parametrize("name", FACTS)
def test_the_classes_reach_what_they_are_for(name: str, make: Any) -> None:
    """The judges above would prove little if no logit overflowed, was subnormal or NaN, or if the machines agreed."""
    for kind, (draw_codes, draw_floats) in CLASSES.items():
        rng = np.random.default_rng([9, *kind.encode()])
        keys, scales = [draw_codes(rng, (300, 128))], [draw_floats(rng, (300,))]
        problem = make(draw_codes(rng, (1, 1, 8, 128)), keys, scales=scales, weights=draw_floats(rng, (1, 8)))
        every = {
            machine: reference_logits(problem, Flow.parse(name), machine)[0]
            for machine in ("sm90", "sm100", "exact")
        }
        logits = every["sm100"].view(np.float32 if name.endswith("32") else np.float16)
        smallest_normal = 2.0**-126 if name.endswith("32") else 2.0**-14
        facts = {
            "nan": np.isnan(logits).any(),
            "inf": np.isinf(logits).any(),
            "zero": (logits == 0).any(),
            "subnormal": ((logits != 0) & (np.abs(logits) < smallest_normal)).any(),
            "sm100 is not exact": (every["sm100"] != every["exact"]).any(),
            "sm90 is not sm100": (every["sm90"] != every["sm100"]).any(),
        }
        assert FACTS[name].get(kind, set()) <= {fact for fact, true in facts.items() if true}, kind
        if name == "fp32-fp32-fp32" and kind == "small":
            assert not facts["sm100 is not exact"]
