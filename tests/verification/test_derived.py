"""Findings about who wrote what: a kernel that keeps to the schedule is not accused, every other one is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mqa_ref.launch import Launch
from mqa_ref.problem import Problem
from mqa_ref.verification.derived import written_by_others
from mqa_ref.verification.given import given


@pytest.fixture(scope="module")
def problem() -> Problem:
    """Splits by row: 2, 0, 3, 1. The forward schedule gives three CTAs two each."""
    return given([300, 0, 700, 200], num_sms=3, next_n=2, heads=32).problem


def right(problem: Problem) -> Launch:
    """Every split of a row with tokens, written by the CTA that has it, worked out by hand for the problem above."""
    shape = (problem.rows, problem.row_stride)
    writer = np.full(shape, -1, np.int32)
    writer[0:2, :512] = 0
    writer[4:6, :512] = 1
    writer[4:6, 512:768] = 2
    writer[6:8, :256] = 2
    written = writer >= 0
    return Launch(np.zeros(shape, np.uint32), written, (), 3, 1, 0.0, writer)


def test_a_kernel_that_keeps_to_the_schedule(problem: Problem) -> None:
    assert written_by_others(problem, right(problem)) == ()


def test_one_element_from_another_cta(problem: Problem) -> None:
    launch = right(problem)
    assert launch.writer is not None
    launch.writer[5, 600] = 1
    launch.writer[5, 601] = 0
    (finding,) = written_by_others(problem, launch)
    assert (finding.kind, finding.severity, finding.cta) == ("written_by_other_cta", "error", 1)
    assert finding.message.startswith("2 elements")
    assert finding.message.endswith("row 5 column 600, by CTA 1 in place of 2")


def test_what_is_not_judged(problem: Problem) -> None:
    """Elements that nobody wrote, rows without tokens, backends that cannot tell, schedules with faults."""
    launch = right(problem)
    assert launch.writer is not None
    launch.writer[2:4, :256] = 1
    launch.written[2:4, :256] = True
    launch.writer[0, 7] = -1
    launch.written[0, 7] = False
    assert written_by_others(problem, launch) == ()
    launch.writer[:] = 2
    assert written_by_others(problem, replace(launch, writer=None)) == ()
    stale = problem.schedule.copy()
    stale[1] = (0, 1)
    stale[2] = (2, 9)
    assert written_by_others(problem.forced(stale), launch) == ()
    assert written_by_others(problem, launch) != ()
