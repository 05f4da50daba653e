"""The real thing once: compile, emulate, compare, report; and a kernel that was broken on purpose."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from mqa_ref import verify
from mqa_ref.verification.request import by_name


def test_one_named_problem_by_the_command(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    line = [sys.executable, "-m", "mqa_ref", "verify", "--case", "edges-of-a-tile", "--json", str(file)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(file.read_text())
    asked = ("status", "kernel", "backend", "flow", "cases", "logits", "mismatched", "findings", "ctas")
    assert [told[name] for name in asked] == [
        "pass",
        "builtin",
        "emulator",
        "fp32-fp32-fp32",
        1,
        320,
        0,
        0,
        4,
    ]
    assert done.stdout.splitlines()[-1].startswith("pass: 1 cases, 4 CTAs, 320 logits compared, 0 mismatched")


def test_a_kernel_without_absolute_values_is_caught_and_explained() -> None:
    """With x + x instead of x + |x| the ReLU is gone; the report must say so."""
    edits = []

    def break_relu(ptx: str) -> str:
        edits.append(ptx.count("abs.f32"))
        return ptx.replace("abs.f32", "mov.b32")

    report = verify(problems=by_name(["edges-of-a-tile"]), edit_ptx=break_relu)
    assert edits[0] >= 64
    assert (report.status, report.exit_code) == ("fail", 1)
    comparison = report.case_list[0].comparison
    assert comparison is not None
    assert comparison.mismatched > 300
    assert comparison.suspects == ("no ReLU",)
