"""An example that ends its process is named, and costs no other example."""

from __future__ import annotations

import multiprocessing
import os
from typing import Any

import pytest

from mqa_ref.fuzz import workers
from mqa_ref.fuzz.block import replay_block, run_block
from mqa_ref.fuzz.campaign import PROCESS_DIED, BlockResult, Campaign
from mqa_ref.fuzz.casefile import decode_case
from mqa_ref.fuzz.description import Description
from mqa_ref.fuzz.model import NAME, reference_launch
from mqa_ref.fuzz.session import Session, subject_of
from mqa_ref.fuzz.workers import Pool, Task

MODEL = Campaign(kernel=NAME, seed=5, checks=(), options=False)
SIZE = 6


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that share this one's modules, so that a test can put another kernel into them. They hold both ends of
    their pipes, so they do not see them close."""
    monkeypatch.setattr(workers, "GRACE_SECONDS", 0.2)
    fork = multiprocessing.get_context("fork")
    monkeypatch.setattr("mqa_ref.fuzz.workers.multiprocessing.get_context", lambda kind: fork)


def run(task: Task) -> list[BlockResult]:
    pool = Pool(MODEL, 1)
    try:
        return [one for one in pool.run([task]) if isinstance(one, BlockResult)]
    finally:
        pool.close()


def test_two_fatal_examples_of_a_block(forked: None, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Description] = []
    replay_block(MODEL, 0, drawn.append)
    distinct = list(dict.fromkeys(drawn))[:SIZE]
    fatal = {1, 4}
    doomed = {subject_of(distinct[number]).problem.case_id for number in fatal}

    def launch(problem: Any, flow: Any, **how: Any) -> Any:
        if problem.case_id in doomed:
            os._exit(9)
        return reference_launch(problem, flow, **how)

    monkeypatch.setattr(workers, "Session", lambda campaign: Session(campaign, launch))
    (result,) = run(Task(0, SIZE))
    whole = run_block(MODEL, 0, size=SIZE)
    assert result.examples == whole.examples
    assert [(one.name, one.number) for one in result.failures] == [(PROCESS_DIED, 1), (PROCESS_DIED, 4)]
    assert "exit code 9" in result.failures[0].message
    case = decode_case(result.failures[0].case, "x")
    assert case.subject.problem.case_id in doomed
    assert case.failure == PROCESS_DIED


def test_a_process_that_dies_before_any_example(forked: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*given: Any, **named: Any) -> Any:
        os._exit(3)

    monkeypatch.setattr(workers, "run_block", never)
    (result,) = run(Task(2, SIZE))
    assert (result.block, result.examples, result.skipped) == (2, (), SIZE)
    assert [one.name for one in result.failures] == [PROCESS_DIED]
