"""The real thing once: compile, emulate, compare, report; and a kernel that was broken on purpose."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mqa_ref import verify
from mqa_ref.cli.app import run
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
        2,
        640,
        0,
        0,
        8,
    ]
    assert told["orders"] == {"eager": 1, "lazy": 1}
    assert done.stdout.splitlines()[-1].startswith(
        "pass: 2 cases, 2 interleavings, 8 CTAs, 640 logits compared"
    )


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


@pytest.mark.parametrize(
    ("text", "code", "error"),
    [
        ("class K:\n    def __init__(self, page): pass", 2, "InputError"),
        ("print('so far so good')\nraise BaseException('no')", 5, "KernelError"),
        ("import os; os._exit(9)", 5, "KernelDied"),
    ],
)
def test_a_kernel_that_breaks_ends_in_a_report(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], text: str, code: int, error: str
) -> None:
    (tmp_path / "kernel.py").write_text(text)
    line = ["verify", "--kernel", f"{tmp_path}/kernel.py:K", "--json", str(tmp_path / "report.json")]
    assert run([*line, "--case", "long", "--case", "many-ctas"]) == code
    told = json.loads((tmp_path / "report.json").read_text())
    assert (told["status"], told["cases"], told["cases_error"], told["logits"]) == ("error", 2, 2, 0)
    assert {case["error"] for case in told["case_list"]} == {error}
    assert capfd.readouterr().out.splitlines()[-1] == "error: nothing ran; 2 cases (2 error)"


def test_a_kernel_of_others_is_compiled_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compile", "--kernel", "sglang", "--heads", "32", "--out", str(tmp_path)]) == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [f"sglang-fp32-fp32-fp32-page64-heads32-next1.{kind}" for kind in ("cubin", "ptx")]
    assert ".target sm_100a" in (tmp_path / names[1]).read_text()
    assert "registers a thread" in capsys.readouterr().out
