"""``mqa-ref golden`` as a user calls it: what it prints, what it writes, its exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mqa_ref.cli.app import run
from mqa_ref.golden import CASES, DATA
from mqa_ref.golden.store import path_of

Say = pytest.CaptureFixture[str]
ONE = "value-one"


def test_list(capsys: Say) -> None:
    assert run(["golden", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == [case.name for case in CASES]
    assert lines[-1] == f"{len(CASES)} cases"


def test_check_passes_and_writes_json(tmp_path: Path, capsys: Say) -> None:
    file = tmp_path / "golden.json"
    assert run(["golden", "check", "--case", ONE, "--case", "peer-12-heads-10", "--json", str(file)]) == 0
    told = json.loads(file.read_text())
    assert (told["status"], told["cases"], told["logits"]) == ("pass", 2, 72)
    assert capsys.readouterr().out.startswith("pass: 2 cases, 72 logits, 0 cases differ, 0 files unused")


def test_check_of_a_missing_and_a_damaged_file(tmp_path: Path, capsys: Say) -> None:
    arguments = ["golden", "check", "--folder", str(tmp_path), "--case", ONE]
    assert run(arguments) == 1
    assert "is missing" in capsys.readouterr().out
    file = tmp_path / "golden.json"
    path_of(ONE, tmp_path).write_bytes(path_of(ONE, DATA).read_bytes()[:-1])
    assert run([*arguments, "--json", str(file)]) == 2
    assert json.loads(file.read_text())["status"] == "error"
    said = capsys.readouterr().out
    assert f"{path_of(ONE, tmp_path)}: got" in said
    assert "truncated" in said


def test_check_refuses_what_is_no_case_and_no_folder(tmp_path: Path, capsys: Say) -> None:
    assert run(["golden", "check", "--case", "nope"]) == 2
    assert run(["golden", "check", "--folder", str(tmp_path / "none"), "--case", ONE]) == 2
    assert run(["golden", "check", "--json", str(tmp_path / "no" / "x.json")]) == 2
    assert [line.split(":")[1].strip() for line in capsys.readouterr().err.splitlines()] == [
        "case",
        "folder",
        "--json",
    ]


def test_regen_refuses_under_ci_and_without_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Say
) -> None:
    monkeypatch.setenv("CI", "true")
    assert run(["golden", "regen", "--reason", "x", "--folder", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "error: CI: got 'true'" in said
    assert "a git checkout, not an installed package" in said
    assert run(["golden", "regen", "--folder", str(tmp_path)]) == 2
    assert list(tmp_path.iterdir()) == []


def test_the_compiler_is_not_needed() -> None:
    """A machine without cutlass and torch can check: neither is imported."""
    code = (
        "import sys; from mqa_ref.cli.app import run; "
        f"code = run(['golden', 'check', '--case', '{ONE}', '--case', 'peer-19-weights-in-registers']); "
        "sys.exit(code or int(any(name in sys.modules for name in ('cutlass', 'torch'))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
