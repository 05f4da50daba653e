"""Checks of a schedule against the lengths it is to be used with, and comparison of schedules as partitions.

A schedule that passes makes every kernel stop (also one that compares for inequality alone) and gives every
split with a token to exactly one CTA. What is merely worth knowing (CTAs without work, rows without tokens
that are executed) is in ``describe``, not among the faults. Source of the rules: op.md, "Schedule metadata".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mqa_ref.errors import InputError
from mqa_ref.schedule.build import FORMS, build
from mqa_ref.schedule.lengths import MAX_CTAS, SplitLine, split_line
from mqa_ref.schedule.walk import Entry, ends_by_inequality, read_entries, walk

FaultKind = Literal["shape", "bounds", "stale", "no_termination", "missing", "duplicate"]


@dataclass(frozen=True)
class ScheduleFault:
    """One thing wrong with a schedule.

    ``kind``: "shape" (no array of entries), "bounds" (an entry outside the batch), "stale" (an entry names a
    split its row does not have: made for other lengths or another split size), "no_termination" (the CTA's
    walk never meets its end), "missing" and "duplicate" (splits no CTA, or more than one CTA, executes).
    ``cta``: the CTA, or for bounds and stale the number of the entry; None for missing. ``row``, ``split``:
    the first split concerned; ``count``: how many.
    """

    kind: FaultKind
    message: str
    cta: int | None = None
    row: int | None = None
    split: int | None = None
    count: int = 1

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class ScheduleReport:
    """A schedule seen over its lengths.

    ``faults``: as from ``check``. ``form``: the builder form whose partition it equals, None for a foreign
    one (or one made for other lengths, even where it happens to be usable). ``zero_work``: CTAs that execute
    nothing. ``zero_length_executed``: (CTA, row) for each row without tokens that a kernel without a test for
    it executes. ``least``, ``most``: fewest and most splits with tokens of any CTA. All but ``faults`` are
    empty when there are faults.
    """

    faults: tuple[ScheduleFault, ...]
    form: str | None = None
    zero_work: tuple[int, ...] = ()
    zero_length_executed: tuple[tuple[int, int], ...] = ()
    least: int = 0
    most: int = 0


def _plural(count: int) -> str:
    return f"{count} split" if count == 1 else f"{count} splits"


def _entry_faults(
    entries: NDArray[np.int64], line: SplitLine
) -> tuple[list[ScheduleFault], list[ScheduleFault]]:
    """Entries outside the batch, and entries at a split their row does not have."""
    row, split = entries[:, 0], entries[:, 1]
    out = (row < 0) | (row > line.batch) | (split < 0) | ((row == line.batch) & (split != 0))
    places = np.maximum(line.per_row, 1)[np.clip(row, 0, line.batch - 1)]
    stale = ~out & (row < line.batch) & (split >= places)
    bounds_faults = [
        ScheduleFault(
            "bounds",
            f"entry {i} is ({row[i]}, {split[i]}), outside the batch, which ends at ({line.batch}, 0)",
            int(i),
            int(row[i]),
            int(split[i]),
        )
        for i in np.flatnonzero(out)
    ]
    stale_faults = [
        ScheduleFault(
            "stale",
            f"entry {i} is ({row[i]}, {split[i]}), but row {row[i]} has {_plural(int(line.per_row[row[i]]))}:"
            " made for other lengths or another split size",
            int(i),
            int(row[i]),
            int(split[i]),
        )
        for i in np.flatnonzero(stale)
    ]
    return bounds_faults, stale_faults


def _termination_faults(entries: NDArray[np.int64], line: SplitLine) -> list[ScheduleFault]:
    never = np.flatnonzero(~ends_by_inequality(entries[:-1], entries[1:], line))
    return [
        ScheduleFault(
            "no_termination",
            f"CTA {i} starts at ({entries[i, 0]}, {entries[i, 1]}) and never meets its end"
            f" ({entries[i + 1, 0]}, {entries[i + 1, 1]})",
            int(i),
            int(entries[i, 0]),
            int(entries[i, 1]),
        )
        for i in never
    ]


def _coverage_faults(entries: NDArray[np.int64], line: SplitLine) -> list[ScheduleFault]:
    """Gaps and overlaps of the CTAs' pieces of the split line, a piece running from its start to its end."""
    at = line.positions(entries)
    pieces = sorted((int(at[i]), int(at[i + 1]), i) for i in range(at.size - 1) if at[i] < at[i + 1])
    faults, covered = [], 0
    for low, high, cta in [*pieces, (line.total, line.total, -1)]:
        if low > covered:
            row, split = line.entry(covered)
            gap = low - covered
            message = f"no CTA executes {_plural(gap)} from ({row}, {split}) on"
            faults.append(ScheduleFault("missing", message, None, row, split, gap))
        elif min(high, covered) > low:
            row, split = line.entry(low)
            again = min(high, covered) - low
            message = (
                f"CTA {cta} executes {_plural(again)} from ({row}, {split}) on that another CTA executes too"
            )
            faults.append(ScheduleFault("duplicate", message, cta, row, split, again))
        covered = max(covered, high)
    return faults


