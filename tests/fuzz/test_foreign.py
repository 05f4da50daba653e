"""Kernels that misbehave as programs: what one does ends its example, never the campaign."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mqa_ref.cli.app import run
from mqa_ref.findings import Finding
from mqa_ref.fuzz.campaign import Campaign, check_campaign
from mqa_ref.fuzz.casefile import read_case
from mqa_ref.fuzz.description import Description
from mqa_ref.fuzz.model import NAME, reference_launch
from mqa_ref.fuzz.runner import run_campaign
from mqa_ref.fuzz.session import Session
from mqa_ref.kernel.contract import CALL, CONSTRUCTOR
from mqa_ref.verification.ledger import Known, Ledger


@pytest.mark.parametrize(
    ("does", "name", "seconds"),
    [
        ("import os; os.abort()", "error:KernelDied", 100),
        ("while True: pass", "error:KernelTimeout", 2),
    ],
)
def test_a_crash_or_a_hang_is_a_failure_with_a_case(
    tmp_path: Path, does: str, name: str, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mqa_ref.fuzz.runner.MOST_MINIMISED", 0)
    source = tmp_path / "kernel.py"
    source.write_text(
        f"class Kernel:\n    def __init__(self, {', '.join(CONSTRUCTOR)}):\n        {does}\n"
        f"    def __call__(self, {', '.join(CALL)}):\n        pass\n"
    )
    folder = tmp_path / "db"
    folder.mkdir()
    campaign = check_campaign(
        kernel=f"{source}:Kernel", flow="fp32-fp32-fp32", seed=2, checks=[], seconds=seconds
    )
    report = run_campaign(campaign, max_examples=2, folder=folder)
    assert (report.status, report.totals.examples) == ("fail", 2)
    assert [(one.found.name, one.count) for one in report.reported] == [(name, 2)]
    path = report.reported[0].path
    assert path is not None
    assert read_case(path).kernel == f"{source}:Kernel"


def test_a_gpu_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert run(["fuzz", "--on", "cuda", "--database", str(tmp_path / "db"), "--max-examples", "1"]) == 4
    assert not (tmp_path / "db").exists()


def test_a_known_finding_is_known_in_every_launch() -> None:
    """An entry that names problems of ``verify`` covers the same finding of drawn launches; another one it does not."""

    def launch(problem: Any, flow: Any, **how: Any) -> Any:
        told = reference_launch(problem, flow, **how)
        return replace(told, findings=(Finding("hang", "error", "it hangs", source="kernel.py:3"),))

    assert known_names(launch, "hang", Description()) == set()
    assert known_names(launch, "runaway", Description()) == {"finding:hang@kernel.py:3"}


def test_a_known_finding_is_known_with_a_stale_schedule() -> None:
    """A stray access that only a schedule for other lengths brings about, and a ledger that knows it, or another."""

    def launch(problem: Any, flow: Any, **how: Any) -> Any:
        stray = Finding("global_out_of_bounds", "error", "it strays", source="kernel.py:3")
        told = reference_launch(problem, flow, **how)
        return replace(told, findings=(stray,) if problem.schedule_faults else ())

    stale = [Description((257,), check="stale_schedule", check_seed=number) for number in range(6)]

    def names(kind: str, case: str) -> set[str]:
        return {name for one in stale for name in known_names(launch, kind, one, case)}

    assert names("hang", "stale_schedule") == {"stale_schedule:global_out_of_bounds"}
    assert names("global_out_of_bounds", "stale_schedule") == set()
    assert names("global_out_of_bounds", "one-token") == set()


def test_what_is_known_of_stale_schedules_is_known_of_no_other_launch() -> None:
    def launch(problem: Any, flow: Any, **how: Any) -> Any:
        told = reference_launch(problem, flow, **how)
        return replace(told, findings=(Finding("hang", "error", "it hangs", source="kernel.py:3"),))

    for case in ("stale_schedule", "stale_*"):
        assert known_names(launch, "hang", Description(), case) == {"finding:hang@kernel.py:3"}


def known_names(launch: Any, kind: str, description: Description, case: str = "one-token") -> set[str]:
    """The failures of a launch when findings of a kind are known in a case."""
    entry = Known(id="x", kernel=NAME, kind=kind, source="kernel.py:*", cases=[case], reason="r", link="l")
    campaign = Campaign(kernel=NAME, known=Ledger(known=[entry]).model_dump_json())
    with Session(campaign, launch) as session:
        return set(session.judge(description).outcome.names)
