"""The global scores, by hand; and the reason why they decide nothing."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from mqa_ref.compare.measures import Scores, values_of
from mqa_ref.numerics import BF16, FP16, FP32, Format


def calc_diff(x: np.ndarray, y: np.ndarray) -> float:
    return Scores.of(x, y).calc_diff


def cosine(x: np.ndarray, y: np.ndarray) -> float:
    return Scores.of(x, y).cosine


def test_by_hand() -> None:
    x, y = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    assert (calc_diff(x, y), cosine(x, y)) == (1.0, 0.0)
    assert (calc_diff(x, x), cosine(x, x)) == (0.0, 1.0)
    # x against 2x: 1 - 2*2 / (1 + 4)
    assert calc_diff(x, 2 * x) == pytest.approx(0.2)
    assert cosine(x, -3 * x) == -1.0


def test_huge_numbers_do_not_overflow_the_score() -> None:
    x = np.array([float(np.finfo(np.float32).max), 0.0])
    assert calc_diff(x, 2 * x) == pytest.approx(0.2)
    assert cosine(x, x) == 1.0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_never_dropped(bad: float) -> None:
    x, y = np.array([1.0, bad]), np.array([1.0, 2.0])
    assert all(math.isnan(score) for score in (calc_diff(x, y), calc_diff(y, x), cosine(x, y), cosine(y, x)))


def test_the_smallest_numbers_do_not_vanish_from_the_score() -> None:
    x = np.array([2.0**-149, 0.0])
    assert calc_diff(x, 2 * x) == pytest.approx(0.2)
    assert cosine(x, -x) == -1.0


def test_parts_add_up() -> None:
    random = np.random.default_rng(1)
    x, y = random.normal(size=100), random.normal(size=100)
    both = Scores.of(x[:30], y[:30]) + Scores.of(x[30:], y[30:])
    assert both.cosine == pytest.approx(float(x @ y / np.sqrt((x @ x) * (y @ y))))
    assert math.isnan((both + Scores.of(np.array([np.inf]), np.array([np.inf]))).calc_diff)


@pytest.mark.parametrize(("fmt", "dtype"), [(FP16, np.float16), (BF16, ml_dtypes.bfloat16)])
def test_values_of_every_16_bit_pattern(fmt: Format, dtype: type) -> None:
    codes = np.arange(1 << 16, dtype=np.uint16)
    with np.errstate(invalid="ignore"):
        assert np.array_equal(values_of(codes, fmt), codes.view(dtype).astype(np.float64), equal_nan=True)


def test_values_of_fp32_patterns() -> None:
    codes = np.array([0, 0x80000000, 1, 0x3FC00000, 0xFF800000, 0x7F800001], np.uint32)
    told = values_of(codes, FP32)
    assert told[:5].tolist() == [0.0, -0.0, 2.0**-149, 1.5, -math.inf]
    assert np.signbit(told[1])
    assert math.isnan(told[5])


def test_what_is_known_of_numbers_that_are_not_finite() -> None:
    bad = Scores.of(np.array([math.inf]), np.array([1.0]))
    assert bad == Scores(0.0, 0.0, 0.0, False)
    assert bad.finite is False
    assert (bad + Scores.of(np.ones(1), np.ones(1))).finite is False


def test_zeros() -> None:
    zero = np.zeros(3)
    assert calc_diff(zero, zero) == 0.0
    assert math.isnan(cosine(zero, zero))


def test_a_zeroed_tile_passes_the_gate_of_the_field() -> None:
    """calc_diff < 5e-6 passes a zeroed 128-column tile in a 2048 x 8192 output."""
    right = np.ones(2048 * 8192)
    wrong = right.copy()
    wrong[:128] = 0
    assert 0 < calc_diff(wrong, right) < 5e-6
