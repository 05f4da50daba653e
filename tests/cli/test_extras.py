"""A command whose extra is not installed names it and ends with exit code 4 (5 where nothing else was asked of it);
and the shell completion."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest

from mqa_ref.cli.app import cli, run

Say = pytest.CaptureFixture[str]


class Driver:
    """A driver that sees one GPU."""

    def __getattr__(self, name: str) -> object:
        def call(*arguments: object) -> int:
            if name == "cuDeviceGetCount":
                arguments[0]._obj.value = 1  # type: ignore[attr-defined]
            return 0

        return call


@pytest.mark.parametrize(
    ("module", "line", "extra", "code"),
    [
        ("jinja2", ["verify", "--case", "one-token", "--report", "out"], "report", 4),
        ("hypothesis", ["fuzz", "--max-examples", "1"], "fuzz", 4),
        ("distributed", ["fuzz", "--max-examples", "1", "--cluster", "tcp://localhost:1"], "cluster", 4),
        ("torch", ["bench", "--only", "reference-normal", "--rounds", "1"], "gpu", 5),
        ("cuda.bindings", ["verify", "--on", "cuda", "--case", "one-token"], "gpu", 4),
        ("cuda.bindings", ["calibrate"], "gpu", 4),
    ],
)
def test_a_missing_package(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: Say,
    module: str,
    line: list[str],
    extra: str,
    code: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr("mqa_ref.cuda.probe.load_driver", Driver)
    assert run(line) == code
    told = "".join(capsys.readouterr())
    assert f"mqa-ref[{extra}]" in told or f"the extra `{extra}` brings it" in told
    assert not (tmp_path / "out").exists()


def test_a_missing_disassembler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Say) -> None:
    monkeypatch.setattr("mqa_ref.kernel.cubin.sys", SimpleNamespace(path=[]))
    monkeypatch.setattr("mqa_ref.kernel.cubin.shutil", SimpleNamespace(which=lambda name: None))
    assert run(["compile", "--out", str(tmp_path), "--check-sass"]) == 4
    assert "pip install 'mqa-ref[sass]'" in capsys.readouterr().err


def test_a_missing_kernel_package(monkeypatch: pytest.MonkeyPatch, capsys: Say) -> None:
    def absent(name: str) -> object:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("mqa_ref.kernel.sources.distribution", absent)
    assert run(["verify", "--kernel", "sglang"]) == 4
    assert "pip install --no-deps sglang==" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str, capsys: Say) -> None:
    assert run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"_MQA_REF_COMPLETE={shell}_complete" in script
    assert run(["completion", "tcsh"]) == 2


def test_what_is_completed() -> None:
    """The words that a shell asks for, from the program that the script calls."""
    program = "from mqa_ref.cli import main; main()"
    environment = {"_MQA_REF_COMPLETE": "bash_complete", "COMP_WORDS": "mqa-ref do", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**environment, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["plain,doctor"]
    assert "doctor" in cli.commands
