"""Sums rounded to odd, against exact rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqa_ref.numerics.rounding import odd_sum, two_sum_error

FINITE = st.floats(
    width=64, allow_nan=False, allow_infinity=False, min_value=-(2.0**600), max_value=2.0**600
).filter(lambda x: x == 0 or abs(x) > 2.0**-600)
CLOSE = st.integers(-(2**53), 2**53).map(float) | FINITE


@given(CLOSE, CLOSE)
@settings(deadline=None, max_examples=500)
def test_error_is_exact(x: float, y: float) -> None:
    a, b = np.array([x]), np.array([y])
    error = two_sum_error(a, b, a + b)
    assert Fraction(float(error[0])) + Fraction(x + y) == Fraction(x) + Fraction(y)


@given(CLOSE, CLOSE)
@settings(deadline=None, max_examples=500)
def test_odd_sum_is_exact_or_the_odd_neighbour(x: float, y: float) -> None:
    a, b = np.array([x]), np.array([y])
    result = odd_sum(a, b, a + b)
    exact = Fraction(x) + Fraction(y)
    got = Fraction(float(result[0]))
    if Fraction(x + y) == exact:
        assert got == exact
        return
    assert int(result.view(np.int64)[0]) & 1 == 1
    neighbours = np.nextafter(result, [-np.inf, np.inf])
    assert Fraction(float(neighbours[0])) < exact < Fraction(float(neighbours[1]))


def test_below_a_power_of_two() -> None:
    """1 - 2**-60 lies between 1 - 2**-53, whose bits are all ones, and 1; -1 + 2**-60 likewise."""
    x, y = np.array([1.0, -1.0]), np.array([-(2.0**-60), 2.0**-60])
    assert odd_sum(x, y, x + y).tolist() == [1 - 2.0**-53, -(1 - 2.0**-53)]


def test_specials_pass() -> None:
    x = np.array([np.inf, np.nan, -np.inf, 0.0, -0.0])
    y = np.array([1.0, 1.0, 2.0, -0.0, -0.0])
    with np.errstate(invalid="ignore"):
        result = odd_sum(x, y, x + y)
    assert result[:3].tolist() == pytest.approx([np.inf, np.nan, -np.inf], nan_ok=True)
    assert np.signbit(result[3:]).tolist() == [False, True]
