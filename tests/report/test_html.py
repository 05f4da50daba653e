"""The HTML page, without a browser: parsed, counted, measured."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from mqa_ref.compare.classes import KINDS, code
from mqa_ref.errors import NotAvailable
from mqa_ref.report import Report
from mqa_ref.report.evidence import CaseEvidence, Evidence, FlowEvidence, Histogram, Matrix
from mqa_ref.report.html import render_html
from mqa_ref.schedule import build

ReportOf = Callable[..., Report]
HOSTILE = "<script>alert(1)</script>\"' onload=x ]]>\n\x1b[31m\x00{{ 7 * 7 }}"
VOID = {"meta", "br", "link", "img", "input", "hr"}
COUNTS = Histogram("Distance in ULP", ("0", "1", "2"), (100, 0, 3))
TIMELINE = {
    "cta": 3,
    "end": 100,
    "runs": [[0, 0, 50], [1, 50, 60]],
    "waits": [[0, 50, None, f"an mbarrier {HOSTILE}", 7, "kernel.py:9"], [1, 60, 80, "another", 8, None]],
    "operations": [["copy", 0, 10, 20, 5], ["product", 1, 55, None, 6]],
    "arrivals": [[1, 58, 7]],
    "ends": [
        {"warp": 0, "state": f"waits for {HOSTILE}", "instructions": 50, "ptx_line": 7, "source": HOSTILE},
        {"warp": 1, "state": "ended", "instructions": 10, "ptx_line": None, "source": None},
    ],
    "dropped": 2,
}
VALUE = {
    "bits": "0x3f800000",
    "value": 1.0,
    "how": HOSTILE,
    "ptx_line": 3,
    "ptx_text": HOSTILE,
    "source": HOSTILE,
}
STEPS = [{"name": HOSTILE, "heads": [0], "reference": VALUE, "kernel": None, "agrees": False}] * 30
EXPLANATION = {"row": 2, "column": 128, "expected": "0x3f800000", "actual": None, "parts_at": 20}
EXPLANATION |= {"verdict": HOSTILE, "steps": STEPS}


class Page(HTMLParser):
    """What a page holds: ids, addresses, tags, text, and elements that are not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self.named: set[str] = set()
        self.images: list[dict[str, str | None]] = []
        self.events: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        self.tags.append(tag)
        self.ids += [str(value) for name, value in attrs if name == "id"]
        self.addresses += [
            str(value) for name, value in attrs if name in ("href", "src", "action", "data", "xlink:href")
        ]
        self.events += [name for name, _ in attrs if name.startswith("on")]
        if tag in ("svg", "img"):
            self.images.append(told)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        self.text += data


