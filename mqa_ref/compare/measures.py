"""The field's global scores, for information: a score hides a whole wrong tile, so nothing here ever decides
anything."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


def calc_diff(actual: Values, expected: Values) -> float:
    """1 - 2<x,y> / (<x,x> + <y,y>) in float64: 0 for equal arrays, NaN as soon as one element is not finite.

    The definition is DeepGEMM's test score (standing: published); two arrays of zeros count as equal.
    """
    if not (np.isfinite(actual).all() and np.isfinite(expected).all()):
        return float("nan")
    scale = float(max(np.abs(actual).max(initial=0.0), np.abs(expected).max(initial=0.0)))
    if scale == 0.0:
        return 0.0
    x, y = actual / scale, expected / scale
    return float(1.0 - 2.0 * np.dot(x, y) / (np.dot(x, x) + np.dot(y, y)))


def cosine(actual: Values, expected: Values) -> float:
    """<x,y> / (|x| |y|) in float64; NaN as soon as one element is not finite or one array is all zero."""
    if not (np.isfinite(actual).all() and np.isfinite(expected).all()):
        return float("nan")
    tops = [float(np.abs(values).max(initial=0.0)) for values in (actual, expected)]
    if min(tops) == 0.0:
        return float("nan")
    x, y = actual / tops[0], expected / tops[1]
    return float(np.dot(x, y) / np.sqrt(np.dot(x, x) * np.dot(y, y)))
