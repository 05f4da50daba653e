"""The global scores, by hand; and the reason why they decide nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mqa_ref.compare.measures import calc_diff, cosine


def test_by_hand() -> None:
    x, y = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    assert (calc_diff(x, y), cosine(x, y)) == (1.0, 0.0)
    assert (calc_diff(x, x), cosine(x, x)) == (0.0, 1.0)
    # x against 2x: 1 - 2*2 / (1 + 4)
    assert calc_diff(x, 2 * x) == pytest.approx(0.2)
    assert cosine(x, -3 * x) == -1.0


def test_huge_numbers_do_not_overflow_the_score() -> None:
    x = np.array([1e300, 0.0])
    assert calc_diff(x, 2 * x) == pytest.approx(0.2)
    assert cosine(x, x) == 1.0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_never_dropped(bad: float) -> None:
    x, y = np.array([1.0, bad]), np.array([1.0, 2.0])
    assert all(math.isnan(score) for score in (calc_diff(x, y), calc_diff(y, x), cosine(x, y), cosine(y, x)))


def test_zeros() -> None:
    zero = np.zeros(3)
    assert calc_diff(zero, zero) == 0.0
    assert math.isnan(cosine(zero, zero))


def test_a_zeroed_tile_passes_the_gate_of_the_field() -> None:
    """design.md: calc_diff < 5e-6 passes a zeroed 128-column tile in a 2048 x 8192 output."""
    right = np.ones(2048 * 8192)
    wrong = right.copy()
    wrong[:128] = 0
    assert 0 < calc_diff(wrong, right) < 5e-6
