"""``mqa-ref fuzz`` and ``mqa-ref replay`` on the command line: exit codes, files, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mqa_ref.cli.app import run
from mqa_ref.fuzz.casefile import Case, write_case
from mqa_ref.fuzz.description import Description
from mqa_ref.fuzz.session import subject_of
from mqa_ref.fuzz.shapes import Shape

SMALL = Description(lengths=(3,), shape=Shape(heads=16), data="overflow")


def test_a_short_campaign(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["fuzz", "--flow", "fp32-fp32-fp32", "--max-examples", "3", "--seed", "2", "--order", "eager"]
    words += ["--check", "rerun", "--database", str(tmp_path / "db"), "--json", str(tmp_path / "out.json")]
    assert run([*words, "--report", str(tmp_path / "report")]) == 0
    told = json.loads((tmp_path / "out.json").read_text())
    assert (told["version"], told["status"], told["cases"], told["executed"]) == (1, "pass", 3, 3)
    assert (told["seed"], told["flow"], told["mismatched"], told["findings"]) == (2, "fp32-fp32-fp32", 0, 0)
    assert told["logits"] > 0
    told_in = {"coverpoints.svg", "fuzz.html", "fuzz.json", "fuzz.txt", "properties.svg"}
    assert {one.name for one in (tmp_path / "report").iterdir()} == told_in
    printed = capsys.readouterr().out
    assert "unhit" in printed
    assert printed.splitlines()[-1].startswith("pass: 3 examples")
    assert list((tmp_path / "db").iterdir()) == []


def test_replay_says_whether_it_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The kernel is right for one generation of the ReLU and wrong for the other, where the folded half overflows."""
    subject = subject_of(SMALL)
    right = write_case(tmp_path, Case(subject))
    wrong = write_case(tmp_path, Case(subject, generation="max", failure="bits:inf"))
    assert run(["replay", str(right), "--json", str(tmp_path / "r.json")]) == 0
    assert json.loads((tmp_path / "r.json").read_text())["status"] == "pass"
    assert run(["replay", str(wrong), "--json", str(tmp_path / "w.json")]) == 1
    told = json.loads((tmp_path / "w.json").read_text())
    assert "bits:inf" in {one["class"] for one in told["failures"]}
    assert told["kept_for"] == "bits:inf"
    assert f"REPRO: mqa-ref replay {wrong}" in capsys.readouterr().out
    assert run(["replay", str(wrong), "--generation", "folded"]) == 0


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--time", "soon"], "--time"),
        (["--time", "0s"], "--time"),
        (["--shard", "3/2"], "--shard"),
        (["--max-examples", "0"], "--max-examples"),
        (["--kernel", "no kernel"], "kernel"),
        (["--check", "nothing"], "check"),
        (["--order", "sideways"], "orders"),
        (["--flow", "fp8"], "flow"),
    ],
)
def test_bad_arguments(
    words: list[str], named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["fuzz", "--database", str(tmp_path / "db"), *words]) == 2
    assert named in capsys.readouterr().err
    assert not (tmp_path / "db").exists()


def test_what_is_no_case_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.case"
    file.write_bytes(b"\xff" * 100)
    assert run(["replay", str(file)]) == 2
    assert run(["replay", str(tmp_path / "absent.case")]) == 2
    assert "x.case" in capsys.readouterr().err


def test_without_hypothesis(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert run(["fuzz", "--database", str(tmp_path / "db"), "--max-examples", "1"]) == 4
