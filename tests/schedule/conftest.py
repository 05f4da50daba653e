"""A judge of schedules that shares nothing with the package: every CTA is stepped one split at a time, in tiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pytest

Entry = tuple[int, int]


@dataclass(frozen=True)
class Stepped:
    items: list[Entry]
    ends: bool


Stepper = Callable[[Sequence[Entry], Sequence[int]], list[Stepped]]


def _step_one(start: Entry, end: Entry, lengths: Sequence[int]) -> Stepped:
    """One CTA that compares with its end for inequality, as op.md describes: two tiles of 128 tokens a step."""
    row, tile = start[0], start[1] * 2
    items: list[Entry] = []
    while (row, tile) != (end[0], end[1] * 2):
        if not 0 <= row < len(lengths) or tile < 0:
            return Stepped(items, False)
        items.append((row, tile // 2))
        tile += 2
        if tile >= (lengths[row] + 127) // 128:
            row, tile = row + 1, 0
    return Stepped(items, True)


def _step_all(schedule: Sequence[Entry], lengths: Sequence[int]) -> list[Stepped]:
    return [_step_one(a, b, lengths) for a, b in pairwise(schedule)]


@pytest.fixture(scope="session")
def stepper() -> Stepper:
    return _step_all


@pytest.fixture(scope="session")
def work_of() -> Callable[[Sequence[int]], list[Entry]]:
    """Every (row, split) that holds a token, in order."""
    return lambda lengths: [
        (row, split) for row, n in enumerate(lengths) for split in range((n + 255) // 256)
    ]
