"""Which problem runs in which interleavings, and that the report counts them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from mqa_ref.emulator.policy import ORDERS
from mqa_ref.findings import Finding
from mqa_ref.problem import Problem
from mqa_ref.verification.interleavings import SEED_STEP, SMALL_SPLITS, plan
from mqa_ref.verification.problems import quick
from mqa_ref.verification.verify import verify

Install = Callable[[Any], list[dict[str, Any]]]
NAMES = ("one-token", "edges-of-a-tile", "zero-in-the-middle", "nan-keys", "long")


def clean(problem: Problem, logits: np.ndarray, written: np.ndarray) -> tuple[Finding, ...]:
    return ()


def test_by_default_every_small_problem_gets_a_second_interleaving_in_turn(fake_backend: Install) -> None:
    calls = fake_backend(clean)
    chosen = [one for one in quick() if one.name in NAMES]
    report = verify(problems=chosen, seed=5)
    told = [(case.name, case.order, case.seed) for case in report.case_list]
    assert told == [
        *(("one-token", "eager", 5), ("one-token", "lazy", 5)),
        *(("edges-of-a-tile", "eager", 5), ("edges-of-a-tile", "random", 12)),
        *(("zero-in-the-middle", "eager", 5), ("zero-in-the-middle", "systematic", 19)),
        *(("nan-keys", "eager", 5), ("nan-keys", "lazy", 26)),
        ("long", "eager", 5),
    ]
    assert [(call["order"], call["seed"]) for call in calls] == [told[1:] for told in told]
    assert report.interleavings == len(told)
    plain = json.loads(report.to_json())
    assert plain["orders"] == {"eager": 5, "lazy": 2, "random": 1, "systematic": 1}
    assert "--order systematic --case zero-in-the-middle --seed 19" in plain["case_list"][5]["repro"]


def test_the_quick_set_is_run_in_every_order_and_large_problems_once() -> None:
    steps = plan(quick(), None, 0)
    assert {step.order for step in steps} == set(ORDERS)
    for one in quick():
        splits = int((-(-one.problem.context_lens // 256)).sum())
        assert sum(step.problem is one for step in steps) == (2 if splits <= SMALL_SPLITS else 1)
    assert len({step.seed for step in steps if step.order == "systematic"}) >= 5


def test_the_seeds_of_neighbours_go_round_all_systematic_variants() -> None:
    """A CTA of 12 warps has 2 * 13 of them (``mqa_ref.emulator.policy``)."""
    assert len({3 * turn * SEED_STEP % 26 for turn in range(26)}) == 26


def test_chosen_orders_are_run_for_every_problem() -> None:
    steps = plan(quick()[:2], ["lazy", "eager"], 4)
    assert [(step.problem.name, step.order, step.seed) for step in steps] == [
        (one.name, order, 4) for one in quick()[:2] for order in ("lazy", "eager")
    ]
