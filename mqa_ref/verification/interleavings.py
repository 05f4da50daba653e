"""Which problem is run in which interleavings of its warps and asynchronous operations.

A result must not depend on the interleaving, so one is never enough; but each costs a run. By default every problem
runs in the order "eager", and one that is small also in one further order, in turn lazy, random and systematic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mqa_ref.schedule import SPLIT_TOKENS
from mqa_ref.verification.problems import NamedProblem

FIRST = "eager"
TURNS = ("lazy", "random", "systematic")
SMALL_SPLITS = 12
SEED_STEP = 7
"""From one problem to the next the seed moves on by this, so that "systematic" holds back another warp; 7 has no
factor in common with the 26 variants of a CTA of 12 warps."""


@dataclass(frozen=True)
class Step:
    """One launch of a run."""

    problem: NamedProblem
    order: str
    seed: int


def plan(problems: Sequence[NamedProblem], orders: Sequence[str] | None, seed: int) -> list[Step]:
    """The launches of a run: each problem in each of ``orders``, or for None in the orders that the module's text
    tells. The launches of one problem are neighbours."""
    if orders is not None:
        return [Step(problem, order, seed) for problem in problems for order in orders]
    steps: list[Step] = []
    small = 0
    for problem in problems:
        if problem.interleaving:
            steps.append(Step(problem, problem.interleaving, seed + len(steps) * SEED_STEP))
            continue
        steps.append(Step(problem, FIRST, seed))
        lengths = problem.problem.context_lens.astype(np.int64)
        if int((-(-lengths // SPLIT_TOKENS)).sum()) <= SMALL_SPLITS:
            turn = TURNS[small % len(TURNS)]
            steps.append(Step(problem, turn, seed + small * SEED_STEP))
            small += 1
    return steps
