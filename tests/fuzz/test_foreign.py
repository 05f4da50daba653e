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
    ("does", "name"),
    [
        ("import os; os.abort()", "error:KernelDied"),
        ("while True: pass", "error:KernelTimeout"),
    ],
)
def test_a_crash_or_a_hang_is_a_failure_with_a_case(
    tmp_path: Path, does: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mqa_ref.fuzz.runner.MOST_MINIMISED", 0)
    source = tmp_path / "kernel.py"
    source.write_text(
        f"class Kernel:\n    def __init__(self, {', '.join(CONSTRUCTOR)}):\n        {does}\n"
        f"    def __call__(self, {', '.join(CALL)}):\n        pass\n"
    )
    folder = tmp_path / "db"
    folder.mkdir()
    campaign = check_campaign(kernel=f"{source}:Kernel", flow="fp32-fp32-fp32", seed=2, checks=[], seconds=3)
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

    def names(kind: str) -> set[str]:
        entry = Known(
            id="x", kernel=NAME, kind=kind, source="kernel.py:*", cases=["one-token"], reason="r", link="l"
        )
        campaign = Campaign(kernel=NAME, known=Ledger(known=[entry]).model_dump_json())
        with Session(campaign, launch) as session:
            return set(session.judge(Description()).outcome.names)

    assert names("hang") == set()
    assert names("runaway") == {"finding:hang@kernel.py:3"}
