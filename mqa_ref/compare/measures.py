"""The field's global scores, for information: a score hides a whole wrong tile, so nothing here ever decides
anything."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mqa_ref.compare.bits import Bits
from mqa_ref.numerics import Format

Values = NDArray[np.float64]


def values_of(bits: Bits, fmt: Format) -> Values:
    """The values of output patterns in float64, exact; NaN and inf as themselves.

    The same as ``numerics.to_float64``, which is written for all formats and ten times slower.
    """
    with np.errstate(invalid="ignore"):  # signalling NaN
        if fmt.bits == 16:
            half: NDArray[np.floating] = bits.view(np.float16)
            if fmt.name == "bf16":
                half = (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
            return half.astype(np.float64)
        return bits.view(np.float32).astype(np.float64)


@dataclass(frozen=True)
class Scores:
    """What both scores are made of: the products <x,x>, <y,y>, <x,y> of two arrays in float64, and whether all
    elements were finite. Products of 32-bit and 16-bit floats neither overflow nor underflow there."""

    xx: float = 0.0
    yy: float = 0.0
    xy: float = 0.0
    finite: bool = True

    @classmethod
    def of(cls, actual: Values, expected: Values) -> Scores:
        """Of two arrays [n]."""
        finite = bool(np.isfinite(actual).all() and np.isfinite(expected).all())
        if not finite:
            return cls(finite=False)
        return cls(
            float(np.dot(actual, actual)), float(np.dot(expected, expected)), float(np.dot(actual, expected))
        )

    def __add__(self, other: Scores) -> Scores:
        return Scores(
            self.xx + other.xx, self.yy + other.yy, self.xy + other.xy, self.finite and other.finite
        )

    @property
    def calc_diff(self) -> float:
        """1 - 2<x,y> / (<x,x> + <y,y>): 0 for equal arrays, NaN as soon as one element is not finite.

        The definition is DeepGEMM's test score (standing: published); two arrays of zeros count as equal.
        """
        if not self.finite:
            return float("nan")
        total = self.xx + self.yy
        return 0.0 if total == 0.0 else 1.0 - 2.0 * self.xy / total

    @property
    def cosine(self) -> float:
        """<x,y> / (|x| |y|); NaN as soon as one element is not finite or one array is all zero."""
        if not self.finite or min(self.xx, self.yy) == 0.0:
            return float("nan")
        return float(self.xy / (np.sqrt(self.xx) * np.sqrt(self.yy)))
