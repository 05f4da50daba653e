"""The tutorial as a reader would do it, in a fresh folder: verify, break, report, replay, explain."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, run_page


def test_the_tutorial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    faults = run_page(ROOT / "docs" / "tutorial.md", tmp_path)
    assert not faults, "\n\n".join(faults)
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert (report["status"], report["mismatched"], report["logits"]) == ("fail", 80, 320)
    html = (tmp_path / "out" / "report.html").read_text()
    assert "partial sums added as ((s0x + s1x) + s0y) + s1y" in html
    assert "<script" not in html
