from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mqa_ref.findings import Finding
from mqa_ref.flow import Flow
from mqa_ref.kernel.targets import Target
from mqa_ref.launch import Launch
from mqa_ref.problem import Problem
from mqa_ref.reference import reference_logits

Plant = Callable[[Problem, np.ndarray, np.ndarray], tuple[Finding, ...]]
Install = Callable[[Plant], list[dict[str, Any]]]


def no_fault(problem: Problem, logits: np.ndarray, written: np.ndarray) -> tuple[Finding, ...]:
    return ()


def nothing_to_load() -> Callable[..., Any]:
    raise AssertionError("the launch is replaced, so nothing is loaded")


@pytest.fixture
def fake_backend(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Replaces the launch by one that answers from the reference, after ``plant`` has spoiled its arrays in
    place.

    Returns the list in which the keyword arguments of every launch are noted.
    """

    def install(plant: Plant) -> list[dict[str, Any]]:
        calls: list[dict[str, Any]] = []

        def launch(target: object, problem: Problem, flow: Flow, **options: Any) -> Launch:
            calls.append({"target": target, "problem": problem, **options})
            bits, valid = reference_logits(problem, flow, options["machine"])
            logits = np.full((problem.rows, problem.row_stride), 0xFDFDFDFD, np.uint32)
            written = np.zeros(logits.shape, np.bool_)
            logits[:, : bits.shape[1]][valid] = bits[valid]
            written[:, : bits.shape[1]] = valid
            findings = plant(problem, logits, written)
            return Launch(logits, written, findings, problem.num_sms, 1000, 0.25)

        monkeypatch.setattr("mqa_ref.verification.runner.launch", launch)
        monkeypatch.setattr(
            "mqa_ref.verification.request.resolve",
            lambda kernel: Target(str(kernel), nothing_to_load),
        )
        return calls

    return install
