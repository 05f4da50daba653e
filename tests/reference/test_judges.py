"""Whole problems against judges from outside: integer dot products or MMA-Sim's, and the epilogue by MPFR."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mqa_ref.flow import Flow
from mqa_ref.reference import GENERATIONS, Generation, reference_logits

FLOW = Flow.parse("fp32-fp32-fp32")
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


CLASSES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "small": (_small_codes, _normal),
    "finite": (_finite_codes, _normal),
    "wide": (_finite_codes, _wide),
    "bits": (_all_codes, _bit_patterns),
}


def _compare(problem: Any, machine: str, generation: Generation, dots: Any, epilogue: Any, parts: Any) -> int:
    """Every valid logit of the problem against the judges; how many there were."""
    found, mask = reference_logits(problem, FLOW, machine, generation=generation)
    keys, scales = parts
    for row in range(problem.rows):
        b, t = divmod(row, problem.next_n)
        valid = int(mask[row].sum())
        expected = epilogue(dots(keys[b], problem.q[b, t]), problem.weights[row], scales[b], generation)
        assert np.array_equal(found[row, :valid], expected[:valid])
    return int(mask.sum())


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("kind", CLASSES)
def test_exact_machine(
    kind: str, generation: Generation, make: Any, exact_dots: Any, mpfr_epilogue: Any, record_property: Any
) -> None:
    draw_codes, draw_floats = CLASSES[kind]
    rng = np.random.default_rng([7, *kind.encode()])
    keys = [draw_codes(rng, (n, 64)) for n in (75, 2)]
    scales = [draw_floats(rng, (n,)) for n in (75, 2)]
    problem = make(
        draw_codes(rng, (2, 3, 8, 64)), keys, scales=scales, weights=draw_floats(rng, (6, 8)), seed=3
    )
    compared = _compare(problem, "exact", generation, exact_dots, mpfr_epilogue, (keys, scales))
    assert compared == 73 + 74 + 75 + 0 + 1 + 2
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

    def dots(tokens: Any, queries: Any) -> Any:
        return mmasim_dots(machine, tokens, queries)

    compared = 0
    for generation in GENERATIONS:
        compared += _compare(problem, machine, generation, dots, mpfr_epilogue, (keys, scales))
    assert compared == 2 * 2 * (63 + 64)
    record_property("tried", compared)


def test_the_classes_reach_what_they_are_for(make: Any) -> None:
    """The judges above would prove little if no logit overflowed, was subnormal or NaN, or if the machines agreed."""
    seen: dict[str, set[str]] = {}
    for kind, (draw_codes, draw_floats) in CLASSES.items():
        rng = np.random.default_rng([9, *kind.encode()])
        keys, scales = [draw_codes(rng, (300, 128))], [draw_floats(rng, (300,))]
        problem = make(draw_codes(rng, (1, 1, 8, 128)), keys, scales=scales, weights=draw_floats(rng, (1, 8)))
        every = {
            machine: reference_logits(problem, FLOW, machine)[0] for machine in ("sm90", "sm100", "exact")
        }
        logits = every["sm100"].view(np.float32)
        facts = {
            "nan": np.isnan(logits).any(),
            "inf": np.isinf(logits).any(),
            "subnormal": ((logits != 0) & (np.abs(logits) < 2.0**-126)).any(),
            "sm100 is not exact": (every["sm100"] != every["exact"]).any(),
            "sm90 is not sm100": (every["sm90"] != every["sm100"]).any(),
        }
        seen[kind] = {name for name, true in facts.items() if true}
    assert "sm100 is not exact" not in seen["small"]
    assert {"sm100 is not exact", "sm90 is not sm100"} <= seen["finite"]
    assert {"inf", "subnormal"} <= seen["wide"]
    assert {"nan"} <= seen["bits"]
