"""The command line as a whole: exit codes, messages, and a help text that loads nothing."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from mqa_ref.cli import app
from mqa_ref.cli.app import run
from mqa_ref.errors import EmulatorError, Fault, InputError, NotAvailable, OracleError, Unsupported

HEAVY = ("numpy", "cutlass", "torch", "llvmlite", "rich", "pydantic")


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys; from mqa_ref.cli.app import run; code = run(['--help']);"
        f" print(sorted(set(sys.modules) & set({HEAVY!r})), code)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[] 0"
    for name in ("verify", "compile", "schedule", "selfcheck", "doctor"):
        assert f"  {name} " in done.stdout


def test_python_dash_m_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mqa_ref", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("mqa-ref, version ")


ERRORS: list[tuple[Exception, int, list[str]]] = [
    (
        InputError([Fault("a", "1", "2"), Fault("b", "3", "4")]),
        2,
        ["error: a: got 1, expected 2", "error: b: got 3, expected 4"],
    ),
    (OracleError("twins differ"), 3, ["error: twins differ"]),
    (NotAvailable("no GPU"), 4, ["error: no GPU"]),
    (Unsupported("not yet"), 5, ["error: not yet"]),
    (EmulatorError("no such opcode"), 1, ["error: no such opcode"]),
    (click.Abort(), 130, ["interrupted"]),
]


@pytest.mark.parametrize(("error", "code", "lines"), ERRORS, ids=[type(row[0]).__name__ for row in ERRORS])
def test_the_exit_code_of_each_error(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    code: int,
    lines: list[str],
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setitem(app.cli.commands, "fail", click.Command("fail", callback=fail))
    assert run(["fail"]) == code
    said = capsys.readouterr()
    assert said.err.splitlines() == lines
    assert said.out == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["nope"],
        ["verify", "--nope"],
        ["verify", "--seed", "x"],
        ["schedule"],
        ["selfcheck", "--samples", "0"],
    ],
)
def test_bad_arguments_give_two(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    assert "Error: " in capsys.readouterr().err


@pytest.mark.parametrize("code", [0, 1, 3, 5])
def test_a_command_returns_its_code(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    monkeypatch.setitem(app.cli.commands, "give", click.Command("give", callback=lambda: code))
    assert run(["give"]) == code
