"""The script ./dev: its messages, its exit codes, and when it makes the environment anew. No environment is
made here."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "dev"


@pytest.fixture
def dev(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module, over a project of its own with two files."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader = importlib.machinery.SourceFileLoader("dev_script", str(SCRIPT))
    spec = importlib.util.spec_from_loader("dev_script", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    project = '[build-system]\nrequires = []\n[project]\nname = "x"\n[tool.ruff]\nline-length = 1\n'
    (tmp_path / "pyproject.toml").write_text(project)
    (tmp_path / "constraints.txt").write_text("a==1\n")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "VENV", tmp_path / "venv")
    monkeypatch.setattr(module, "STAMP", tmp_path / "venv" / "mqa-ref-stamp")
    return module


def test_help(dev: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert dev.main([]) == 0
    text = capsys.readouterr().out
    assert all(f"  {name} " in text for name in dev.COMMANDS)


@pytest.mark.parametrize(
    ("line", "message"),
    [("nope", "no command 'nope'"), ("lint now", "lint takes no arguments"), ("run", "run needs a command")],
)
def test_bad_arguments(dev: ModuleType, capsys: pytest.CaptureFixture[str], line: str, message: str) -> None:
    assert dev.main(line.split()) == 2
    assert message in capsys.readouterr().err


def test_a_foreign_folder_is_left_alone(dev: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    dev.VENV.mkdir()
    (dev.VENV / "thesis.txt").write_text("years of work")
    assert dev.main(["test"]) == 2
    assert "not a virtual environment" in capsys.readouterr().err
    assert (dev.VENV / "thesis.txt").exists()


def test_a_failing_step_is_told(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dev.sys, "executable", "/bin/false")
    assert dev.main(["test"]) == 1
    assert "could not make a virtual environment" in capsys.readouterr().err
    assert not dev.STAMP.exists()


def test_what_makes_the_environment_stale(dev: ModuleType) -> None:
    first = dev.fingerprint()
    dev.VENV.joinpath("bin").mkdir(parents=True)
    dev.VENV.joinpath("bin", "python").touch()
    assert not dev.up_to_date(first)
    dev.STAMP.write_text(first)
    assert dev.up_to_date(first)
    project = dev.ROOT / "pyproject.toml"
    project.write_text(project.read_text().replace("line-length = 1", "line-length = 2"))
    assert dev.fingerprint() == first
    (dev.ROOT / "constraints.txt").write_text("a==2\n")
    assert not dev.up_to_date(dev.fingerprint())


def test_commands_run_in_the_environment_and_stop_at_the_first_failure(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    dev.VENV.joinpath("bin").mkdir(parents=True)
    dev.VENV.joinpath("bin", "python").touch()
    dev.STAMP.write_text(dev.fingerprint())
    ran: list[list[str]] = []

    def run(command: list[str]) -> int:
        ran.append(command)
        return 5 if command[0] == "mypy" else 0

    monkeypatch.setattr(dev, "run", run)
    assert dev.main(["lint"]) == 5
    assert [command[0] for command in ran] == ["ruff", "ruff", "mypy"]
    ran.clear()
    assert dev.main(["test", "-k", "x"]) == 0
    assert ran == [["python", "-m", "pytest", "-n", "2", "--dist", "loadfile", "-k", "x"]]
