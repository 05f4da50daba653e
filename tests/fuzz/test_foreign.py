"""Kernels that misbehave as programs: what one does ends its example, never the campaign."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqa_ref.cli.app import run
from mqa_ref.fuzz.campaign import check_campaign
from mqa_ref.fuzz.casefile import read_case
from mqa_ref.fuzz.runner import run_campaign
from mqa_ref.kernel.contract import CALL, CONSTRUCTOR


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
