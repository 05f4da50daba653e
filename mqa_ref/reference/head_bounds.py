"""How far a computed sum over the heads can be from the true one: in the order of the kernel, and in any order.

docs/bounds.md, "The sum over the heads", derives each line; the letters in comments are its names for roundings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mqa_ref.reference.epilogue import PARTIAL_SUMS
from mqa_ref.reference.roundoff import ROUNDINGS, Rounding

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Heads:
    """What is summed: ``positive`` [n, H, T], the true ReLUs, and ``error``, how far the computed ones can be off;
    ``weights`` [n, H], finite, as the epilogue has them; ``magnitude`` [n, T], the sum of |weight| * positive."""

    positive: F64
    error: F64
    weights: F64
    magnitude: F64


@dataclass(frozen=True)
class SumBound:
    """Of sum over h of weight * ReLU, [n, T]: ``error``, how far the computed sum can be from the true one; ``reach``,
    which its magnitude does not exceed; ``overflow``, whether it or a part of it may overflow."""

    error: F64
    reach: F64
    overflow: NDArray[np.bool_]


class _Part:
    """A partial sum in the making: its true value, and how far the computed one can be from that."""

    def __init__(self, rounding: Rounding, slack: F64, true: F64, error: F64) -> None:
        self.rounding, self.slack, self.true, self.error = rounding, slack, true, error
        self.overflow = np.zeros(true.shape, np.bool_)

    @property
    def reach(self) -> F64:
        """What the computed sum's magnitude does not exceed; ``slack`` covers the error of ``true`` itself."""
        return np.abs(self.true) + self.error + self.slack

    def add(self, true: F64, error: F64) -> None:
        """One fused multiply-add, or one addition: what is added, its error, and the rounding of the sum."""
        self.true, self.error = self.true + true, self.error + error
        reach = self.reach
        self.overflow |= self.rounding.overflows(reach)
        self.error = self.error + self.rounding.error(reach)

    def part(self, number: int) -> _Part:
        """One of several partial sums that were made at once, [n, sums, T]."""
        one = _Part(self.rounding, self.slack[:, 0], self.true[:, number], self.error[:, number])
        one.overflow = self.overflow[:, number]
        return one

    def take(self, other: _Part) -> None:
        """Add another partial sum."""
        self.overflow |= other.overflow
        self.add(other.true, other.error)


def own_sum(heads: Heads, epi: str, factor: float) -> SumBound:
    """In the order of ``epilogue``. ``factor``: 2 where the doubled ReLU is summed and the sum halved, else 1."""
    rounding = ROUNDINGS[epi]
    next_n, count, tokens = heads.positive.shape
    # ``true`` is computed in float64 of at most 256 terms; eight times their error bound.
    slack = heads.magnitude * (factor * 2.0**-42)
    # The partial sums do not meet before they are joined: each takes a head at a time, all at once.
    weights = factor * heads.weights[:, :, None]
    true, off = weights * heads.positive, np.abs(weights) * heads.error
    whole = np.zeros((next_n, PARTIAL_SUMS, tokens))
    sums = _Part(rounding, slack[:, None], whole, whole.copy())
    for head in range(0, count, PARTIAL_SUMS):
        at = slice(head, head + PARTIAL_SUMS)
        sums.add(true[:, at], off[:, at])  # P
    parts = [sums.part(number) for number in range(PARTIAL_SUMS)]
    for left, right in _joins(epi):
        parts[left].take(parts[right])  # J
    total = parts[0]
    if factor == 1.0:
        return SumBound(total.error, total.reach, total.overflow)
    error = 0.5 * total.error + _halving(rounding, total.reach)
    return SumBound(error, 0.5 * np.abs(total.true) + error + slack, total.overflow)


def _joins(epi: str) -> Iterator[tuple[int, int]]:
    """Which partial sum takes which, in order: ((0+1)+2)+3 in fp32; (0+2) + (1+3), two packed pairs, in fp16."""
    yield from ((0, 1), (0, 2), (0, 3)) if epi == "fp32" else ((0, 2), (1, 3), (0, 1))


def _halving(rounding: Rounding, reach: F64) -> F64:
    """Times 0.5 is exact but for subnormal results, which are off by half their unit at most (D)."""
    return np.minimum(0.5 * reach, rounding.least)


def any_sum(heads: Heads, epi: str, factor: float) -> SumBound:
    """For any tree over the heads, each product rounded by itself or fused with an addition."""
    rounding = ROUNDINGS[epi]
    count = heads.positive.shape[1]
    size = np.abs(heads.weights)[:, :, None]
    products = size * (heads.positive + heads.error)
    carried = (size * heads.error).sum(axis=1)
    rounded = rounding.error(products).sum(axis=1)  # P
    # No sum of some of the terms, each rounded up to ``count`` times, is greater; underflow happens to products alone.
    underflow = np.minimum(products, rounding.least).sum(axis=1)
    reach = (products.sum(axis=1) + underflow) * (1.0 + rounding.relative) ** count
    error = carried + rounded + (count - 1) * rounding.error(reach)  # J
    if factor != 1.0:
        error = error + _halving(rounding, 2.0 * reach)
    return SumBound(error, reach, rounding.overflows(factor * reach))
