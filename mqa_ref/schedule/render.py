"""A schedule as text: what each CTA executes, with idle CTAs and rows without tokens marked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from mqa_ref.schedule.check import ScheduleReport, describe
from mqa_ref.schedule.lengths import SPLIT_TOKENS, SplitLine, read_lengths, split_line
from mqa_ref.schedule.svg import render_svg
from mqa_ref.schedule.walk import CtaWalk, Run, walk

__all__ = ["render_svg", "render_text"]

_SHOWN_PIECES = 4
_SHOWN_LENGTHS = 12


def _pieces(runs: Iterable[Run], line: SplitLine) -> Iterator[str]:
    """The runs in words; neighbouring rows executed whole become one piece."""
    whole: list[Run] = []

    def flush() -> Iterator[str]:
        if len(whole) > 1:
            yield f"rows {whole[0].row}-{whole[-1].row} whole"
        elif whole:
            yield _piece(whole[0])
        whole.clear()

    for run in runs:
        if line.per_row[run.row] == 0:
            yield from flush()
            yield f"row {run.row} (length 0, executed)"
        elif run.stop > line.per_row[run.row]:
            yield from flush()
            yield f"{_piece(run)} (past the row's end)"
        elif run.first == 0 and run.stop == line.per_row[run.row]:
            whole.append(run)
        else:
            yield from flush()
            yield _piece(run)
    yield from flush()


def _piece(run: Run) -> str:
    splits = f"split {run.first}" if run.stop == run.first + 1 else f"splits {run.first}-{run.stop - 1}"
    return f"row {run.row} {splits}"


def _line_of(cta: CtaWalk, line: SplitLine) -> tuple[str, ...]:
    words = list(_pieces(cta.runs, line))
    if len(words) > _SHOWN_PIECES:
        words[_SHOWN_PIECES - 1 :] = [f"and {len(words) - _SHOWN_PIECES + 1} more pieces"]
    if not cta.terminates:
        words = ["NEVER ENDS", *words]
    splits = sum(max(min(run.stop, int(line.per_row[run.row])) - run.first, 0) for run in cta.runs)
    return str(cta.cta), str(cta.start), str(cta.end), str(splits), "; ".join(words)


def _rows(walks: list[CtaWalk], line: SplitLine) -> Iterator[tuple[str, ...]]:
    """One row per CTA; neighbouring CTAs without work share one."""
    idle: list[CtaWalk] = []
    for cta in [*walks, None]:
        if cta is not None and cta.zero_work:
            idle.append(cta)
            continue
        if idle:
            name = str(idle[0].cta) if len(idle) == 1 else f"{idle[0].cta}-{idle[-1].cta}"
            yield name, str(idle[0].start), str(idle[-1].end), "0", "zero work"
            idle = []
        if cta is not None:
            yield _line_of(cta, line)


def _heading(
    context_lens: ArrayLike, line: SplitLine, walks: list[CtaWalk], report: ScheduleReport
) -> list[str]:
    lengths = [str(n) for n in read_lengths(context_lens)[:_SHOWN_LENGTHS]]
    more = f" ... ({line.batch} rows)" if line.batch > _SHOWN_LENGTHS else ""
    working = sum(not cta.zero_work for cta in walks)
    heading = [
        f"context lengths  {' '.join(lengths)}{more}",
        f"splits           {line.total} of {SPLIT_TOKENS} tokens, in {int(np.count_nonzero(line.per_row))} rows",
        f"CTAs             {len(walks)}: {working} with work, {len(walks) - working} without",
    ]
    if not report.faults:
        form = report.form or "neither forward nor reversed"
        heading.append(f"form             {form}, {report.least} to {report.most} splits per CTA")
    empty = np.flatnonzero(line.per_row == 0)
    if empty.size:
        shown = " ".join(str(row) for row in empty[:_SHOWN_LENGTHS]) + (
            " ..." if empty.size > _SHOWN_LENGTHS else ""
        )
        heading.append(f"length 0         {empty.size} rows: {shown}")
    return heading


def render_text(schedule: ArrayLike, context_lens: ArrayLike) -> str:
    """The schedule (integers [S + 1, 2]) over ``context_lens`` as a table, lines of text for a terminal.

    Shows the walk of a kernel that executes rows without tokens (op.md), idle CTAs as "zero work", and every
    fault of ``check``. Raises InputError for what is no schedule or no lengths.
    """
    walks = walk(schedule, context_lens, zero_rows="execute")
    line = split_line(context_lens)
    report = describe(schedule, context_lens)
    table = [("CTA", "start", "end", "splits", "executes"), *_rows(walks, line)]
    widths = [max(len(row[column]) for row in table) for column in range(4)]
    cells = [[*(cell.ljust(w) for cell, w in zip(row[:4], widths, strict=True)), row[4]] for row in table]
    verdict = [f"FAULT {fault.kind}: {fault.message}" for fault in report.faults] or ["no fault"]
    heading = _heading(context_lens, line, walks, report)
    return "\n".join([*heading, "", *("  ".join(row).rstrip() for row in cells), "", *verdict, ""])
