"""The true logits: against exact rationals rounded by MPFR, by hand, and each of the three ways to them."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
import pytest

from mqa_ref.errors import InputError
from mqa_ref.numerics import FORMATS
from mqa_ref.reference import exact, exact_logits, scalar_exact_logit
from mqa_ref.reference.attacks import attack_problems

OUTPUTS = ("fp32", "fp16", "bf16")
ONE = 0x38


def one_hot(count: int) -> Any:
    """q [1, 1, count, 32] of heads that are 1 at place 0, and the key that is."""
    q = np.zeros((1, 1, count, 32), np.uint8)
    q[..., 0] = ONE
    return q, [q[0, 0, :1]]


def from_weights(make: Any, weights: list[float], scale: float = 1.0, sign: int = 0) -> Any:
    """A problem of one logit whose dots are all 1 (or -1): scale * sum(weights)."""
    q, keys = one_hot(max(8, -(-len(weights) // 8) * 8))
    table = np.zeros((1, q.shape[2]), np.float32)
    table[0, : len(weights)] = weights
    return make(q | np.uint8(sign << 7), keys, weights=table, scales=[np.array([scale], np.float32)])


def judge(problem: Any, row: int, token: int, e4m3: Any, out: str, rounded: Any) -> int:
    """One true logit of a problem without NaN and inf, by gmpy2: rationals, then one MPFR rounding."""
    import gmpy2

    b, t = divmod(row, problem.next_n)
    page = problem.block_table[b, token // problem.page]
    key = e4m3[problem.key_codes[page, token % problem.page]] * 512
    scale = gmpy2.mpq(
        float(problem.scale_bits[page, token % problem.page : token % problem.page + 1].view("<f4")[0])
    )
    total = gmpy2.mpq(0)
    for head in range(problem.heads):
        dot = sum(int(x) * int(y) for x, y in zip(e4m3[problem.q[b, t, head]] * 512, key, strict=True))
        total += gmpy2.mpq(float(problem.weights[row, head])) * max(dot, 0)
    value = float(rounded(out, total * scale / 2**18))
    if value == 0:
        return FORMATS[out].zero(int((total < 0) != (scale < 0)))
    code = np.array([value], np.float32 if out != "fp16" else np.float16)
    return int(
        code.view(np.uint16)[0] if out == "fp16" else code.view(np.uint32)[0] >> (16 if out == "bf16" else 0)
    )


@pytest.mark.parametrize("out", OUTPUTS)
def test_against_rationals(out: str, e4m3_values: Any, mpfr_rounded: Any, record_property: Any) -> None:
    rng, tried = np.random.default_rng(2), 0
    for problem in islice(attack_problems(11), 60):
        bits, mask = exact_logits(problem, out)
        assert bits.dtype == (np.uint32 if out == "fp32" else np.uint16)
        assert np.array_equal(mask, problem.valid_mask())
        for row, token in zip(rng.integers(problem.rows, size=4), rng.integers(500, size=4), strict=True):
            assert bits[row, token] == judge(problem, int(row), int(token), e4m3_values, out, mpfr_rounded)
            tried += 1
    record_property("tried", tried)


@pytest.mark.parametrize("out", OUTPUTS)
def test_twins_agree_on_any_bits(make: Any, out: str, record_property: Any) -> None:
    """NaN, inf and zeros everywhere."""
    rng, tried, kinds = np.random.default_rng(5), 0, set()
    special = np.array(
        [0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 1, 0x3F800000, 0xBF800000], np.uint32
    )
    for _ in range(40):
        q, keys = (
            rng.choice([0, 0, ONE, 0xB8, 0x7F, 0x80], size, p=[0.3, 0.2, 0.29, 0.2, 0.003, 0.007])
            for size in ((1, 1, 8, 32), (9, 32))
        )
        weights, scales = (np.where(rng.random(n) < 0.6, 0x40490FDB, rng.choice(special, n)) for n in (8, 9))
        problem = make(
            q.astype(np.uint8),
            [keys.astype(np.uint8)],
            weights=weights.astype(np.uint32).view(np.float32)[None],
            scales=[scales.astype(np.uint32).view(np.float32)],
        )
        bits = exact_logits(problem, out)[0]
        for token in range(9):
            assert bits[0, token] == scalar_exact_logit(problem, 0, token, out)
            tried += 1
        values = bits.astype(np.uint32) << (0 if out == "fp32" else 16)  # enough to see the class
        kinds |= {
            "nan"
            if v in (0x7FFFFFFF, 0x7FFF0000)
            else "inf"
            if v in (0x7F800000, 0x7C000000, 0xFF800000)
            else "zero"
            if v in (0, 1 << 31)
            else "number"
            for v in values[0].tolist()
        }
    assert kinds >= {"nan", "inf", "zero", "number"}
    record_property("tried", tried)


@pytest.mark.parametrize(
    ("weights", "scale", "expected"),
    [
        ([2.0**24, 1.0], 1.0, 2.0**24),  # a tie, to even
        ([2.0**24, 1.0, 2.0**-100], 1.0, 2.0**24 + 2),  # and just above it
        ([2.0**24 + 2, 1.0, -(2.0**-100)], 1.0, 2.0**24 + 2),  # a tie to even from below
        ([2.0**100, 3.0, -(2.0**100)], 0.5, 1.5),
        ([2.0**127] * 4, 2.0**-3, 2.0**126),
        ([2.0**-149] * 3, 0.5, 2.0**-148),  # 1.5 units, a tie to even
        ([1.0, -1.0], -1.0, -0.0),
        ([1.0, -1.0], 1.0, 0.0),
        ([-(2.0**-149)], 2.0**-149, -0.0),
        ([3e38], 2.0, math.inf),
    ],
)
def test_by_hand(make: Any, weights: list[float], scale: float, expected: float) -> None:
    bits = exact_logits(from_weights(make, weights, scale))[0]
    assert hex(bits[0, 0]) == hex(np.array([expected], np.float32).view(np.uint32)[0])


def test_the_third_way_decides_what_the_others_cannot(make: Any, monkeypatch: Any) -> None:
    """A tie, and three levels of cancellation under it: only integers see on which side the sum is."""
    asked = {"long_sums": 0, "integer_logits": 0}

    def count(name: str) -> Callable[..., Any]:
        inner = getattr(exact, name)

        def counted(*given: Any) -> Any:
            asked[name] += len(given[0])
            return inner(*given)

        return counted

    for name in asked:
        monkeypatch.setattr(exact, name, count(name))
    tie = [2.0**120, 2.0**60, 1.0, 2.0**-24, 2.0**-110, -(2.0**60), -(2.0**120)]
    assert exact_logits(from_weights(make, tie))[0].tolist() == [[0x3F800001]]
    assert asked == {"long_sums": 1, "integer_logits": 1}
    assert exact_logits(from_weights(make, [*tie[:4], *tie[5:]]))[0].tolist() == [[0x3F800000]]
    assert exact_logits(from_weights(make, [1.5]))[0].tolist() == [[0x3FC00000]]
    assert asked["long_sums"] == 2


def test_infinite_scale_takes_the_sign_of_the_smallest_sum(make: Any) -> None:
    above = [2.0**127, 2.0**-149, -(2.0**127)]
    assert exact_logits(from_weights(make, above, math.inf))[0].tolist() == [[0x7F800000]]
    assert exact_logits(from_weights(make, above, -math.inf))[0].tolist() == [[0xFF800000]]
    assert exact_logits(from_weights(make, [1.0, -1.0], math.inf))[0].tolist() == [[0x7FFFFFFF]]


@pytest.mark.parametrize("out", OUTPUTS)
def test_rounding_of_float64(out: str, record_property: Any) -> None:
    """Numbers at, and one float64 step beside, every boundary between two codes; fmt.encode is the judge."""
    fmt, rng = FORMATS[out], np.random.default_rng(1)
    codes = [*rng.integers(0, fmt.max_finite_code, 400).tolist(), 0, 1, fmt.max_finite_code - 1]
    values = []
    for code in codes:
        middle = float((fmt.value(code) + fmt.value(code + 1)) / 2)
        values += [
            middle,
            math.nextafter(middle, 0),
            math.nextafter(middle, math.inf),
            float(fmt.value(code)),
        ]
    top = float(2 * fmt.value(fmt.max_finite_code) - fmt.value(fmt.max_finite_code - 1))
    values += [top, math.nextafter(top, 0), 2.0 * top, 1e300]
    values += [-value for value in values]
    found = exact.round_float64(np.array(values), out)
    assert [hex(f) for f in found] == [
        hex(fmt.encode(Fraction(value)) if value else fmt.zero(int(math.copysign(1, value) < 0)))
        for value in values
    ]
    odd = exact.round_float64(np.array([math.inf, -math.inf, math.nan]), out)
    assert odd.tolist() == [fmt.inf(0), fmt.inf(1), fmt.canonical_nan]
    record_property("tried", len(values) + 3)


def test_bad_output(make: Any) -> None:
    with pytest.raises(InputError, match="out"):
        exact_logits(from_weights(make, [1.0]), "fp64")
