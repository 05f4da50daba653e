"""What a report shows beside its numbers: where the wrong elements lie, how far off they are, who did what when.

Plain arrays and counts; ``mqa_ref.report.pictures`` draws them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Histogram:
    """How many elements fall into each of some named ranges."""

    title: str
    labels: tuple[str, ...]
    counts: tuple[int, ...]

    def __add__(self, other: Histogram) -> Histogram:
        assert self.labels == other.labels, "histograms of one kind"
        counts = tuple(a + b for a, b in zip(self.counts, other.counts, strict=True))
        return Histogram(self.title, self.labels, counts)


@dataclass(frozen=True)
class Matrix:
    """The class of every element of one output.

    ``kinds``: int8 [rows, columns], an index into ``KINDS``, -1 where right. ``valid``: valid columns of each row,
    int64 [rows]. ``owner``: int64 [sequences, splits], the CTA of each split, -1 for none. ``page``, ``next_n``: as in
    the problem.
    """

    kinds: NDArray[np.int8]
    valid: NDArray[np.int64]
    owner: NDArray[np.int64]
    page: int
    next_n: int


@dataclass(frozen=True)
class CaseEvidence:
    """One case. ``schedule`` [num_sms + 1, 2] and ``lengths``: who had to do what. ``timeline``: the values of
    ``mqa_ref.emulator.timeline.Timeline`` for a faulty CTA. ``explanation``: the values of
    ``mqa_ref.explain.Explanation`` for the first wrong element. None where there is none."""

    name: str
    order: str
    seed: int
    flow: str
    schedule: NDArray[np.int32]
    lengths: NDArray[np.int32]
    matrix: Matrix | None = None
    ulp: Histogram | None = None
    timeline: Mapping[str, Any] | None = None
    explanation: Mapping[str, Any] | None = None

    @property
    def title(self) -> str:
        """The case and its interleaving."""
        return f"{self.name} [{self.order}]"


@dataclass(frozen=True)
class FlowEvidence:
    """All compared elements of one flow: distances from the reference, and errors as shares of their bounds."""

    flow: str
    logits: int
    ulp: Histogram
    ratio: Histogram


@dataclass(frozen=True)
class Evidence:
    """All of it. ``left_out``: failing cases without pictures, since there are so many. ``hashes``: SHA-256 of what the
    verdict rests on, by name."""

    cases: tuple[CaseEvidence, ...] = ()
    flows: tuple[FlowEvidence, ...] = ()
    left_out: int = 0
    hashes: Mapping[str, str] = field(default_factory=dict)
