"""JUnit XML, the step summary and the annotations, of ordinary, hostile and enormous reports."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from mqa_ref.report import CaseResult, Report
from mqa_ref.report.clusters import clusters
from mqa_ref.report.github import MOST_ANNOTATIONS, MOST_BYTES, render_annotations, render_summary
from mqa_ref.report.junit import render_junit
from mqa_ref.report.text import make_console, render

ReportOf = Callable[..., Report]
HOSTILE = "<script>alert(1)</script>]]>\n::error::x\x1b[31m|`*%0A\x00"


@pytest.fixture
def hostile(report_of: ReportOf) -> Report:
    """Every text that comes from outside is hostile."""
    report = report_of("good", "wrong", "hazard", "crashed", "refused")
    cases = []
    for case in report.case_list:
        told: dict[str, Any] = {
            "name": HOSTILE + case.name,
            "why": HOSTILE,
            "message": HOSTILE if case.message else "",
        }
        findings = tuple(replace(one, message=HOSTILE, source=HOSTILE + ":7") for one in case.findings)
        compared = case.comparison
        if compared is not None and not compared.equal:
            compared = replace(compared, suspects=(HOSTILE,), where=(HOSTILE,))
        cases.append(replace(case, **told, findings=findings, comparison=compared))
    return replace(report, kernel=HOSTILE, case_list=tuple(cases), environment={"python": HOSTILE})


def many(report_of: ReportOf, count: int) -> Report:
    """A report in which everything fails, each case in its own way."""
    report = report_of("crashed")
    (case,) = report.case_list
    cases = [replace(case, name=f"case {n}" * 20, message=f"{n} " + HOSTILE * 200) for n in range(count)]
    return replace(report, case_list=tuple(cases))


def test_clusters(report_of: ReportOf) -> None:
    found = clusters(report_of("good", "wrong", "hazard", "crashed", "refused", "wrong"))
    assert [(one.kind, one.title, one.count, one.cases, one.first) for one in found] == [
        ("mismatch", "no ReLU", 256, ("wrong",), 1),
        ("finding", "race_shared@st.shared.b32", 4, ("hazard",), 2),
        ("error", "EmulatorError", 1, ("crashed",), 3),
    ]
    assert all(one.repro.startswith("mqa-ref verify ") for one in found)


def test_a_known_finding_that_was_not_seen_is_a_cluster(report_of: ReportOf) -> None:
    (one,) = clusters(replace(report_of("good"), unseen=(("MQA-1", "race_shared of any place"),)))
    assert (one.kind, one.title, one.cases) == ("not seen", "MQA-1", ())


def test_junit(report_of: ReportOf) -> None:
    root = ET.fromstring(render_junit(report_of("good", "wrong", "hazard", "crashed", "refused")))
    (suite,) = root
    counts = [suite.get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert counts == ["5", "2", "1", "1"]
    cases = {one.get("name"): [child.tag for child in one] for one in suite.findall("testcase")}
    assert cases == {
        "good [eager]": [],
        "wrong [eager]": ["failure"],
        "hazard [eager]": ["failure"],
        "crashed [eager]": ["error"],
        "refused [eager]": ["skipped"],
    }
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.get("message") == "128 wrong logits, 0 findings"
    assert "suspect: the wrong bits are those of no ReLU" in (failure.text or "")
    assert "REPRO: mqa-ref verify" in (failure.text or "")


def test_junit_of_hostile_text(hostile: Report) -> None:
    text = render_junit(hostile)
    root = ET.fromstring(text)
    names = [one.get("name") for one in root.iter("testcase")]
    assert names[0] == "<script>alert(1)</script>]]>\n| ::error::x\\x1b[31m|`*%0A\\x00good [eager]"
    assert root.find(".//script") is None
    assert "<script>" not in text


def test_summary(report_of: ReportOf) -> None:
    text = render_summary(report_of("good", "wrong", "hazard"))
    assert text.startswith("## ❌ fail\\: 3 cases")
    assert "### no ReLU" in text
    assert "| wrong \\[eager\\] | fail | 128 | 0 |" in text
    assert "mqa-ref verify --kernel builtin" in text
    assert render_summary(report_of("good")).startswith("## ✅ pass\\: 1 cases")


def test_summary_of_hostile_text(hostile: Report) -> None:
    text = render_summary(hostile)
    assert "<script" not in text
    assert "\x1b" not in text
    assert not re.search(r"^\s*::", text, re.MULTILINE)
    table = [line for line in text.splitlines() if line.startswith("| ")]
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 5 for line in table)
    assert len(table) >= 5


def test_summary_and_annotations_of_ten_thousand_failures(report_of: ReportOf) -> None:
    report = many(report_of, 10_000)
    assert 10_000 < len(render_summary(report).encode()) < MOST_BYTES
    lines = render_annotations(report)
    assert len(lines) == MOST_ANNOTATIONS
    assert lines[-1] == "::error title=mqa-ref::and 9991 clusters of failures more"


def test_annotations(report_of: ReportOf) -> None:
    report = report_of("wrong", "hazard")
    (case,) = [one for one in report.case_list if one.name == "hazard"]
    placed = replace(case, findings=(replace(case.findings[0], source="kernel.py:1180"),))
    lines = render_annotations(replace(report, case_list=(report.case_list[0], placed)), "my/kernel.py")
    assert len(lines) == 2
    assert lines[0].startswith(
        "::error title=mqa-ref mismatch%3A no ReLU::128 of 429 logits of wrong are wrong"
    )
    assert lines[1].startswith(
        "::error title=mqa-ref finding%3A race_shared@kernel.py%3A1180,file=my/kernel.py,line=1180::"
    )
    elsewhere = render_annotations(replace(report, case_list=(placed,)), "my/other.py")
    assert ",file=kernel.py,line=1180::" in elsewhere[0]


def test_annotations_of_hostile_text_stay_one_line_each(hostile: Report) -> None:
    for line in render_annotations(hostile):
        assert re.fullmatch(r"::error [^\r\n]*?::[^\r\n]*", line)
        assert "\x1b" not in line
        properties = line.split("::")[1]
        assert all(re.fullmatch(r"(error )?(title|file|line)=[^:,]*", one) for one in properties.split(","))


def test_the_terminal_shows_hostile_text_as_text(hostile: Report, capsys: pytest.CaptureFixture[str]) -> None:
    render(hostile, make_console())
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\x00" not in out
    assert "\\x1b[31m" in out
    assert not re.search(r"^\s*(::|##\[)", out, re.MULTILINE)


def test_an_unsupported_case_is_no_failure(report_of: ReportOf) -> None:
    case: CaseResult = report_of("refused").case_list[0]
    assert case.status == "unsupported"
    assert clusters(report_of("refused")) == ()
