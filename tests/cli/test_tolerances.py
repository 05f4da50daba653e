"""The command ``tolerances`` on a command line: what it prints, what it writes, its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mqa_ref.cli.app import run
from mqa_ref.compare.tolerances import read
from mqa_ref.flow import FLOWS

Say = pytest.CaptureFixture[str]
SMALL = ["--elements", "1000", "--flow", "fp32-fp32-fp16"]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("derived") / "tolerances.toml"
    assert (
        run(["tolerances", "derive", "--elements", "4000", "--flow", "fp32-fp32-fp16", "--out", str(path)])
        == 0
    )
    return path


def test_show_prints_every_row(capsys: Say, tmp_path: Path) -> None:
    out = tmp_path / "shown.json"
    assert run(["tolerances", "show", "--json", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 3 * len(FLOWS)
    assert [line.split()[:2] for line in lines[1:4]] == [
        ["fp32-fp32-fp32", "same_model"],
        ["fp32-fp32-fp32", "exact"],
        ["fp32-fp32-fp32", "foreign_order"],
    ]
    assert lines[1].split()[2:4] == ["0", "bits"]
    assert json.loads(out.read_text())["flows"]["fp16-fp16-bf16"]["same_model"]["bits"] == 0


def test_show_of_one_flow(capsys: Say) -> None:
    assert run(["tolerances", "show", "--flow", "fp16-fp16-fp16"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_derive_prints_and_writes_the_same(file: Path, capsys: Say, tmp_path: Path) -> None:
    again, out = tmp_path / "again.toml", tmp_path / "again.json"
    assert run(["tolerances", "derive", *SMALL, "--seed", "5", "--out", str(again), "--json", str(out)]) == 0
    assert capsys.readouterr().out == again.read_text()
    assert list(read(again).flows) == list(read(file).flows) == ["fp32-fp32-fp16"]
    assert json.loads(out.read_text())["seed"] == read(again).seed == 5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.json", "again.toml"]


def test_check_passes_and_fails(file: Path, capsys: Say, tmp_path: Path) -> None:
    out = tmp_path / "check.json"
    assert run(["tolerances", "check", *SMALL, "--file", str(file), "--json", str(out)]) == 0
    assert capsys.readouterr().out.startswith("pass: 3 rows, ")
    told = json.loads(out.read_text())
    assert (told["version"], told["status"], told["exit_code"], told["cases"]) == (1, "pass", 0, 3)
    assert (told["flow"], told["mismatched"], told["findings"]) == ("fp32-fp32-fp16", 0, 0)
    assert told["logits"] > 5_000

    text = file.read_text()
    first, last = text.split('[flows."fp32-fp32-fp16".foreign_order]')
    broken = tmp_path / "broken.toml"
    broken.write_text(first)
    assert last
    assert run(["tolerances", "check", *SMALL, "--file", str(broken), "--json", str(out)]) == 1
    assert capsys.readouterr().out.splitlines()[0] == (
        "fp32-fp32-fp16 foreign_order: missing: there is no such row"
    )
    told = json.loads(out.read_text())
    assert (told["status"], told["exit_code"], told["findings"]) == ("fail", 1, 1)
    assert told["fault_list"][0]["fault"] == "missing"


@pytest.mark.parametrize(
    "words",
    [
        ["show", "--file", "nowhere.toml"],
        ["show", "--flow", "fp8-fp8-fp8"],
        ["check", "--elements", "0"],
        ["derive", "--seed", "-1"],
        ["derive", "--out", "no/such/folder/file.toml"],
    ],
)
def test_bad_input_is_exit_code_2(words: list[str], capsys: Say) -> None:
    assert run(["tolerances", *words]) == 2
    assert capsys.readouterr().err
