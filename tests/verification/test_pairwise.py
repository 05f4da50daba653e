"""Covering arrays: every pair of choices is there, illegal combinations are not."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import pytest

from mqa_ref.verification.pairwise import pairwise

FACTORS: dict[str, tuple[Any, ...]] = {
    "a": (1, 2, 3, 4),
    "b": ("x", "y", "z"),
    "c": (False, True),
    "d": (0, 1, 2),
}


def pairs(rows: list[dict[str, Any]]) -> set[tuple[str, Any, str, Any]]:
    return {(f, row[f], s, row[s]) for row in rows for f, s in combinations(FACTORS, 2)}


def every(allowed: Any) -> set[tuple[str, Any, str, Any]]:
    """The pairs that some legal combination holds, by trying all of them."""
    whole = [dict(zip(FACTORS, values, strict=True)) for values in product(*FACTORS.values())]
    return pairs([row for row in whole if allowed(row)])


@pytest.mark.parametrize(
    "allowed",
    [
        lambda row: True,
        lambda row: row["a"] < 4 or row["c"],
        lambda row: not (row["a"] == 1 and row["b"] == "x"),
        lambda row: row["d"] != 2 or row["b"] == "y",
    ],
)
@pytest.mark.parametrize("label", ["one", "two"])
def test_every_possible_pair_is_covered_by_legal_combinations(allowed: Any, label: str) -> None:
    rows = pairwise(FACTORS, allowed, label)
    assert all(allowed(row) for row in rows)
    assert pairs(rows) == every(allowed)
    assert len(rows) < 4 * 3 * 2 * 3 / 3, "fewer than the whole product"


def test_the_same_label_gives_the_same_combinations() -> None:
    def anything(row: Any) -> bool:
        return bool(row)

    assert pairwise(FACTORS, anything, "same") == pairwise(FACTORS, anything, "same")
    assert pairwise(FACTORS, anything, "same") != pairwise(FACTORS, anything, "other")
