"""How far the tensor core's dot product can be from the true one: in the order of the kernel, and in any order.

docs/bounds.md, "The dot product", derives each line. In the kernel's order every number is a multiple of 2**-18 below
2**32, so that float64 adds them without error; in any order ``UP`` covers float64's own roundings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mqa_ref.numerics import E4M3_EXPONENT, E4M3_VALUE, MachineModel
from mqa_ref.numerics.machines import ACCUMULATORS, STEP_K, FinalRounding
from mqa_ref.reference.roundoff import ROUNDINGS, UP, power_below

F64 = NDArray[np.float64]
Codes = NDArray[np.uint8]

_GRID = 2.0**-18
"""Products of e4m3fn numbers, and so all sums of them, cut or not, are multiples of this."""
_APART_BITS = 3
_APART = 1 << _APART_BITS
"""Exponents are spread by this factor so that a sum of up to 255 powers shows the exponent of the largest."""

_VALUE = np.where(np.isnan(E4M3_VALUE), 0.0, E4M3_VALUE)
_SPREAD = np.where(_VALUE == 0, 0.0, np.ldexp(1.0, _APART * np.maximum(E4M3_EXPONENT, -32).astype(np.int64)))


@dataclass(frozen=True)
class DotBound:
    """Of each dot product, [N, T]: ``positive`` = max(0, dot), exact; ``error``: how far the ReLU of the accumulator
    can be from it; ``overflow``: whether the accumulator may become inf. A NaN code counts as 0."""

    positive: F64
    error: F64
    overflow: NDArray[np.bool_]


def own_order(queries: Codes, keys: Codes, model: MachineModel, acc: str) -> DotBound:
    """For the kernel's own order: steps of 32 products, each fed into the next. ``queries`` [N, D], ``keys`` [T, D]."""
    left, right = _VALUE.take(queries), _VALUE.take(keys)
    final, limit = model.final(acc), ROUNDINGS[acc].overflow
    dot = np.zeros((len(queries), len(keys)))
    error, before_final, overflow = np.zeros_like(dot), np.zeros_like(dot), np.zeros(dot.shape, np.bool_)
    if model.fraction_bits is None:
        dot = left @ right.T
        return _relu(dot, _final_error(np.abs(dot), final), dot >= limit)
    for start in range(0, left.shape[1], STEP_K):
        part = slice(start, start + STEP_K)
        top, terms = _largest_power(queries[:, part], keys[:, part]), STEP_K
        if start:
            top, terms = np.maximum(top, _accumulator_power(np.abs(dot) + error, acc)), STEP_K + 1
            overflow |= np.abs(dot) + before_final >= limit
        dot = dot + left[:, part] @ right[:, part].T
        before_final = error + _cut(top, terms, model.fraction_bits)
        error = before_final + _final_error(np.abs(dot) + before_final, final)
    return _relu(dot, error, overflow | (dot + before_final >= limit))


def any_order(queries: Codes, keys: Codes, model: MachineModel, acc: str) -> DotBound:
    """For every way to deal the D products out to D / 32 instructions and to join these, by accumulator or addition."""
    left, right = _VALUE.take(queries), _VALUE.take(keys)
    final, rounding = model.final(acc), ROUNDINGS[acc]
    dot = left @ right.T
    if model.fraction_bits is None:
        return _relu(dot, _final_error(np.abs(dot), final), dot >= rounding.overflow)
    steps = left.shape[1] // STEP_K
    reach = np.abs(left) @ np.abs(right).T
    # Cuts and roundings toward zero shrink a sum; one to nearest can grow it.
    nearest = steps - 1 + (steps if final.rounding == "rne" else 0)
    reach = reach * (UP * (1.0 + rounding.relative) ** nearest)
    top = np.maximum(_largest_power(queries, keys), _accumulator_power(reach, acc))
    error = steps * (_cut(top, STEP_K + 1, model.fraction_bits) + _final_error(reach, final))
    error += (steps - 1) * np.where(reach < _exact_below(rounding.precision), 0.0, rounding.error(reach))
    return _relu(dot, error, reach >= rounding.overflow)


def _relu(dot: F64, error: F64, overflow: NDArray[np.bool_]) -> DotBound:
    """ReLU changes no distance for the worse, and none below zero survives it (docs/bounds.md, R)."""
    return DotBound(np.maximum(dot, 0.0), np.where(dot < 0, np.maximum(dot + error, 0.0), error), overflow)


def _largest_power(queries: Codes, keys: Codes) -> F64:
    """2**E, E the largest exponent e_a + e_b among the products of a query [N, K] and a key [T, K]; tiny without one.

    The sum of 2**(8*(e_a + e_b)) over K <= 128 products lies between the largest of its terms and 128 times that, in
    float64 too, so its exponent divided by 8, rounded down, is E.
    """
    total = _SPREAD.take(queries) @ _SPREAD.take(keys).T
    exponent = total.view(np.int64)
    exponent >>= 52
    exponent -= 1023
    exponent >>= _APART_BITS
    exponent += 1023
    exponent <<= 52
    return exponent.view(np.float64)


def _accumulator_power(reach: F64, acc: str) -> F64:
    """2**E for the exponent with which an accumulator of magnitude up to ``reach`` is written."""
    return power_below(np.maximum(reach, 2.0 ** ACCUMULATORS[acc].min_exponent))


def _cut(top: F64, terms: int, fraction_bits: int) -> F64:
    """What cutting ``terms`` terms to ``fraction_bits`` bits below the largest exponent can take away (C)."""
    return terms * np.maximum(top * 2.0**-fraction_bits - _GRID, 0.0)


def _final_error(reach: F64, final: FinalRounding) -> F64:
    """What the final rounding of a step can change (F)."""
    unit = power_below(reach) * 2.0**-final.fraction_bits
    error = unit * 0.5 if final.rounding == "rne" else unit - _GRID
    return np.where(reach < _exact_below(final.fraction_bits + 1), 0.0, error)


def _exact_below(precision: int) -> float:
    """Multiples of the grid below this have at most ``precision`` bits."""
    return _GRID * 2.0**precision
