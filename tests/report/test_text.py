"""What a person reads: plain in a pipe, with every failure's place and the command that repeats it."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from mqa_ref.report import Report
from mqa_ref.report.text import make_console, render, summary

ReportOf = Callable[..., Report]


def piped(report: Report) -> str:
    stream = io.StringIO()
    render(report, make_console(stream))
    return stream.getvalue()


def test_a_pipe_gets_plain_text_and_whole_lines(report_of: ReportOf) -> None:
    text = piped(report_of("good", "wrong", "hazard", "crashed", "refused"))
    assert "\x1b" not in text
    assert "…" not in text
    assert text.isascii()
    assert "good     300,129    64     32       1     4     429      0         0  0.5  pass" in text


def test_a_failure_has_its_place_its_values_and_its_command(report_of: ReportOf) -> None:
    report = report_of("good", "wrong")
    lines = piped(report).splitlines()
    start = lines.index("FAIL wrong (case id wrong-id): why wrong")
    block = lines[start + 1 :]
    assert block[0] == "  128 of 429 logits are wrong: value 128"
    assert block[1] == "  greatest distance 1 ULP, greatest difference 1.1920928955078125e-07"
    assert block[2] == "  where: every compared element of tile 1 of row 2 and no other"
    assert block[3] == "  suspect: the wrong bits are those of no ReLU"
    assert block[4].startswith("  value: expected 0x3f800000 (1.0), got 0x3f800001")
    assert f"  REPRO: {report.repro(report.case_list[1])}" in block


def test_a_finding_has_its_place_and_notes_come_once(report_of: ReportOf) -> None:
    text = piped(report_of("hazard", "hazard"))
    assert (
        "finding race_shared@st.shared.b32: two warps touch one byte (CTA 3, warp 5, PTX line 120: st.shared.b32"
        in text
    )
    assert "seen 4 times" in text
    assert text.count("note: contractible_mul_add") == 1
    assert "note: contractible_mul_add: ptxas may fuse these [hazard]" in text


def test_the_message_of_a_crash(report_of: ReportOf) -> None:
    assert "  EmulatorError: no such opcode" in piped(report_of("crashed"))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (
            ("good",),
            "pass: 1 cases, 1 interleavings, 4 CTAs, 429 logits compared, 0 mismatched, 0 findings, 1.2 s",
        ),
        (
            ("good", "wrong", "refused"),
            "fail: 3 cases (1 fail, 1 unsupported), 2 interleavings, 12 CTAs, 858 logits compared, 128 mismatched,"
            " 0 findings, 1.2 s",
        ),
        (("crashed",), "error: nothing ran; 1 cases (1 error)"),
        ((), "error: nothing ran; 0 cases"),
    ],
)
def test_the_last_line(report_of: ReportOf, names: tuple[str, ...], expected: str) -> None:
    report = report_of(*names)
    assert summary(report) == expected
    assert piped(report).splitlines()[-1] == expected


def test_a_terminal_gets_colour(report_of: ReportOf) -> None:
    stream = io.StringIO()
    render(report_of("good", "wrong"), Console(file=stream, force_terminal=True, width=120))
    assert "\x1b[" in stream.getvalue()
