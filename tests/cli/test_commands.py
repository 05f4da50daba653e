"""The commands over stand-ins for the long work: what they pass on, what they print, what they write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mqa_ref.cli.app import run
from mqa_ref.cuda.launch import Settings
from mqa_ref.emulator.engines import Emulation
from mqa_ref.report import Report
from mqa_ref.verification import selfcheck
from mqa_ref.verification import verify as verify_module
from mqa_ref.verification.ledger import Ledger
from mqa_ref.verification.selfcheck import Check, SelfCheck
from mqa_ref.verification.worker import Limits

Say = pytest.CaptureFixture[str]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Replaces the run by an empty report and notes what it was asked for."""
    calls: list[dict[str, Any]] = []

    def verify(kernel: str, on: str, flow: str, problems: Any, **options: Any) -> Report:
        calls.append({"kernel": kernel, "on": on, "flow": flow, "problems": problems, **options})
        return Report(
            kernel, on, flow, options["machine"], options["generation"], "quick", options["seed"], 0.0, ()
        )

    monkeypatch.setattr(verify_module, "verify", verify)
    return calls


def test_verify_passes_everything_on(asked: list[dict[str, Any]], tmp_path: Path, capsys: Say) -> None:
    file, ledger = tmp_path / "report.json", tmp_path / "known.toml"
    ledger.write_text("")
    options = "--kernel some.module:K --on emulator --flow fp32-fp32-fp32 --machine exact --generation max --order lazy"
    options += " --baseline B --force --timeout 7 --memory 3 --expect bound --option small=5 --reruns 11"
    options += " --engine interpreter --sanitizer off"
    code = run(
        [
            "verify",
            *options.split(),
            "--known",
            str(ledger),
            "--order",
            "random",
            "--seed",
            "9",
            "--case",
            "long",
            "--json",
            str(file),
        ]
    )
    assert code == 5
    (call,) = asked
    assert [one.name for one in call.pop("problems")] == ["long"]
    assert call.pop("progress") is None
    assert call.pop("watch") is None
    assert call == {
        "kernel": "some.module:K",
        "on": "emulator",
        "flow": "fp32-fp32-fp32",
        "level": "quick",
        "machine": "exact",
        "generation": "max",
        "expect": "bound",
        "options": {"small": 5},
        "orders": ("lazy", "random"),
        "seed": 9,
        "baseline": "B",
        "known": Ledger(),
        "force": True,
        "limits": Limits(seconds=7.0, memory_bytes=3 << 30),
        "native": Settings(reruns=11),
        "emulation": Emulation("interpreter", sanitize=False),
    }
    told = json.loads(file.read_text())
    assert (told["status"], told["exit_code"], told["kernel"], told["cases"]) == (
        "error",
        5,
        "some.module:K",
        0,
    )
    assert capsys.readouterr().out.splitlines()[-1] == "error: nothing ran; 0 cases"


def test_verify_takes_the_whole_set_by_default(asked: list[dict[str, Any]]) -> None:
    run(["verify"])
    assert (asked[0]["problems"], asked[0]["orders"], asked[0]["kernel"]) == (None, None, "builtin")


def test_verify_names_every_unknown_case(asked: list[dict[str, Any]], capsys: Say) -> None:
    assert run(["verify", "--case", "nope", "--case", "long", "--case", "neither"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in lines] == ["error: case: got 'nope'", "error: case: got 'neither'"]
    assert asked == []


def test_verify_refuses_an_impossible_file_before_it_runs(
    asked: list[dict[str, Any]], tmp_path: Path
) -> None:
    assert run(["verify", "--json", str(tmp_path / "no" / "report.json")]) == 2
    assert asked == []


def test_schedule_shows_and_draws(tmp_path: Path, capsys: Say) -> None:
    drawing = tmp_path / "s.svg"
    assert run(["schedule", "--context-lens", "1, 200,1337", "--num-sms", "4", "--svg", str(drawing)]) == 0
    text = capsys.readouterr().out
    assert "8 of 256 tokens" in text
    assert "row 2 splits" in text
    assert drawing.read_text().lstrip().startswith("<svg")


def test_schedule_names_every_bad_length(capsys: Say) -> None:
    assert run(["schedule", "--context-lens", "1,x,2.5,"]) == 2
    bad = [line.split(",")[0] for line in capsys.readouterr().err.splitlines()]
    assert bad == [
        "error: --context-lens: got 'x'",
        "error: --context-lens: got '2.5'",
        "error: --context-lens: got ''",
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--context-lens", "-3"],
        ["--context-lens", "1", "--num-sms", "0"],
        ["--context-lens", "1", "--form", "x"],
    ],
)
def test_schedule_refuses_what_is_no_launch(arguments: list[str]) -> None:
    assert run(["schedule", *arguments]) == 2


@pytest.mark.parametrize(("differing", "code"), [(0, 0), (2, 3)])
def test_selfcheck_gives_three_on_a_difference(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Say, differing: int, code: int
) -> None:
    checks = (Check("fma_f32", 100, differing, "0x1 against 0x2" if differing else ""),)
    monkeypatch.setattr(selfcheck, "selfcheck", lambda **_: SelfCheck(checks, 0, 0, 0.0))
    file = tmp_path / "self.json"
    assert run(["selfcheck", "--json", str(file)]) == code
    told = json.loads(file.read_text())
    assert (told["exit_code"], told["mismatched"]) == (code, differing)
    assert ("DIFFER: 0x1 against 0x2" in capsys.readouterr().out) == bool(differing)


def test_compile_writes_both_files_and_counts(tmp_path: Path, capsys: Say) -> None:
    assert run(["compile", "--page", "128", "--heads", "32", "--out", str(tmp_path / "new" / "folder")]) == 0
    files = {path.suffix: path for path in (tmp_path / "new" / "folder").iterdir()}
    assert set(files) == {".ptx", ".cubin"}
    assert ".target sm_100a" in files[".ptx"].read_text()
    assert files[".cubin"].read_bytes()[:4] == b"\x7fELF"
    lines = dict([*line.split(maxsplit=3)[:1], line] for line in capsys.readouterr().out.splitlines())
    assert "registers" in lines
    assert int(lines["registers"].split()[-1]) > 0
    assert int(lines["spill"].split()[-1]) == 0
    assert (
        int(lines["PTX"].split("loop")[1].split()[0]) > 32
    )  # a fused multiply-add for every two heads at least


def test_compile_wants_a_folder(capsys: Say) -> None:
    assert run(["compile"]) == 2
    assert capsys.readouterr().err == "error: --out: got nothing, expected a folder\n"


def test_compile_refuses_a_file_as_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert run(["compile", "--out", str(tmp_path / "file")]) == 2
