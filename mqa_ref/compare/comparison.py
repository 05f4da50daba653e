"""The outcome of a comparison: the verdict, the counts per class, the first and the worst elements, what they share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mqa_ref.compare.bits import dtype_of, hex_word, ulp_distance
from mqa_ref.compare.classes import Kind
from mqa_ref.compare.place import Place
from mqa_ref.numerics import Format, to_float64

Measure = Literal["ulp", "absolute", "bound ratio"]


@dataclass(frozen=True)
class Mismatch:
    """One element: its class, its place, both patterns as hex words and as numbers, and for two finite
    numbers the distance in ULP of the output format. ``actual`` of an unwritten element is what the buffer held
    before."""

    kind: Kind
    place: Place
    expected: str
    actual: str
    expected_value: float
    actual_value: float
    ulp: int | None

    def __str__(self) -> str:
        told = f"{self.kind}: expected {self.expected} ({self.expected_value!r})"
        got = (
            "nothing was written"
            if self.kind == "unwritten"
            else f"got {self.actual} ({self.actual_value!r})"
        )
        return f"{told}, {got}{f', {self.ulp} ULP' if self.ulp is not None else ''}, at {self.place}"


@dataclass(frozen=True)
class Extreme:
    """The element with the greatest ``value`` of a measure: "ulp", distance in ULP; "absolute", distance; "bound
    ratio", error as a share of the element's error bound."""

    measure: Measure
    value: float
    element: Mismatch

    def __str__(self) -> str:
        told = f"{int(self.value)} ULP" if self.measure == "ulp" else f"{self.value:.6g}"
        words = {"ulp": "distance", "absolute": "difference", "bound ratio": "share of the error bound"}
        return f"greatest {words[self.measure]} {told}: {self.element}"


@dataclass(frozen=True)
class Comparison:
    """The outcome of ``compare`` and of ``compare_within``.

    ``compared``: valid elements, all of them. ``counts``: wrong elements per class, every class of ``KINDS``
    in order. ``first``: the first wrong ones in row-major order. ``max_ulp``, ``max_abs``: greatest distance
    among the wrong elements with two finite sides, None when there are none. ``where``: sentences about what
    the wrong elements share. ``suspects``: causes that give exactly the wrong bits. ``tail_written``: elements written
    past the valid columns in splits that hold tokens, whose values mean nothing. ``stray_written``: elements written
    out of place, in splits that hold no token of their row. ``calc_diff`` and ``cosine`` are for information and decide
    nothing. ``worst``: the elements of the greatest distances and bound ratio. ``max_ratio``: the greatest error as a
    share of its bound; of ``compare`` among some of the wrong elements, against the bound for the flow's own order, of
    ``compare_within`` among all elements; None where no element has a bound. ``factor``: what bounds were multiplied
    with, None where bits were compared. ``unbounded``: elements that have no bound, because an intermediate result may
    rightly overflow; any value passes there, 0 where bits were compared.
    """

    compared: int
    counts: dict[Kind, int]
    first: tuple[Mismatch, ...]
    max_ulp: int | None
    max_abs: float | None
    where: tuple[str, ...]
    suspects: tuple[str, ...]
    tail_written: int
    stray_written: int
    calc_diff: float
    cosine: float
    worst: tuple[Extreme, ...] = ()
    max_ratio: float | None = None
    factor: float | None = None
    unbounded: int = 0

    @property
    def mismatched(self) -> int:
        """Wrong elements of all classes."""
        return sum(self.counts.values())

    @property
    def equal(self) -> bool:
        """Whether no compared element is wrong."""
        return self.mismatched == 0


def mismatch(kind: Kind, place: Place, expected: int, actual: int, fmt: Format) -> Mismatch:
    """One element from its two patterns."""
    pair = np.array([expected, actual], dtype_of(fmt))
    values = to_float64(pair, fmt)
    finite = kind in ("value", "zero_sign")
    return Mismatch(
        kind,
        place,
        hex_word(expected, fmt),
        hex_word(actual, fmt),
        float(values[0]),
        float(values[1]),
        int(ulp_distance(pair[:1], pair[1:], fmt)[0]) if finite else None,
    )
