"""The ledger of known findings: what it covers, what it expects, and what is wrong with a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqa_ref.errors import InputError
from mqa_ref.findings import Finding
from mqa_ref.report import CaseResult
from mqa_ref.verification.ledger import Ledger, read_ledger

ENTRY: dict[str, object] = {"id": "a-1", "kernel": "k*", "kind": "hang", "reason": "r", "link": "l"}
HANG = Finding("hang", "error", "stuck", source="kernel.py:120")


def toml(*entries: dict[str, object]) -> str:
    lines = []
    for entry in entries:
        lines.append("[[known]]")
        lines += [f"{name} = {value!r}" for name, value in entry.items()]
    return "\n".join(lines)


def ledger(tmp_path: Path, *entries: dict[str, object]) -> Ledger:
    (tmp_path / "known.toml").write_text(toml(*entries))
    return read_ledger(tmp_path / "known.toml")


@pytest.mark.parametrize(
    ("changed", "covered"),
    [
        ({}, True),
        ({"kernel": "k?.py:K"}, True),
        ({"kernel": "K1.py:K"}, False),
        ({"kernel": ["other", "k?.py:K"]}, True),
        ({"kernel": ["other", "K1.py:K"]}, False),
        ({"kind": "runaway"}, False),
        ({"source": "kernel.py:1??"}, True),
        ({"source": "kernel.py:2*"}, False),
        ({"cases": ["x", "case"]}, True),
        ({"cases": ["x"]}, False),
        ({"cases": ["ca*"]}, True),
    ],
)
def test_what_an_entry_covers(tmp_path: Path, changed: dict[str, object], covered: bool) -> None:
    (marked,) = ledger(tmp_path, {**ENTRY, **changed}).mark("k1.py:K", "case", [HANG])
    assert marked.known == ("a-1" if covered else None)
    assert marked.fails == (not covered)


def test_a_source_pattern_does_not_cover_a_finding_without_source(tmp_path: Path) -> None:
    book = ledger(tmp_path, {**ENTRY, "source": "*"})
    (marked,) = book.mark("k", "case", [Finding("hang", "error", "stuck")])
    assert marked.fails


def result(name: str, *findings: Finding, status: str = "pass") -> CaseResult:
    ran = None if status == "error" else object()
    return CaseResult(name, name, "", {}, "eager", status, 0.0, ran, findings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cases", "results", "unseen"),
    [
        ([], [result("x")], ["a-1"]),
        ([], [result("x"), result("y", HANG)], []),
        ([], [], []),
        ([], [result("x", status="error")], []),
        (["y"], [result("x")], []),
        (["y*"], [result("y-2")], ["a-1"]),
        (["y"], [result("x", HANG), result("y")], ["a-1"]),
        (["y", "z"], [result("x"), result("y", HANG)], []),
        (["y"], [result("y", status="error")], []),
    ],
)
def test_what_an_entry_expects(
    tmp_path: Path, cases: list[str], results: list[CaseResult], unseen: list[str]
) -> None:
    book = ledger(tmp_path, {**ENTRY, "cases": cases})
    assert [entry.id for entry in book.unseen("k", results)] == unseen
    assert book.unseen("other", results) == ()


def test_what_a_run_may_show_or_not_is_never_expected(tmp_path: Path) -> None:
    (tmp_path / "known.toml").write_text(toml(ENTRY) + "\nalways = false\n")
    book = read_ledger(tmp_path / "known.toml")
    assert book.unseen("k", [result("x")]) == ()
    (marked,) = book.mark("k", "x", [HANG])
    assert marked.known == "a-1"


def test_an_entry_in_the_shadow_of_another_is_seen(tmp_path: Path) -> None:
    book = ledger(tmp_path, ENTRY, {**ENTRY, "id": "a-2"})
    assert [finding.known for finding in book.mark("k", "x", [HANG])] == ["a-1"]
    assert book.unseen("k", [result("x", HANG)]) == ()


BAD = {
    "no TOML": ("[[known", ["--known"]),
    "another table": ("[[unknown]]\nid = 'x'", ["unknown"]),
    "a key too many": (toml({**ENTRY, "severity": "x"}), ["known.0.severity"]),
    "keys missing": ("[[known]]\nid = 'x'\nkernel = 'k'\nkind = 'hang'", ["known.0.reason", "known.0.link"]),
    "wrong types": (toml({**ENTRY, "id": 3, "cases": "x"}), ["known.0.id", "known.0.cases"]),
    "empty reason": (toml({**ENTRY, "reason": ""}), ["known.0.reason"]),
    "an id twice": (toml(ENTRY, ENTRY), ["id"]),
}


@pytest.mark.parametrize("name", BAD)
def test_every_fault_of_a_file_is_named(tmp_path: Path, name: str) -> None:
    text, faults = BAD[name]
    (tmp_path / "known.toml").write_text(text)
    with pytest.raises(InputError) as caught:
        read_ledger(tmp_path / "known.toml")
    told = [fault.argument for fault in caught.value.faults]
    assert len(told) == len(faults)
    assert all(
        argument.endswith(wanted) or wanted == "--known"
        for argument, wanted in zip(told, faults, strict=True)
    )


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_file_that_cannot_be_read(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "known.toml").write_bytes(content)
    with pytest.raises(InputError, match="a file that can be read"):
        read_ledger(tmp_path / "known.toml")


@pytest.mark.parametrize(
    ("file", "names", "others"),
    [
        (
            "known-sglang.toml",
            [
                "sglang",
                "cutedsl_fp8_paged_mqa_logits.py:FP8MQALogitsKernel",
                "a/cutedsl_fp8_paged_mqa_logits.py:K",
            ],
            ["builtin", "a/fp8_paged_mqa_logits.py:K", "kernel.py:K", "flashinfer"],
        ),
        (
            "known-flashinfer.toml",
            ["flashinfer", "fp8_paged_mqa_logits.py:K", "/a/b/fp8_paged_mqa_logits.py:K"],
            ["builtin", "a/cutedsl_fp8_paged_mqa_logits.py:K", "kernel.py:K", "sglang"],
        ),
    ],
)
def test_the_ledgers_speak_of_a_copy_under_the_same_name_too(
    file: str, names: list[str], others: list[str]
) -> None:
    entries = read_ledger(Path(__file__).parents[2] / "docs" / file).known
    assert entries
    for entry in entries:
        assert [entry.speaks_of(name) for name in names] == [True] * len(names)
        assert [entry.speaks_of(name) for name in others] == [False] * len(others)


def test_an_entry_of_no_kernel_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="kernel"):
        ledger(tmp_path, {**ENTRY, "kernel": []})
