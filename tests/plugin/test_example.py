"""examples/kernel-repository does what its README says, and its workflow's commands are ones that exist."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

import mqa_ref
from mqa_ref.cli.app import cli

pytest_plugins = ["pytester"]

ROOT = Path(mqa_ref.__file__).parents[1]
EXAMPLE = ROOT / "examples" / "kernel-repository"


def test_its_tests_pass(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(EXAMPLE, pytester.path, dirs_exist_ok=True)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    line = ["-p", "mqa_ref.pytest_plugin", "--mqa-case", "one-token", "-n", "2"]
    told = pytester.runpytest_subprocess(*line)
    told.assert_outcomes(passed=2)
    told.stdout.fnmatch_lines(["*kernel kernel.py:MyKernel, backend emulator*"])


def test_the_options_of_its_workflow_exist() -> None:
    text = (EXAMPLE / ".github" / "workflows" / "kernel.yml").read_text()
    (line,) = re.findall(r"\.venv/bin/mqa-ref (fuzz [^\n]+\n[^\n]+)\n", text)
    words = shlex.split(re.sub(r"\$\{\{[^}]*\}\}", "1", line))
    command = cli.commands[words[0]]
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known
    tests = re.findall(r"\.venv/bin/pytest ([^\n]+)\n", text)
    assert [shlex.split(test) for test in tests] == [
        ["-n", "auto", "--mqa-on", "emulator"],
        ["--mqa-on", "cuda"],
    ]
