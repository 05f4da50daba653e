"""Covering arrays of strength two: few combinations among which every two choices of different factors meet.

Greedy, and the same on every machine: candidates come from raw Philox words (``mqa_ref.verification.words``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

from mqa_ref.verification.words import below

CANDIDATES = 40
"""How many completions of a pair are looked at; the one that covers most new pairs is taken."""

Choice = Mapping[str, Any]
_Pair = tuple[str, int, str, int]


def pairwise(
    factors: Mapping[str, Sequence[Any]], allowed: Callable[[Choice], bool], label: str
) -> list[dict[str, Any]]:
    """Combinations that between them hold every pair of choices that some allowed combination holds.

    ``allowed`` says whether a complete combination is legal. A pair for which ``CANDIDATES`` * 10 random
    completions were all illegal is taken for impossible.
    """
    names = list(factors)
    open_pairs = {
        (first, i, second, j): None
        for first, second in combinations(names, 2)
        for i in range(len(factors[first]))
        for j in range(len(factors[second]))
    }
    chosen: list[dict[str, Any]] = []
    drawn = 0
    while open_pairs:
        pair = next(iter(open_pairs))
        best: dict[str, int] | None = None
        gain = 0
        tried = legal = 0
        while legal < CANDIDATES and tried < CANDIDATES * 10:
            places = _complete(factors, pair, f"{label}/{drawn}")
            drawn, tried = drawn + 1, tried + 1
            if not allowed({name: factors[name][place] for name, place in places.items()}):
                continue
            legal += 1
            covered = sum(one in open_pairs for one in _pairs(names, places))
            if covered > gain:
                best, gain = places, covered
        if best is None:
            del open_pairs[pair]
            continue
        for one in _pairs(names, best):
            open_pairs.pop(one, None)
        chosen.append({name: factors[name][place] for name, place in best.items()})
    return chosen


def _complete(factors: Mapping[str, Sequence[Any]], pair: _Pair, label: str) -> dict[str, int]:
    numbers = below(label, len(factors), 1 << 30).tolist()
    places = {name: number % len(factors[name]) for name, number in zip(factors, numbers, strict=True)}
    first, i, second, j = pair
    places[first], places[second] = i, j
    return places


def _pairs(names: Sequence[str], places: Mapping[str, int]) -> list[_Pair]:
    return [(first, places[first], second, places[second]) for first, second in combinations(names, 2)]
