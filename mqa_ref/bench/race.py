"""Two things timed in turn: the ratio of their times, and how much it varies."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Work = Callable[[], Any]


@dataclass(frozen=True)
class Race:
    """``ratio``: the median over the rounds of ours / theirs. ``low``, ``high``: its quartiles. ``ours``, ``theirs``:
    the median times in seconds. ``rounds``: how often both ran."""

    ratio: float
    low: float
    high: float
    ours: float
    theirs: float
    rounds: int


def race(ours: Work, theirs: Work, rounds: int, clock: Callable[[], float] = time.perf_counter) -> Race:
    """Run both once unmeasured, then ``rounds`` times in turn, each time the other one first.

    What slows the machine for longer than a round slows both, and leaves the ratio alone.
    """
    ours()
    theirs()
    pairs = []
    for number in range(rounds):
        order = (ours, theirs) if number % 2 == 0 else (theirs, ours)
        times = [_seconds(work, clock) for work in order]
        pairs.append((times[0], times[1]) if number % 2 == 0 else (times[1], times[0]))
    return summary(pairs)


def summary(pairs: Sequence[tuple[float, float]]) -> Race:
    """The race whose rounds took these times, (ours, theirs) in seconds."""
    ratios = [ours / theirs for ours, theirs in pairs]
    low, middle, high = quartiles(ratios)
    ours, theirs = (statistics.median(times) for times in zip(*pairs, strict=True))
    return Race(middle, low, high, ours, theirs, len(pairs))


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Lower quartile, median, upper quartile, between the values as they lie; of one value, thrice it."""
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def _seconds(work: Work, clock: Callable[[], float]) -> float:
    begun = clock()
    work()
    return clock() - begun
