"""Which pictures a report has, and under which names; the same go into the page and into files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mqa_ref.report.evidence import CaseEvidence, FlowEvidence
from mqa_ref.report.pictures import render_histogram, render_matrix, render_timeline
from mqa_ref.schedule import render_svg


@dataclass(frozen=True)
class Picture:
    """``name``: of its file and its ids. ``svg``: a whole SVG file."""

    name: str
    title: str
    svg: str


def case_pictures(case: CaseEvidence, name: str) -> Iterator[Picture]:
    """The pictures of one case; ``name`` is unique in the report."""
    if case.matrix is not None:
        title = f"Mismatch map of {case.title}, {case.flow}"
        yield Picture(f"{name}-map", title, render_matrix(f"{name}-map", title, case.matrix))
    if case.ulp is not None:
        yield Picture(f"{name}-ulp", case.ulp.title, render_histogram(f"{name}-ulp", case.ulp))
    if case.timeline is not None:
        title = f"Warps of CTA {case.timeline['cta']} of {case.title}"
        yield Picture(f"{name}-warps", title, render_timeline(f"{name}-warps", title, case.timeline))
    title = f"Schedule of {case.title}"
    yield Picture(f"{name}-schedule", title, render_svg(case.schedule, case.lengths, f"{name}-schedule"))


def flow_pictures(flow: FlowEvidence) -> Iterator[Picture]:
    """The two histograms of a flow."""
    stem = re.sub(r"[^a-z0-9]+", "-", flow.flow)
    for kind, histogram in (("ulp", flow.ulp), ("ratio", flow.ratio)):
        name = f"flow-{stem}-{kind}"
        yield Picture(name, histogram.title, render_histogram(name, histogram))
