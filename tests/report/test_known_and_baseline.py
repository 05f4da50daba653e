"""Known findings and a baseline in the verdict, the JSON object and the text."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from mqa_ref.findings import Finding
from mqa_ref.report import BaselineResult, CaseResult, Report
from mqa_ref.report.model import KINDS, KindResult
from mqa_ref.report.schema import faults_of_json
from mqa_ref.report.text import make_console, render

ReportOf = Callable[..., Report]


def piped(report: Report) -> str:
    stream = io.StringIO()
    render(report, make_console(stream))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("finding", "name"),
    [
        (Finding("race_shared", "error", "x", ptx_text="@%p1 st.shared.b32 [%r1], %r2;"), "@st.shared.b32"),
        (Finding("hang", "error", "x", ptx_text="ret;"), "@ret"),
        (Finding("hang", "error", "x", ptx_text="ret;", source="kernel.py:12"), "@kernel.py:12"),
        (Finding("unasked_columns", "info", "x"), ""),
    ],
)
def test_an_id_is_the_kind_and_the_place(finding: Finding, name: str) -> None:
    assert finding.id == f"{finding.kind}{name}"
    assert finding.id == replace(finding, cta=9, warp=3, ptx_line=77, count=5, message="y").id


def test_a_known_finding_fails_nothing_and_is_told(report_of: ReportOf) -> None:
    (case,) = report_of("hazard").case_list
    known = tuple(replace(finding, known="ledger-1") for finding in case.findings)
    report = replace(report_of("hazard"), case_list=(replace(case, status="pass", findings=known),))
    assert (report.status, report.exit_code, report.findings) == ("pass", 0, 0)
    told = json.loads(report.to_json())
    assert (told["findings"], told["known_findings"]) == (0, 2)
    assert [(one["id"], one["known"]) for one in told["finding_ids"]] == [
        ("race_shared@st.shared.b32", "ledger-1"),
        ("contractible_mul_add", "ledger-1"),
    ]
    assert "known (ledger-1): race_shared@st.shared.b32: two warps touch one byte [hazard]" in piped(report)


def test_an_expected_finding_that_is_not_seen_fails(report_of: ReportOf) -> None:
    report = replace(report_of("good"), unseen=(("ledger-2", "hang of any place: bad day"),))
    assert (report.status, report.exit_code) == ("fail", 1)
    assert json.loads(report.to_json())["known_unseen"] == [
        {"id": "ledger-2", "expected": "hang of any place: bad day"}
    ]
    assert "known finding ledger-2 was expected and not seen (hang of any place: bad day)" in piped(report)


def with_baseline(case: CaseResult, baseline: BaselineResult) -> CaseResult:
    return replace(case, baseline=baseline)


def test_a_baseline_decides_nothing_and_is_told_for_each_case_and_over_all(report_of: ReportOf) -> None:
    good, wrong = report_of("good", "wrong").case_list
    cases = (
        with_baseline(good, BaselineResult("bit-identical", "fail", good.comparison, findings=2)),
        with_baseline(good, BaselineResult("different", "fail", wrong.comparison, mismatched=128)),
        with_baseline(good, BaselineResult("not compared", "error", error="KernelDied", message="gone")),
    )
    report = replace(report_of(), case_list=cases, baseline="other.py:K")
    assert (report.status, report.exit_code) == ("pass", 0)
    told = json.loads(report.to_json())
    assert faults_of_json(told) == ()
    kinds = told["baseline"].pop("kinds")
    assert {(one["verdict"], one["compared"], one["smallest"]) for one in kinds} == {
        ("not compared", 0, None)
    }
    assert told["baseline"] == {
        "kernel": "other.py:K",
        "verdict": "different",
        "logits": 2 * 429,
        "differing": 128,
        "max_ulp": 1,
        "cases": {"bit-identical": 1, "within tolerance": 0, "different": 1, "not compared": 1},
        "mismatched": 128,
        "findings": 2,
        "cases_status": {"fail": 2, "error": 1},
    }
    assert [case["baseline"]["verdict"] for case in told["case_list"]] == [
        *("bit-identical", "different", "not compared"),
    ]
    assert told["case_list"][1]["baseline"]["difference"]["first"][0]["row"] == 2
    text = piped(report)
    assert "kernel builtin, baseline other.py:K" in text
    assert "  128 of 429 logits differ from the baseline's" in text
    assert "  baseline's own KernelDied: gone" in text
    assert "baseline other.py:K: different on valid logits, 128 of 858 differ" in text
    assert "--baseline other.py:K" in report.repro(cases[0])


def test_kinds_are_added_up_and_the_smallest_case_that_differs_is_named(report_of: ReportOf) -> None:
    good, wrong = report_of("good", "wrong").case_list
    big, small = ({**good.shape, "lengths": lengths} for lengths in ([300, 7], [5]))
    first = (
        KindResult("ordinary data", 100, 0),
        KindResult("pages behind the length", 10, 4, 1, "row 0 column 64"),
    )
    second = (KindResult("pages behind the length", 20, 5, 0, "row 1 column 80"),)
    cases = (
        replace(good, shape=big, baseline=BaselineResult("bit-identical", "pass", kinds=first)),
        replace(wrong, shape=small, baseline=BaselineResult("bit-identical", "pass", kinds=second)),
    )
    report = replace(report_of(), case_list=cases, baseline="other.py:K")
    kinds = {one["kind"]: one for one in json.loads(report.to_json())["baseline"]["kinds"]}
    assert list(kinds) == list(KINDS)
    assert kinds["ordinary data"] == {
        "kind": "ordinary data",
        "verdict": "bit-identical",
        "compared": 100,
        "differing": 0,
        "alone": 0,
        "smallest": None,
    }
    assert kinds["NaN codes"]["verdict"] == "not compared"
    behind = kinds["pages behind the length"]
    assert [behind[name] for name in ("verdict", "compared", "differing", "alone")] == ["different", 30, 9, 1]
    assert behind["smallest"] == {
        "case": "wrong",
        "first": "row 1 column 80",
        "repro": report.repro(cases[1]),
    }
    text = piped(report)
    assert re.search(r"ordinary data: +bit-identical, 100\n", text)
    assert re.search(
        r"pages behind the length: +different, 9 of 30 differ, 1 written by one kernel alone\n", text
    )
    assert "smallest: wrong, row 1 column 80" in text
    assert "NaN codes:" not in text


def test_nothing_compared_is_no_verdict(report_of: ReportOf) -> None:
    (good,) = report_of("good").case_list
    case = with_baseline(good, BaselineResult("not compared", "error", error="KernelDied"))
    report = replace(report_of(), case_list=(case,), baseline="x")
    assert report.as_dict()["baseline"]["verdict"] == "not compared"
