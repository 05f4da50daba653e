"""How much one rounding can change a number of which only a bound is known. docs/bounds.md derives each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mqa_ref.numerics import BF16, FP16, FP32, Format

F64 = NDArray[np.float64]

UP = 1.0 + 2.0**-40
"""Covers the float64 roundings of a bound: less than 2,000 operations on numbers that are not negative."""

_EXPONENT = np.int64(0x7FF << 52)


@dataclass(frozen=True)
class Rounding:
    """Rounding to nearest even into one format. ``precision``: significant bits; ``smallest``: the exponent that
    subnormals have; ``overflow``: the least magnitude that becomes inf."""

    precision: int
    smallest: int
    overflow: float

    def error(self, reach: F64) -> F64:
        """The most that rounding changes a number of magnitude up to ``reach`` which does not overflow.

        Half a unit in the last place of ``reach``, for units grow with magnitude; the unit of the subnormals is the
        least there is; and never more than the number itself, for 0 is a number of the format.
        """
        reach = reach * UP
        unit = np.maximum(power_below(reach), 2.0**self.smallest)
        return np.minimum(reach, unit * 2.0**-self.precision)

    def overflows(self, reach: F64) -> NDArray[np.bool_]:
        """Whether a number of magnitude up to ``reach`` can become inf."""
        return np.asarray(reach * UP >= self.overflow)

    @property
    def relative(self) -> float:
        """u = 2**-precision: the most the rounding changes a normal number, relative to it."""
        return 2.0**-self.precision

    @property
    def least(self) -> float:
        """Half a unit of the subnormals."""
        return 2.0 ** (self.smallest - self.precision)


def _rounding(fmt: Format) -> Rounding:
    overflow = float(fmt.max_finite) + 2.0 ** (fmt.bias - fmt.fraction_bits - 1)
    return Rounding(fmt.fraction_bits + 1, fmt.min_exponent, overflow)


ROUNDINGS: dict[str, Rounding] = {fmt.name: _rounding(fmt) for fmt in (FP32, FP16, BF16)}
"""By the name of the format."""


def power_below(values: F64) -> F64:
    """2**floor(log2(x)) of positive float64 numbers that are not subnormal; 0 for 0."""
    return (values.view(np.int64) & _EXPONENT).view(np.float64)
