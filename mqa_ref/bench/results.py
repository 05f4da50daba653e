"""One line of the benchmark: what was measured, the target, and whether it is met."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mqa_ref.bench.race import Race

Verdict = Literal["pass", "short", "told", "absent"]


@dataclass(frozen=True)
class Target:
    """What a number is held to. ``unit``: what it counts. ``limit``: the number, None where nothing is asked.
    ``at_most``: whether more is worse."""

    unit: str
    limit: float | None = None
    at_most: bool = True

    def __str__(self) -> str:
        if self.limit is None:
            return "none"
        return f"at {'most' if self.at_most else 'least'} {self.limit:g}"


@dataclass(frozen=True)
class Line:
    """``value`` with its quartiles ``low`` and ``high``, in the unit of ``target``. ``ours``, ``theirs``: median
    seconds, None where there is no peer. ``logits``, ``mismatched``: bits compared on the way, and those that differ.
    ``absent``: why there is nothing, "" where there is."""

    name: str
    what: str
    target: Target
    value: float = 0.0
    low: float = 0.0
    high: float = 0.0
    ours: float | None = None
    theirs: float | None = None
    logits: int = 0
    mismatched: int = 0
    absent: str = ""

    @property
    def verdict(self) -> Verdict:
        """ "pass" or "short"; "told" where nothing is asked; "absent" where it could not be measured."""
        if self.absent:
            return "absent"
        if self.target.limit is None:
            return "told"
        met = self.value <= self.target.limit if self.target.at_most else self.value >= self.target.limit
        return "pass" if met else "short"


def of_race(
    name: str, what: str, target: Target, found: Race, *, faster: bool = False, factor: float = 1.0
) -> Line:
    """A line from a race: ``factor`` times the ratio of times, or, where ``faster``, its inverse."""
    value, low, high = (factor * number for number in (found.ratio, found.low, found.high))
    if faster:
        value, low, high = factor / found.ratio, factor / found.high, factor / found.low
    return Line(name, what, target, value, low, high, found.ours, found.theirs)
