"""A problem from a few numbers on a command line: the caller's lengths and shape, data with random bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mqa_ref.schedule import build
from mqa_ref.verification.problems import NamedProblem, Recipe, make


def given(
    lengths: Sequence[int],
    *,
    num_sms: int = 4,
    page: int = 64,
    heads: int = 64,
    next_n: int = 1,
    schedule_for: Sequence[int] | None = None,
) -> NamedProblem:
    """The problem "given". The table is exactly as wide as the longest length needs.

    ``schedule_for``: other lengths that the schedule is built for, as a stale one is. A schedule that does not fit is
    forced upon the problem, and only a run that is told to takes it. Raises InputError as Problem and ``build`` do.
    """
    build(lengths, num_sms)
    recipe = Recipe(
        "given", "given on the command line", tuple(lengths), num_sms, page, heads, next_n, "bits"
    )
    made = make(replace(recipe, rest="tight"))
    words = ["--context-lens", ",".join(map(str, lengths)), "--num-sms", str(num_sms), "--page", str(page)]
    words += ["--heads", str(heads), "--next-n", str(next_n)]
    problem = made.problem
    if schedule_for is not None:
        problem = problem.forced(build(schedule_for, num_sms).astype(np.int32))
        words += ["--schedule-for", ",".join(map(str, schedule_for))]
        words += ["--force"] if problem.schedule_faults else []
    return replace(made, problem=problem, select=tuple(words))
