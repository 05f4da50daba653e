"""``verify --report`` and ``--github``, and ``explain``, as commands."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from mqa_ref.cli.app import run
from mqa_ref.errors import NotAvailable
from mqa_ref.flow import Flow
from mqa_ref.fuzz.casefile import Case, write_case
from mqa_ref.fuzz.subject import Subject
from mqa_ref.report.schema import faults_of_json
from mqa_ref.verification.request import by_name

VERIFY = ["verify", "--case", "one-token", "--order", "eager"]
FLOW = Flow.parse("fp32-fp32-fp32")
Say = pytest.CaptureFixture[str]


def test_a_report_of_a_passing_run(tmp_path: Path, capsys: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, summary = tmp_path / "deep" / "report", tmp_path / "summary"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    json_file = tmp_path / "out.json"
    assert run([*VERIFY, "--report", str(folder), "--github", "--json", str(json_file)]) == 0
    assert "::error" not in capsys.readouterr().out
    names = sorted(str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file())
    assert names == [
        "junit.xml",
        "pictures/flow-fp32-fp32-fp32-ratio.svg",
        "pictures/flow-fp32-fp32-fp32-ulp.svg",
        "report.html",
        "report.json",
        "summary.md",
    ]
    told = json.loads((folder / "report.json").read_text())
    assert told == json.loads(json_file.read_text())
    assert faults_of_json(told) == ()
    assert ET.parse(folder / "junit.xml").getroot()[0].get("tests") == "1"
    page = (folder / "report.html").read_text()
    assert "Nothing is wrong" in page
    assert "golden files (SHA-256)" in page
    assert summary.read_text() == "before\n" + (folder / "summary.md").read_text()


def test_a_report_without_its_package_is_refused_before_the_run(
    tmp_path: Path, capsys: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise NotAvailable("an HTML report needs the package jinja2: pip install 'mqa-ref[report]'")

    def never(*arguments: object, **named: object) -> None:
        raise AssertionError("the run began")

    monkeypatch.setattr("mqa_ref.report.html.check_html", missing)
    monkeypatch.setattr("mqa_ref.verification.verify.verify", never)
    assert run([*VERIFY, "--report", str(tmp_path / "report")]) == 4
    assert "mqa-ref[report]" in capsys.readouterr().err
    assert not (tmp_path / "report").exists()


def test_verify_without_a_report_needs_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("jinja2", "markupsafe", "jsonschema", "matplotlib", "hypothesis", "torch"):
        monkeypatch.setitem(sys.modules, name, None)
    assert run(VERIFY) == 0


def test_bad_places_for_a_report(tmp_path: Path, capsys: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    assert run([*VERIFY, "--report", str(file / "report"), "--github"]) == 2
    faults = capsys.readouterr().err.splitlines()
    assert len(faults) == 2
    assert "--report" in faults[0]
    assert "GITHUB_STEP_SUMMARY" in faults[1]


def test_explain_a_named_problem(tmp_path: Path, capsys: Say) -> None:
    file = tmp_path / "explain.json"
    assert run(["explain", "--case", "one-token", "--head", "2", "--json", str(file)]) == 0
    out = capsys.readouterr().out
    assert "row 0 column 0" in out
    assert "none is wrong" in out
    assert "head 2, K step 4" in out
    assert out.splitlines()[-1] == "the kernel agrees with the reference in every step"
    told = json.loads(file.read_text())
    assert faults_of_json(told) == ()
    head = [
        told[name] for name in ("command", "status", "exit_code", "cases", "logits", "mismatched", "parts_at")
    ]
    assert head == ["explain", "pass", 0, 1, 1, 0, None]
    assert (told["case"], told["terms_of_head"], len(told["steps"])) == ("one-token", 2, 453)


def test_explain_a_case_file_that_asks_for_another_tensor_core(tmp_path: Path, capsys: Say) -> None:
    (named,) = by_name(["one-token"])
    path = write_case(tmp_path, Case(Subject(named.problem, FLOW, {}), machine="sm90", message="kept"))
    assert run(["explain", str(path), "--row", "0", "--column", "0"]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert "dot product" in last
    assert "the same codes, summed otherwise" in last
    assert run(["explain", str(path), "--machine", "sm100"]) == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "CASE_FILE or --case: got neither"),
        (["x.case", "--case", "one-token"], "CASE_FILE or --case: got both"),
        (["--case", "no-such"], "one-token"),
        (["--case", "one-token", "--row", "7"], "row"),
        (["--case", "one-token", "--column", "0"], "a row beside it"),
        (["no-such.case"], "no-such.case"),
    ],
)
def test_explain_what_is_not_there(arguments: list[str], text: str, capsys: Say) -> None:
    assert run(["explain", *arguments]) == 2
    assert text in capsys.readouterr().err
