"""The arithmetic with every rule as a choice: with the published ones it is the scalar twin of numerics, and each other
choice is worked on paper once."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mqa_ref.calibrate.arithmetic import Arithmetic, of_model, step
from mqa_ref.calibrate.vectors import power, vectors
from mqa_ref.numerics import E4M3FN, FP16, FP32, MACHINES, scalar

SM100 = Arithmetic(25, 23)
ONE, MINUS_ONE = 0x38, 0xB8


def run(rules: Arithmetic, pairs: list[tuple[int, int]], c: int = 0, acc: str = "fp32") -> int:
    filled = [*pairs, *[(0, 0)] * (32 - len(pairs))]
    return step(rules, [x for x, _ in filled], [y for _, y in filled], c, acc)


@pytest.mark.parametrize("acc", ["fp32", "fp16"])
@pytest.mark.parametrize("name", MACHINES)
def test_with_the_published_rules_it_is_the_scalar_twin(name: str, acc: str) -> None:
    model, rules = MACHINES[name], of_model(MACHINES[name], acc)
    tried = 0
    for vector in vectors(acc)[::3]:
        assert step(rules, vector.a, vector.b, vector.c, acc) == scalar.mma_step(
            vector.a, vector.b, vector.c, machine=model, acc=acc
        ), vector
        tried += 1
    random = np.random.default_rng(7)
    for _ in range(60):
        a, b = random.integers(0, 256, (2, 32)).tolist()
        c = int(random.integers(0, 2**32 if acc == "fp32" else 2**16))
        assert step(rules, a, b, c, acc) == scalar.mma_step(a, b, c, machine=model, acc=acc)
    assert tried > 140


def test_powers_are_what_they_say() -> None:
    for exponent in range(-18, 17):
        x, y = power(exponent, -1)
        assert E4M3FN.value(x) * E4M3FN.value(y) == -(Fraction(2) ** exponent)


def f32(value: float) -> int:
    return FP32.encode(Fraction(value))


BIG, BACK = power(16), power(16, -1)
TALL = [(0x7D, 0x7D), (0xFD, 0x7D)]
HALF_MORE = (power(-5)[0] + 4, power(-5)[1])
CHOICES: list[tuple[Any, ...]] = [
    # name, choice, pairs, c, acc, by the published rules, by the choice
    ("cut down", {"cut": "down", "fraction_bits": 20}, [BIG, BACK, power(-5, -1)], 0, "fp32", 0, f32(-(2**-4))),
    ("cut nearest", {"cut": "nearest", "fraction_bits": 20}, [BIG, BACK, HALF_MORE], 0, "fp32", 0, f32(2**-4)),
    ("groups", {"group": 2, "fraction_bits": 20}, [BIG, BACK, power(-18)], 0, "fp32", 0, f32(2**-18)),
    ("accumulator after", {"accumulator_is_term": False}, [BIG, BACK], f32(2**-30), "fp32", 0, f32(2**-30)),
    ("normalised", {"normalised": True, "fraction_bits": 20}, [*TALL, power(-4)], 0, "fp32", f32(2**-4), 0),
    ("subnormal factor", {"operands_normalised": True}, [(1, 0x78), (0x81, 0x78)], f32(2**-25), "fp32", 0, f32(2**-25)),
    ("zeros count", {"zeros_count": True}, [(0, 0x7E)], f32(2**-24), "fp32", f32(2**-24), 0),
    ("to nearest", {"final": "rne"}, [power(0)], f32(2**-24 + 2**-25), "fp32", f32(1), f32(1 + 2**-23)),
    ("13 bits", {"final_bits": 13}, [power(0), power(-14)], 0, "fp32", f32(1 + 2**-14), f32(1)),
    ("up", {"final": "up"}, [power(0)], f32(2**-24), "fp32", f32(1), f32(1 + 2**-23)),
    ("down", {"final": "down"}, [power(0, -1)], f32(-(2**-24)), "fp32", f32(-1), f32(-1 - 2**-23)),
    ("operands flushed", {"operands_flushed": True}, [(0x07, ONE)], 0, "fp32", f32(7 * 2**-9), 0),
    ("accumulators flushed", {"accumulators_flushed": True}, [], 1, "fp32", 1, 0),
    ("ieee zero", {"zero": "ieee"}, [(0x80, ONE)] * 32, 0x80000000, "fp32", 0, 0x80000000),
    ("minus zero", {"zero": "minus on cancellation"}, [(ONE, ONE), (ONE, MINUS_ONE)], 0, "fp32", 0, 0x80000000),
    ("quiet NaN", {"nan": "quiet"}, [(0x7F, ONE)], 0, "fp32", 0x7FFFFFFF, 0x7FC00000),
    ("own NaN", {"nan": "accumulator's"}, [(ONE, ONE)], 0xFFC00001, "fp32", 0x7FFFFFFF, 0xFFC00001),
    ("infinity", {"infinity_stays": False}, [(ONE, ONE)], 0x7F800000, "fp32", 0x7F800000, 0x7FFFFFFF),
    ("saturating", {"overflow_saturates": True}, [power(15), power(15)], 0, "fp16", 0x7C00, 0x7BFF),
]  # fmt: skip


@pytest.mark.parametrize("choice", CHOICES, ids=[one[0] for one in CHOICES])
def test_each_choice_changes_what_it_says(choice: tuple[Any, ...]) -> None:
    _, fields, pairs, c, acc, published, chosen = choice
    plain = Arithmetic(fields.get("fraction_bits", 25), 10, "rne") if acc == "fp16" else SM100
    plain = replace(plain, fraction_bits=fields.get("fraction_bits", 25))
    assert run(plain, pairs, c, acc) == published
    assert run(replace(plain, **fields), pairs, c, acc) == chosen


def test_a_sum_that_goes_through_fp32_is_rounded_twice() -> None:
    """30 + 2^-7 is a tie of fp16; 2^-24 above it decides, unless 23 bits are all that is left of the sum."""
    rules = Arithmetic(25, 10, "rne")
    pairs, c = [(ONE, ONE)] * 30 + [power(-7)], FP16.encode(Fraction(2) ** -24)
    once, twice = run(rules, pairs, c, "fp16"), run(replace(rules, through=23), pairs, c, "fp16")
    assert FP16.value(once) == 30 + Fraction(1, 64)
    assert FP16.value(twice) == 30
