"""What GitHub Actions shows of a run: a step summary in Markdown, and annotations, one for each cluster of failures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import PurePosixPath

from mqa_ref.report.clusters import Cluster, clusters
from mqa_ref.report.model import Report
from mqa_ref.report.shown import command_message, command_property, markdown, one_line, plain
from mqa_ref.report.text import heading, summary

MOST_BYTES = 1 << 20
"""A step summary must not be larger (GitHub Docs, "Workflow commands: Step isolation and limits")."""
MOST_ANNOTATIONS = 10
"""More errors of one step are not shown (the same page)."""
_MOST_CLUSTERS, _MOST_CASES, _MOST_TEXT = 50, 200, 400


def render_summary(report: Report) -> str:
    """The step summary, below 1 MiB whatever failed: 50 clusters, 200 cases, the rest counted."""
    mark = {"pass": "✅", "fail": "❌", "error": "⚠️"}[report.status]
    found = clusters(report)
    parts = [f"## {mark} {_short(summary(report))}", "", _short(heading(report)), ""]
    parts += _clusters(found)
    parts += _cases(report)
    text = "\n".join([*parts, ""])
    assert len(text.encode()) < MOST_BYTES, "every part has a limit"
    return text


def _clusters(found: Sequence[Cluster]) -> Iterator[str]:
    for one in found[:_MOST_CLUSTERS]:
        yield f"### {_short(one.title)}"
        yield ""
        yield f"{_short(one.message)} ({len(one.cases)} cases, {one.count} in all)"
        yield ""
        yield from (f"- {_short(sentence)}" for sentence in one.where[:8])
        if one.source:
            yield f"- in the kernel's source: {_short(one.source)}"
        if one.repro:
            yield f"\n<pre><code>{escape(one_line(one.repro)[:2000])}</code></pre>"
        yield ""
    if len(found) > _MOST_CLUSTERS:
        yield f"and {len(found) - _MOST_CLUSTERS} clusters more\n"


def _cases(report: Report) -> Iterator[str]:
    bad = [case for case in report.case_list if case.status != "pass"]
    if not bad:
        return
    yield "| case | status | wrong | findings |"
    yield "|---|---|---:|---:|"
    for case in bad[:_MOST_CASES]:
        wrong = case.comparison.mismatched if case.comparison else "-"
        yield f"| {_short(f'{case.name} [{case.order}]')} | {case.status} | {wrong} | {len(case.errors)} |"
    if len(bad) > _MOST_CASES:
        yield f"\nand {len(bad) - _MOST_CASES} more"


def _short(text: str) -> str:
    text = text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + "…"
    return markdown(text)


def render_annotations(report: Report, kernel_file: str | None = None) -> list[str]:
    """Workflow commands, one line each. ``kernel_file``: the path of the kernel's source, for places in it."""
    found = clusters(report)
    lines = [_annotation(one, kernel_file) for one in found[:MOST_ANNOTATIONS]]
    if len(found) > MOST_ANNOTATIONS:
        lines[-1] = (
            f"::error title=mqa-ref::and {len(found) - MOST_ANNOTATIONS + 1} clusters of failures more"
        )
    return lines


def _annotation(one: Cluster, kernel_file: str | None) -> str:
    told = {"title": f"mqa-ref {one.kind}: {one.title}"[:_MOST_TEXT]}
    if one.source is not None:
        file, _, line = one.source.rpartition(":")
        same = kernel_file is not None and PurePosixPath(kernel_file).name == PurePosixPath(file).name
        told |= {"file": kernel_file if same and kernel_file else file, "line": line}
    properties = ",".join(f"{name}={command_property(one_line(value))}" for name, value in told.items())
    text = "\n".join([one.message, *one.where[:3], *([f"REPRO: {one.repro}"] if one.repro else [])])
    return f"::error {properties}::{command_message(plain(text)[:4000])}"
