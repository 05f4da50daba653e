"""The report of a campaign as one HTML page that needs nothing else: no script, no request, its pictures inside."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from importlib.resources import files

from mqa_ref.fuzz.report import FuzzReport, Reported, lines, summary
from mqa_ref.report.pictures import render_counts
from mqa_ref.report.shown import plain


def pictures(report: FuzzReport) -> dict[str, str]:
    """SVG by file name: launches that met each coverpoint, the unmet ones marked, and how often each property was
    judged."""
    met = [(name, report.totals.coverage.get(name, 0)) for name in report.coverpoints]
    judged = sorted(report.totals.properties.items())
    return {
        "coverpoints.svg": render_counts("coverpoints", "Launches that met each coverpoint", met),
        "properties.svg": render_counts("properties", "How often each property was judged", judged),
    }


def page(report: FuzzReport) -> str:
    """The page."""
    style = (files("mqa_ref.report") / "templates" / "report.css").read_text(encoding="utf-8")
    return "\n".join([*_head(report, style), *_body(report), "</main>", "</body>", "</html>", ""])


def _head(report: FuzzReport, style: str) -> Iterator[str]:
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    kernel = _text(report.campaign.kernel)
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="color-scheme" content="light dark">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    yield f"<title>mqa-ref fuzz: {report.status}, {kernel}</title><style>{style}</style></head><body>"
    yield f'<header><p class="badge {report.status}">{report.status}</p>'
    yield f'<h1>{kernel} <span class="soft">on {_text(report.campaign.backend)}</span></h1>'
    yield f'<p>{_text(summary(report))}</p></header><main id="main">'


def _body(report: FuzzReport) -> Iterator[str]:
    for one in report.reported:
        yield from _failure(report, one)
    for name, found in report.saved.items():
        yield f"<h2>Still fails: {_text(name)}</h2><p>{_text(', '.join(one.name for one in found))}</p>"
        yield f"<pre>{_text(report.repro(name))}</pre>"
    for name, svg in pictures(report).items():
        yield f'<figure><div class="scroll picture" role="region" tabindex="0" aria-label="{name}">{svg}</div></figure>'
    told = "\n".join(lines(report))
    yield f"<details><summary>All of it as text</summary><pre>{_text(told)}</pre></details>"


def _failure(report: FuzzReport, one: Reported) -> Iterator[str]:
    yield f"<h2>{_text(one.found.name)}, in {one.count} examples</h2><p>{_text(one.found.message)}</p>"
    if one.shape:
        yield f"<p>Smallest: {_text(one.shape)}</p>"
    if one.path is not None:
        yield f"<pre>{_text(report.repro(one.path))}</pre>"


def _text(text: str) -> str:
    return escape(plain(text))