def check(schedule: ArrayLike, context_lens: ArrayLike) -> tuple[ScheduleFault, ...]:
    """Every fault of ``schedule`` (integers [S + 1, 2]) with ``context_lens`` (integers [B] or [B, next_n]).

    An empty answer means: in bounds, every walk ends even under exact inequality, every split with a token is
    executed exactly once. Coverage is judged with positions compared in order (such a walk always ends), so
    that one CTA that never stops is not reported as many duplicates; it is not judged at all when an entry is
    out of bounds. Raises InputError for bad ``context_lens`` only.
    """
    line = split_line(context_lens)
    try:
        entries = read_entries(schedule)
    except InputError as error:
        return tuple(ScheduleFault("shape", f"got {f.value}, expected {f.expected}") for f in error.faults)
    if len(entries) > MAX_CTAS + 1:
        return (ScheduleFault("shape", f"got {len(entries)} entries, expected at most {MAX_CTAS + 1}"),)
    bounds, stale = _entry_faults(entries, line)
    if bounds:
        return (*bounds, *stale)
    return (*stale, *_termination_faults(entries, line), *_coverage_faults(entries, line))


def partition(schedule: ArrayLike, context_lens: ArrayLike) -> dict[int, list[Entry]]:
    """Which splits with tokens each CTA executes: CTA -> [(row, split), ...], CTAs without any included."""
    walks = walk(schedule, context_lens, zero_rows="skip", limit=split_line(context_lens).batch)
    return {cta.cta: cta.items for cta in walks}


def same_partition(one: ArrayLike, other: ArrayLike, context_lens: ArrayLike) -> bool:
    """Whether two schedules give every CTA the same splits with tokens, whatever their bytes say."""
    line = split_line(context_lens)
    first, second = line.positions(read_entries(one)), line.positions(read_entries(other))
    if first.size != second.size:
        return False
    idle = (first[:-1] >= first[1:]) & (second[:-1] >= second[1:])
    equal = (first[:-1] == second[:-1]) & (first[1:] == second[1:])
    return bool(np.all(idle | equal))


def describe(schedule: ArrayLike, context_lens: ArrayLike) -> ScheduleReport:
    """The faults of a schedule and, when there are none, what is worth knowing. Raises as ``check`` does."""
    faults = check(schedule, context_lens)
    if faults:
        return ScheduleReport(faults)
    entries, line = read_entries(schedule), split_line(context_lens)
    at = line.positions(entries)
    work = np.diff(at)
    # Between start and end a walk passes every row; the start's own row counts, the end's does not.
    busy = np.any(entries[:-1] != entries[1:], axis=1)
    empty_rows = np.flatnonzero(line.per_row == 0)
    first = np.searchsorted(empty_rows, entries[:-1, 0])
    stop = np.searchsorted(empty_rows, entries[1:, 0])
    executed = [(int(i), int(row)) for i in np.flatnonzero(busy) for row in empty_rows[first[i] : stop[i]]]
    forms = [
        name
        for name in FORMS
        if same_partition(build(context_lens, len(entries) - 1, name), entries, context_lens)
    ]
    return ScheduleReport(
        (),
        forms[0] if forms else None,
        tuple(int(i) for i in np.flatnonzero(work == 0)),
        tuple(executed),
        int(work.min()),
        int(work.max()),
    )
