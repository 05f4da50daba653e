"""How what a launch shows becomes a verdict, with a runner that answers from a table; and the order of many."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mqa_ref.errors import EmulatorError, KernelDied, KernelTimeout, MqaRefError, NotAvailable
from mqa_ref.flow import Flow
from mqa_ref.fuzz.model import reference_launch
from mqa_ref.fuzz.mutants.campaign import Ask, run
from mqa_ref.fuzz.mutants.judge import Step, Verdict, climb, failures_on, prepared
from mqa_ref.fuzz.mutants.ladder import ladder
from mqa_ref.fuzz.mutants.mutant import Mutant
from mqa_ref.fuzz.trial import Failure
from mqa_ref.problem import Problem

FLOW = Flow.parse("fp32-fp32-fp32")
STEPS = prepared(list(ladder(FLOW, drawn=0))[:3])
BITS, RACE, HANG = (
    Failure("bits", "value", "b"),
    Failure("finding", "race_shared@a.py:1", "r"),
    Failure("finding", "hang", "h"),
)


def answers(*told: Any) -> Callable[..., list[Failure]]:
    """On rung *i* the *i*-th answer; an exception is raised."""
    waiting = iter(told)

    def look(_: Any, __: Step, ___: str) -> list[Failure]:
        one = next(waiting)
        if isinstance(one, Exception):
            raise one
        return list(one)

    return look


@pytest.mark.parametrize(
    ("told", "outcome", "launches"),
    [
        (([], [], []), "survived", 3),
        (([], [BITS]), "value", 2),
        (([RACE],), "finding", 1),
        (([RACE, BITS],), "value", 1),
        (([BITS, RACE, HANG],), "time-out", 1),
        (([Failure("finding", "runaway@x", "")],), "time-out", 1),
        (([], KernelTimeout("")), "time-out", 2),
        ((EmulatorError(""),), "refused", 1),
        (([], KernelDied("")), "fault", 2),
    ],
)
def test_the_outcome(told: tuple[Any, ...], outcome: str, launches: int) -> None:
    verdict = climb("m", reference_launch, STEPS, look=answers(*told))
    assert (verdict.outcome, verdict.launches) == (outcome, launches)
    assert verdict.rung == ("" if outcome == "survived" else STEPS[launches - 1].rung.name)
    assert verdict.caught is (outcome in ("value", "finding", "time-out"))


def test_a_missing_package_is_nobodys_verdict() -> None:
    with pytest.raises(NotAvailable):
        climb("m", reference_launch, STEPS, look=answers(NotAvailable("")))


def test_a_right_launch_shows_nothing_and_a_wrong_bit_is_seen() -> None:
    def spoiled(problem: Problem, flow: Flow, **how: Any) -> Any:
        launch = reference_launch(problem, flow, **how)
        launch.logits[0, 0] ^= np.uint32(1)
        return launch

    assert failures_on(reference_launch, STEPS[0], "builtin") == []
    assert climb("m", spoiled, STEPS).outcome == "value"


def test_a_store_outside_the_splits_is_seen() -> None:
    step = next(one for one in prepared(ladder(FLOW, drawn=0)) if one.rung.name.startswith("nothing"))

    def stray(problem: Problem, flow: Flow, **how: Any) -> Any:
        launch = reference_launch(problem, flow, **how)
        launch.written[1, 0] = True
        return launch

    assert failures_on(reference_launch, step, "builtin") == []
    assert "written:stray" in {one.name for one in failures_on(stray, step, "builtin")}


MUTANTS = [Mutant("fence", "bar", str(number), number, "a", "b") for number in range(7)]


@pytest.mark.parametrize("workers", [1, 3])
def test_verdicts_come_in_the_order_of_the_mutants(workers: int) -> None:
    closed: list[str] = []

    def make() -> tuple[Ask, Callable[[], None]]:
        return lambda one: Verdict(one.id, "value"), lambda: closed.append(threading.current_thread().name)

    shown: list[str] = []
    verdicts = run(MUTANTS, make, workers, done=lambda one: shown.append(one.id))
    assert [one.id for one in verdicts] == [one.id for one in MUTANTS]
    assert sorted(shown) == sorted(one.id for one in MUTANTS)
    assert len(closed) == workers


def test_what_an_asker_raises_ends_the_run() -> None:
    def ask(_: Mutant) -> Verdict:
        raise NotAvailable("no compiler")

    with pytest.raises(MqaRefError, match="no compiler"):
        run(MUTANTS, lambda: (ask, lambda: None), 2)
