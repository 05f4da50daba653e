"""Problems and launches as messages: complete, and refused when they cannot be what they claim."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqa_ref.findings import Finding
from mqa_ref.flow import Flow
from mqa_ref.launch import Launch
from mqa_ref.problem import Problem
from mqa_ref.verification.given import given
from mqa_ref.verification.messages import launch_message, problem_message, read_launch, read_problem
from mqa_ref.verification.wire import Message, WireError, read, write

FLOW = Flow.parse("fp32-fp32-fp32")


@pytest.fixture(scope="module")
def problem() -> Problem:
    return given([300, 0, 5], num_sms=2, next_n=2, heads=32).problem


def through(message: Message, folder: Path) -> Message:
    write(folder / "m", message)
    return read(folder / "m")


@pytest.mark.parametrize("schedule_for", [None, [600, 0, 5]])
def test_a_problem_arrives_with_its_schedule(tmp_path: Path, schedule_for: list[int] | None) -> None:
    sent = given([300, 0, 5], num_sms=2, schedule_for=schedule_for).problem
    assert bool(sent.schedule_faults) == (schedule_for is not None)
    assert read_problem(through(problem_message(sent), tmp_path)).case_id == sent.case_id


def a_launch(problem: Problem, **changed: Any) -> Launch:
    shape = (problem.rows, problem.row_stride)
    made = Launch(
        logits=np.arange(shape[0] * shape[1], dtype=np.uint32).reshape(shape),
        written=np.arange(shape[0] * shape[1]).reshape(shape) % 3 == 0,
        findings=(Finding("hang", "error", "stuck", 1, 2, 3, "ret;", "k.py:4", 5), Finding("x", "info", "y")),
        ctas=2,
        instructions=1234,
        seconds=0.5,
        writer=np.full(shape, -1, np.int32),
    )
    return replace(made, **changed)


def test_a_launch_arrives(problem: Problem, tmp_path: Path) -> None:
    sent = a_launch(problem)
    got = read_launch(through(launch_message(sent), tmp_path), problem, FLOW)
    for name in ("logits", "written", "writer"):
        assert np.array_equal(getattr(got, name), getattr(sent, name))
    assert (got.findings, got.ctas, got.instructions, got.seconds) == (sent.findings, 2, 1234, 0.5)


def test_long_texts_are_cut_by_the_sender(problem: Problem, tmp_path: Path) -> None:
    sent = a_launch(problem, findings=(Finding("hang", "error", "x" * 100_000),))
    (finding,) = read_launch(through(launch_message(sent), tmp_path), problem, FLOW).findings
    assert 1000 < len(finding.message) < 10_000


def forge(message: Message, plain: dict[str, Any], arrays: dict[str, Any]) -> Message:
    return Message({**message.plain, **plain}, {**message.arrays, **arrays})


GOOD = {"kind": "hang", "severity": "error", "message": "stuck"}
FORGED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "another shape": ({}, {"logits": np.zeros((1, 1), np.uint32)}),
    "another dtype": ({}, {"writer": np.zeros((6, 512), np.uint32)}),
    "another array": ({}, {"more": np.zeros(1, np.uint8)}),
    "count is text": ({"ctas": "2"}, {}),
    "count is negative": ({"ctas": -1}, {}),
    "count is true": ({"instructions": True}, {}),
    "seconds are nan": ({"seconds": float("nan")}, {}),
    "findings are text": ({"findings": "none"}, {}),
    "a finding is text": ({"findings": ["hang"]}, {}),
    "no kind": ({"findings": [{"severity": "error", "message": "x"}]}, {}),
    "kind with a line break": ({"findings": [GOOD | {"kind": "ha\nng"}]}, {}),
    "severity": ({"findings": [GOOD | {"severity": "fatal"}]}, {}),
    "message is a number": ({"findings": [GOOD | {"message": 3}]}, {}),
    "warp is text": ({"findings": [GOOD | {"warp": "3"}]}, {}),
    "known by itself": ({"findings": [GOOD | {"known": "ledger"}]}, {}),
    "another field": ({"findings": [GOOD | {"run": "rm"}]}, {}),
    "too many": ({"findings": [GOOD] * 10_001}, {}),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_launch(problem: Problem, name: str) -> None:
    message = launch_message(a_launch(problem))
    assert len(read_launch(forge(message, {"findings": [GOOD]}, {}), problem, FLOW).findings) == 1
    with pytest.raises(WireError):
        read_launch(forge(message, *FORGED[name]), problem, FLOW)


def test_a_launch_without_logits(problem: Problem) -> None:
    message = launch_message(a_launch(problem))
    arrays = {name: array for name, array in message.arrays.items() if name != "logits"}
    with pytest.raises(WireError):
        read_launch(Message(message.plain, arrays), problem, FLOW)
