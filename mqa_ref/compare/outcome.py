"""From the class of every element to a ``Comparison``: counts, first and worst elements, places, causes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mqa_ref.compare.bits import Bits, Mask, ulp_distance
from mqa_ref.compare.classes import EQUAL, KINDS, Kind, code
from mqa_ref.compare.clusters import where
from mqa_ref.compare.comparison import Comparison, Extreme, Measure, Mismatch, mismatch
from mqa_ref.compare.families import Sample
from mqa_ref.compare.measures import Scores, values_of
from mqa_ref.compare.place import Index, locate
from mqa_ref.compare.suspects import RIGHT_LOOKED_AT, take
from mqa_ref.flow import Flow
from mqa_ref.launch import Launch
from mqa_ref.numerics import FORMATS, Format
from mqa_ref.problem import Problem
from mqa_ref.schedule import SPLIT_TOKENS

FIRST = 8
_CHUNK = 1 << 20
"""Wrong elements in work at once."""

Ratios = Callable[[Index, Index], NDArray[np.float64]]
"""The errors of elements at row [n], column [n] as shares of their bounds, NaN where they have none."""
Explain = Callable[[Sample, Sample], tuple[str, ...]]
"""The names of what gives the wrong elements of the first sample; the second are right ones."""


@dataclass(frozen=True)
class Judged:
    """Arrays [rows, columns]: ``kinds`` int8, the class of every element, EQUAL also where it is not ``valid``; ``got``
    and ``expected`` patterns. ``also``: one right or wrong element (row, column) whose bound ratio is told in any case.
    ``factor``, ``unbounded``: see Comparison."""

    kinds: NDArray[np.int8]
    got: Bits
    expected: Bits
    valid: Mask
    scores: Scores
    ratios: Ratios
    explain: Explain
    also: tuple[int, int] | None = None
    factor: float | None = None
    unbounded: int = 0


@dataclass(frozen=True)
class _Elements:
    """What is looked at closely."""

    judged: Judged
    problem: Problem
    fmt: Format

    def one(self, row: int, column: int) -> Mismatch:
        kind = int(self.judged.kinds[row, column])
        told: Kind = "value" if kind == EQUAL else KINDS[kind]
        place = locate(np.array([row]), np.array([column]), self.problem).one(0)
        judged = self.judged
        return mismatch(
            told, place, int(judged.expected[row, column]), int(judged.got[row, column]), self.fmt
        )

    def sample(self, rows: Index, columns: Index) -> Sample:
        return Sample(rows, columns, self.judged.got[rows, columns], self.judged.expected[rows, columns])


def assemble(judged: Judged, launch: Launch, problem: Problem, flow: Flow) -> Comparison:
    """Everything there is to tell."""
    elements = _Elements(judged, problem, FORMATS[flow.out])
    wrong = judged.kinds != EQUAL
    flat = np.flatnonzero(wrong)
    columns = wrong.shape[1]
    classes = np.bincount(judged.kinds[wrong], minlength=len(KINDS)) if flat.size else np.zeros(len(KINDS))
    extremes = list(_distances(elements, flat))
    changed = take(flat[judged.kinds.ravel()[flat] != code("unwritten")])
    at = np.divmod(changed, columns)
    extremes += _greatest_ratio(elements, at, extremes)
    tail, stray = _beyond(judged.valid, launch, problem)
    tops = {extreme.measure: extreme.value for extreme in extremes}
    return Comparison(
        compared=int(np.count_nonzero(judged.valid)),
        counts={kind: int(classes[code(kind)]) for kind in KINDS},
        first=tuple(elements.one(*divmod(int(i), columns)) for i in flat[:FIRST]),
        max_ulp=int(tops["ulp"]) if "ulp" in tops else None,
        max_abs=tops.get("absolute"),
        where=where(problem, judged.valid, wrong) if flat.size else (),
        suspects=judged.explain(elements.sample(*at), _right(elements, at[0], wrong)) if changed.size else (),
        tail_written=tail,
        stray_written=stray,
        calc_diff=judged.scores.calc_diff,
        cosine=judged.scores.cosine,
        worst=tuple(extremes),
        max_ratio=tops.get("bound ratio"),
        factor=judged.factor,
        unbounded=judged.unbounded,
    )


def _distances(elements: _Elements, flat: NDArray[np.intp]) -> Iterator[Extreme]:
    """The wrong elements of two finite numbers that are farthest apart, by ULP and by value."""
    judged, fmt = elements.judged, elements.fmt
    kinds = judged.kinds.ravel()
    tops: dict[Measure, tuple[float, int]] = {}
    for first in range(0, flat.size, _CHUNK):
        chunk = flat[first : first + _CHUNK]
        chunk = chunk[(kinds[chunk] == code("value")) | (kinds[chunk] == code("zero_sign"))]
        if chunk.size == 0:
            continue
        at = np.divmod(chunk, judged.kinds.shape[1])
        got, right = judged.got[at], judged.expected[at]
        distances: tuple[tuple[Measure, NDArray[np.float64]], ...] = (
            ("ulp", ulp_distance(got, right, fmt).astype(np.float64)),
            ("absolute", np.abs(values_of(got, fmt) - values_of(right, fmt))),
        )
        for measure, found in distances:
            top = int(np.argmax(found))
            if measure not in tops or found[top] > tops[measure][0]:
                tops[measure] = float(found[top]), int(chunk[top])
    for name, (value, place) in tops.items():
        yield Extreme(name, value, elements.one(*divmod(place, judged.kinds.shape[1])))


def _greatest_ratio(
    elements: _Elements, sample: tuple[Index, Index], extremes: list[Extreme]
) -> tuple[Extreme, ...]:
    """The greatest share of a bound among the sample, the extremes, and the element that is told in any case."""
    places = [*zip(*(part.tolist() for part in sample), strict=True)]
    places += [(extreme.element.place.row, extreme.element.place.column) for extreme in extremes]
    places += [] if elements.judged.also is None else [elements.judged.also]
    if not places:
        return ()
    rows, columns = np.array(sorted(set(places)), np.int64).T
    shares = elements.judged.ratios(rows, columns)
    if np.isnan(shares).all():
        return ()
    top = int(np.nanargmax(shares))
    return (Extreme("bound ratio", float(shares[top]), elements.one(int(rows[top]), int(columns[top]))),)


def _right(elements: _Elements, rows: Index, wrong: Mask) -> Sample:
    """Right elements of the rows that wrong ones are in, or of any rows where those have none."""
    valid = elements.judged.valid
    for some in (np.unique(rows), take(np.flatnonzero((valid & ~wrong).any(axis=1)))):
        row, column = np.nonzero((valid & ~wrong)[some])
        chosen = take(np.arange(row.size), RIGHT_LOOKED_AT)
        if chosen.size:
            return elements.sample(some[row[chosen]], column[chosen])
    return elements.sample(np.zeros(0, np.int64), np.zeros(0, np.int64))


def _beyond(valid: Mask, launch: Launch, problem: Problem) -> tuple[int, int]:
    """Elements written outside the valid ones: in splits with tokens, and in splits without."""
    splits = -(-np.asarray(problem.context_lens, np.int64) // SPLIT_TOKENS)
    asked = np.minimum(np.repeat(splits * SPLIT_TOKENS, problem.next_n), launch.written.shape[1])
    tail = stray = 0
    for row, end in enumerate(asked.tolist()):
        written = launch.written[row]
        inside = int(np.count_nonzero(written[:end]))
        # A row's valid columns lie in its splits.
        tail += inside - int(np.count_nonzero(written[: valid.shape[1]] & valid[row]))
        stray += int(np.count_nonzero(written[end:]))
    return tail, stray
