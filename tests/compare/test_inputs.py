"""What a comparison refuses, each fault word for word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mqa_ref.compare.inputs import check
from mqa_ref.errors import InputError
from mqa_ref.flow import Flow
from mqa_ref.launch import Launch
from mqa_ref.problem import Problem

MakeProblem = Callable[..., Problem]
FLOW = Flow.parse("fp32-fp32-fp32")


def faults(problem: Problem, **changed: Any) -> list[str]:
    """What is said when these arrays take the place of right ones; two rows, 300 columns, 512 in the launch."""
    arrays = {
        "expected": np.zeros((2, 300), np.uint32),
        "valid": np.zeros((2, 300), np.bool_),
        "logits": np.zeros((2, 512), np.uint32),
        "written": np.zeros((2, 512), np.bool_),
        **changed,
    }
    launch = Launch(arrays["logits"], arrays["written"], (), 2, 0, 0.0)
    output = {"expected": (arrays["expected"], "uint32"), "valid": (arrays["valid"], "bool")}
    try:
        check(output, launch, problem, FLOW)
    except InputError as error:
        return [str(fault) for fault in error.faults]
    return []


CASES: list[tuple[dict[str, Any], list[str]]] = [
    ({}, []),
    ({"logits": np.zeros((2, 300), np.uint32), "written": np.zeros((2, 300), np.bool_)}, []),
    (
        {"expected": np.zeros((2, 300), np.int64)},
        ["expected: got dtype int64, expected uint32 for output fp32"],
    ),
    (
        {"valid": np.zeros((2, 300), np.int8)},
        ["valid: got dtype int8, expected bool for output fp32"],
    ),
    (
        {"logits": np.zeros((2, 512), np.uint16)},
        ["launch.logits: got dtype uint16, expected uint32 for output fp32"],
    ),
    (
        {"written": np.zeros((2, 512), np.uint8)},
        ["launch.written: got dtype uint8, expected bool for output fp32"],
    ),
    (
        {"expected": np.zeros((3, 300), np.uint32), "valid": np.zeros((3, 300), np.bool_)},
        ["expected: got shape (3, 300), expected [2, columns]"],
    ),
    (
        {"expected": np.zeros(2, np.uint32), "valid": np.zeros(2, np.bool_)},
        ["expected: got shape (2,), expected [2, columns]"],
    ),
    (
        {"expected": np.zeros((2, 300, 1), np.uint32), "valid": np.zeros((2, 300, 1), np.bool_)},
        ["expected: got shape (2, 300, 1), expected [2, columns]"],
    ),
    (
        {"valid": np.zeros((2, 299), np.bool_)},
        ["valid: got shape (2, 299), expected (2, 300), as expected has"],
    ),
    (
        {"logits": np.zeros((2, 299), np.uint32), "written": np.zeros((2, 299), np.bool_)},
        ["launch.logits: got shape (2, 299), expected [2, at least 300]"],
    ),
    (
        {"logits": np.zeros((3, 512), np.uint32), "written": np.zeros((3, 512), np.bool_)},
        ["launch.logits: got shape (3, 512), expected [2, at least 300]"],
    ),
    (
        {"logits": np.zeros(2, np.uint32), "written": np.zeros(2, np.bool_)},
        ["launch.logits: got shape (2,), expected [2, at least 300]"],
    ),
    (
        {"logits": np.zeros((2, 512, 1), np.uint32), "written": np.zeros((2, 512, 1), np.bool_)},
        ["launch.logits: got shape (2, 512, 1), expected [2, at least 300]"],
    ),
    (
        {
            "expected": np.zeros((2, 300, 7), np.uint32),
            "valid": np.zeros((2, 300, 7), np.bool_),
            "logits": np.zeros((3, 512), np.uint32),
            "written": np.zeros((3, 512), np.bool_),
        },
        [
            "expected: got shape (2, 300, 7), expected [2, columns]",
            "launch.logits: got shape (3, 512), expected [2, at least 7]",
        ],
    ),
    (
        {"written": np.zeros((2, 511), np.bool_)},
        ["launch.written: got shape (2, 511), expected (2, 512), as launch.logits has"],
    ),
]


@pytest.mark.parametrize(("changed", "said"), CASES)
def test_what_is_said(make_problem: MakeProblem, changed: dict[str, Any], said: list[str]) -> None:
    assert faults(make_problem([300, 20]), **changed) == said


def test_everything_is_said_at_once(make_problem: MakeProblem) -> None:
    told = faults(
        make_problem([300, 20]),
        expected=np.zeros((1, 5), np.uint16),
        valid=np.zeros((1, 4), np.bool_),
        logits=np.zeros((2, 4), np.uint32),
        written=np.zeros((2, 4), np.uint8),
    )
    assert [fault.partition(":")[0] for fault in told] == [
        "expected",
        "launch.written",
        "expected",
        "valid",
        "launch.logits",
    ]
