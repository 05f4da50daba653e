"""Findings that follow from what was written where, whatever backend ran the kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from mqa_ref.compare import Comparison
from mqa_ref.compare.bits import hex_word
from mqa_ref.compare.place import owners
from mqa_ref.findings import Finding
from mqa_ref.flow import Flow
from mqa_ref.kernel.targets import Declared
from mqa_ref.launch import Launch
from mqa_ref.numerics import FORMATS, MachineModel, canonical_nan
from mqa_ref.problem import Problem
from mqa_ref.reference.tail import tail_logits
from mqa_ref.schedule import SPLIT_TOKENS


def derive(kernel: str, problem: Problem, launch: Launch, comparison: Comparison) -> tuple[Finding, ...]:
    """All of them."""
    return (*unasked(kernel, comparison), *written_by_others(problem, launch))


def unasked(kernel: str, comparison: Comparison) -> tuple[Finding, ...]:
    """The finding ``unasked_columns``: columns written in splits that hold no token of their row.

    Nobody reads them, so for kernels in general it is "info"; the builtin kernel promises not to do it.
    """
    if comparison.stray_written == 0:
        return ()
    message = f"{comparison.stray_written} elements were written in splits that hold no token of their row"
    return (Finding("unasked_columns", "error" if kernel == "builtin" else "info", message),)


def unlike_declared(
    declared: Declared, machine: str | MachineModel, problem: Problem, flow: Flow, launch: Launch
) -> tuple[Finding, ...]:
    """The finding ``tail_unlike_declared``: a column behind the valid ones does not hold what the kernel declares.

    Nobody reads those columns, so it is "info". Nothing is said of kernels that declare no tail or no order, of
    schedules with faults, and of columns that the rule does not know.
    """
    if declared.tail is None or declared.order is None or problem.schedule_faults:
        return ()
    fmt = FORMATS[flow.out]
    told: Any = {"generation": declared.generation, "order": declared.order}
    expected, known = tail_logits(problem, flow, declared.tail, machine, **told)
    wrong = known & (~launch.written | (canonical_nan(launch.logits, fmt) != expected))
    if not wrong.any():
        return ()
    row, column = (int(places[0]) for places in np.nonzero(wrong))
    words = [hex_word(int(bits[row, column]), fmt) for bits in (launch.logits, expected)]
    message = (
        f"{int(wrong.sum())} of {int(known.sum())} columns behind the valid ones do not hold what the kernel declares"
        f" ({declared.tail}); the first is row {row} column {column}: {words[0]}, expected {words[1]}"
    )
    return (Finding("tail_unlike_declared", "info", message),)


def written_by_others(problem: Problem, launch: Launch) -> tuple[Finding, ...]:
    """The finding ``written_by_other_cta``: an element of a split that another CTA stored than the one to which the
    schedule gives the split. Judged where the backend tells who stored, and only for a schedule without faults, which
    gives each split with a token to one CTA."""
    if launch.writer is None or problem.schedule_faults:
        return ()
    by_split = np.repeat(owners(problem), problem.next_n, axis=0)
    owner = np.repeat(by_split, SPLIT_TOKENS, axis=1)[:, : launch.writer.shape[1]]
    writer = launch.writer[:, : owner.shape[1]]
    wrong = launch.written[:, : owner.shape[1]] & (owner >= 0) & (writer != owner)
    if not wrong.any():
        return ()
    row, column = (int(place[0]) for place in np.nonzero(wrong))
    cta, right = int(writer[row, column]), int(owner[row, column])
    message = (
        f"{int(wrong.sum())} elements were written by another CTA than the schedule gives their split to; the first"
        f" is row {row} column {column}, by CTA {cta} in place of {right}"
    )
    return (Finding("written_by_other_cta", "error", message, cta=cta),)
