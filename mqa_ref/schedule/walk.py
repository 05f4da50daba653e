"""The walk of every CTA: which splits a kernel executes for a schedule, and whether it ever stops.

Two kernels are described. ``zero_rows="execute"``: a position is compared with the end for inequality alone,
and a row without tokens inside a range is executed as one split; this is the kernel the project exists for
(op.md, "What a launch writes"). ``zero_rows="skip"``: positions are compared in order, so every walk ends,
and a row without tokens is stepped over; this is this project's own kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mqa_ref.errors import Fault, InputError
from mqa_ref.schedule.lengths import SplitLine, split_line

ZeroRows = Literal["skip", "execute"]
Entry = tuple[int, int]
RUN_LIMIT = 1 << 16


@dataclass(frozen=True)
class Run:
    """Splits ``first`` .. ``stop - 1`` of one row, executed one after the other."""

    row: int
    first: int
    stop: int


@dataclass(frozen=True)
class CtaWalk:
    """What one CTA does.

    ``start``, ``end``: its two schedule entries. ``runs``: what it executes, in order. ``terminates``: the
    walk meets its end before it leaves the batch. ``reads_row_beyond``: it works on a row outside ``0..B-1``,
    where there is neither a length nor a query. ``truncated``: more runs follow than the limit let through.
    """

    cta: int
    start: Entry
    end: Entry
    runs: tuple[Run, ...]
    terminates: bool
    reads_row_beyond: bool
    truncated: bool = False

    @property
    def items(self) -> list[Entry]:
        """Every executed ``(row, split)``, in order."""
        return [(run.row, split) for run in self.runs for split in range(run.first, run.stop)]

    @property
    def splits(self) -> int:
        """How many splits are executed."""
        return sum(run.stop - run.first for run in self.runs)

    @property
    def zero_work(self) -> bool:
        """Whether it executes nothing at all and stops."""
        return self.terminates and not self.runs


def read_entries(schedule: ArrayLike) -> NDArray[np.int64]:
    """The schedule as int64 [S + 1, 2]. Raises InputError naming ``schedule`` for what is no such array."""
    array = np.asarray(schedule)
    faults = []
    if array.dtype.kind not in "iu":
        faults.append(Fault("schedule", f"dtype {array.dtype}", "integers"))
    if array.ndim != 2 or array.shape[1] != 2 or array.shape[0] < 2:
        faults.append(Fault("schedule", f"shape {list(array.shape)}", "[num_sms + 1, 2], num_sms at least 1"))
    if faults:
        raise InputError(faults)
    return array.astype(np.int64)


def ends_by_inequality(
    start: NDArray[np.int64], end: NDArray[np.int64], line: SplitLine
) -> NDArray[np.bool_]:
    """Whether walks that only compare for inequality stop: bool [n], from starts and ends int64 [n, 2] each.

    Such a walk visits its start, then every split of the rest of its row, then every row's splits (a row
    without tokens counts as one), and last ``(B, 0)``; it stops exactly if ``end`` is among the places it
    visits.
    """
    batch = line.batch
    start_row, start_split, end_row, end_split = start[:, 0], start[:, 1], end[:, 0], end[:, 1]
    starts_inside = (start_row >= 0) & (start_row < batch) & (start_split >= 0)
    visited_in_row = np.maximum(line.per_row, 1)[np.clip(end_row, 0, batch - 1)]
    exists = np.where(
        end_row == batch, end_split == 0, (end_row < batch) & (end_split >= 0) & (end_split < visited_in_row)
    )
    later = (end_row > start_row) | ((end_row == start_row) & (end_split > start_split))
    same = (start_row == end_row) & (start_split == end_split)
    return np.asarray(same | (starts_inside & exists & later))


def _rows_by_inequality(start: Entry, end: Entry, terminates: bool, line: SplitLine) -> Iterator[Run]:
    """The runs of a walk that starts inside the batch at a place other than its end."""
    row, split = start
    last = end if terminates else (line.batch, 0)
    while row < line.batch and (row, split) != last:
        past = max(int(line.per_row[row]), split + 1)
        yield Run(row, split, last[1] if row == last[0] else past)
        if row == last[0]:
            return
        row, split = row + 1, 0


def _rows_in_order(start: Entry, end: Entry, line: SplitLine) -> Iterator[Run]:
    """The runs of a walk that compares positions in order and steps over what a row does not have."""
    for row in range(start[0], min(end[0] + 1, line.batch)):
        first = start[1] if row == start[0] else 0
        stop = int(line.per_row[row])
        stop = min(stop, end[1]) if row == end[0] else stop
        if first < stop:
            yield Run(row, first, stop)


def _take(runs: Iterator[Run], limit: int) -> tuple[tuple[Run, ...], bool]:
    taken: list[Run] = []
    for run in runs:
        if len(taken) == limit:
            return tuple(taken), True
        taken.append(run)
    return tuple(taken), False


def walk(
    schedule: ArrayLike, context_lens: ArrayLike, *, zero_rows: ZeroRows = "skip", limit: int = RUN_LIMIT
) -> list[CtaWalk]:
    """What each CTA of ``schedule`` (integers [S + 1, 2]) does with ``context_lens`` (integers [B] or [B, next_n]).

    ``zero_rows`` chooses the kernel that walks, see the module's text. A walk that starts outside the batch
    executes nothing here and is marked ``reads_row_beyond``. ``limit``: the most runs (one row's piece each)
    listed for one CTA; whether a walk ends is decided in closed form, whatever the limit. Raises InputError
    for what is no schedule or no lengths, and for an unknown ``zero_rows``.
    """
    if zero_rows not in ("skip", "execute"):
        raise InputError([Fault("zero_rows", repr(zero_rows), "'skip' or 'execute'")])
    entries, line = read_entries(schedule), split_line(context_lens)
    ends = ends_by_inequality(entries[:-1], entries[1:], line)
    walks = []
    for cta, (start, end) in enumerate(zip(entries[:-1].tolist(), entries[1:].tolist(), strict=True)):
        begin, finish = (start[0], start[1]), (end[0], end[1])
        terminates = True if zero_rows == "skip" else bool(ends[cta])
        works = begin < finish if zero_rows == "skip" else begin != finish
        inside = 0 <= begin[0] < line.batch and begin[1] >= 0
        beyond = works and not (inside and terminates)
        rows: Iterator[Run] = iter(())
        if works and inside:
            rows = (
                _rows_in_order(begin, finish, line)
                if zero_rows == "skip"
                else _rows_by_inequality(begin, finish, terminates, line)
            )
        runs, truncated = _take(rows, limit)
        walks.append(CtaWalk(cta, begin, finish, runs, terminates, beyond, truncated))
    return walks