def evidence_of(
    name: str, rows: int = 3, columns: int = 300, wrong: int = 100, explain: bool = True
) -> CaseEvidence:
    kinds = np.full((rows, columns), -1, np.int8)
    kinds.reshape(-1)[:wrong] = np.arange(wrong) % len(KINDS)
    lengths = np.full(rows, columns, np.int32)
    owner = np.zeros((rows, -(-columns // 256)), np.int64)
    return CaseEvidence(
        *(name, "eager", 3, "fp32-fp32-fp32", build(lengths, 2), lengths),
        matrix=Matrix(kinds, np.full(rows, columns, np.int64), owner, 64, 1),
        ulp=COUNTS,
        timeline=TIMELINE,
        explanation=EXPLANATION if explain else None,
    )


def whole(report_of: ReportOf) -> tuple[Report, Evidence]:
    report = report_of("good", "wrong", "hazard", "crashed", "refused")
    flow = FlowEvidence("fp32-fp32-fp32", 103, COUNTS, replace(COUNTS, title="Bound ratio"))
    return report, Evidence((evidence_of("wrong"), evidence_of("hazard")), (flow,), 4, {"golden": "abc"})


def test_a_page_is_well_formed_and_asks_for_nothing(report_of: ReportOf) -> None:
    text = render_html(*whole(report_of), extra=[("Mutants", "<svg><title>t</title></svg>")])
    page = Page(text)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids)) > 15
    assert page.addresses
    assert all(address.startswith("#") and address[1:] in page.ids for address in page.addresses)
    assert not {"script", "link", "iframe", "img", "object", "embed", "base", "form"} & set(page.tags)
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", text)
    assert "default-src &#39;none&#39;" in text or "default-src 'none'" in text


def test_every_picture_has_a_name_and_every_table_a_caption(report_of: ReportOf) -> None:
    text = render_html(*whole(report_of))
    page = Page(text)
    assert len(page.images) == 2 * 4 + 2
    for image in page.images:
        names = str(image["aria-labelledby"]).split()
        assert image["role"] == "img"
        assert names
        assert set(names) <= set(page.ids)
    assert page.tags.count("caption") == page.tags.count("table") >= 4
    scrolls = re.findall(r'<div class="scroll[^>]*>', text)
    assert scrolls
    assert all('tabindex="0"' in one and "aria-label=" in one for one in scrolls)
    assert text.startswith('<!doctype html>\n<html lang="en">')


def test_what_it_tells(report_of: ReportOf) -> None:
    text = Page(render_html(*whole(report_of))).text
    for words in (
        "128 of 429 logits of wrong are wrong",
        "two warps touch one byte",
        "no such opcode",
        "every compared element of tile 1 of row 2 and no other",
        "mqa-ref verify --kernel builtin",
        "mqa-ref explain --case wrong --kernel builtin",
        "4 more failing cases have no pictures here",
        "no such step",
        "3.11.7",
        "abc",
    ):
        assert words in text, words


def test_a_passing_page(report_of: ReportOf) -> None:
    page = Page(render_html(report_of("good"), Evidence(hashes={"tolerances.toml": "123"})))
    assert "Nothing is wrong" in page.text
    assert "All 429 valid logits of 1 launches have the bits" in page.text
    assert "tolerances.toml" in page.text
    nothing = Page(render_html(report_of("refused"), Evidence()))
    assert "Nothing ran" in nothing.text


def test_hostile_text_is_text(report_of: ReportOf) -> None:
    report, evidence = whole(report_of)
    cases = [replace(one, why=HOSTILE, message=HOSTILE if one.message else "") for one in report.case_list]
    cases[1] = replace(cases[1], name=HOSTILE)
    report = replace(report, kernel=HOSTILE, case_list=tuple(cases), environment={HOSTILE: HOSTILE})
    evidence = replace(evidence, cases=(replace(evidence.cases[0], name=HOSTILE), evidence.cases[1]))
    text = render_html(report, evidence)
    page = Page(text)
    assert (page.open, page.events) == ([], [])
    assert "script" not in page.tags
    assert "<script>alert(1)</script>" in page.text
    assert "{{ 7 * 7 }}" in page.text
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", text)


def test_a_large_failure_stays_small(report_of: ReportOf) -> None:
    """Outputs of 2048 x 8192 with 10,000 and with all elements wrong, and 1500 cases."""
    report = report_of("wrong")
    (case,) = report.case_list
    cases = [replace(case, name=f"case-{n}") for n in range(1500)]
    shown = [evidence_of(f"case-{n}", 2048, 8192, 10_000 if n else 2048 * 8192, n == 0) for n in range(3)]
    text = render_html(replace(report, case_list=tuple(cases)), Evidence(tuple(shown)))
    assert len(text.encode()) < 5_000_000
    assert "And 1000 more cases" in text


def test_without_jinja2(report_of: ReportOf, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == "jinja2":
            raise ImportError("no jinja2")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(NotAvailable, match=r"mqa-ref\[report\]"):
        render_html(report_of("good"), Evidence())


def test_the_classes_have_colours() -> None:
    from mqa_ref.report.pictures.svg import COLOURS

    assert sorted(COLOURS, key=code) == list(KINDS)  # type: ignore[arg-type]
