"""The report as one HTML file that needs nothing else: no script, no request, pictures inside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from mqa_ref.errors import NotAvailable
from mqa_ref.report.clusters import Cluster, clusters
from mqa_ref.report.drawn import Picture, case_pictures, flow_pictures
from mqa_ref.report.evidence import CaseEvidence, Evidence
from mqa_ref.report.model import CaseResult, Report
from mqa_ref.report.shown import one_line, plain, xml
from mqa_ref.report.text import heading, summary
from mqa_ref.report.values import finding_ids

MOST_PICTURE_BYTES = 1_000_000
"""Pictures in the page, together: a browser opens it in less than two seconds. Others are only files."""
_MOST_CLUSTERS, _MOST_CASES, _MOST_LENGTHS, _AROUND = 60, 500, 24, 6


def check_html() -> None:
    """Raises NotAvailable when the package that fills the template is not installed."""
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        raise NotAvailable(
            "an HTML report needs the package jinja2: pip install 'mqa-ref[report]'"
        ) from error


def render_html(report: Report, evidence: Evidence, extra: Sequence[tuple[str, str]] = ()) -> str:
    """The page. ``extra``: further pictures, (title, SVG text). Everything that comes from outside is escaped. Raises
    NotAvailable without jinja2."""
    check_html()
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=_shown,
        keep_trailing_newline=True,
    )
    folder = files("mqa_ref.report") / "templates"
    template = environment.from_string((folder / "report.html.j2").read_text(encoding="utf-8"))
    style = (folder / "report.css").read_text(encoding="utf-8")
    found = clusters(report)
    ids = _ids(evidence.cases)
    room = _Room()
    flows = [room.figure(one) for flow in evidence.flows for one in flow_pictures(flow)]
    told = {
        "title": f"{report.status}, {report.kernel}",
        "style": Markup(style),
        "report": report,
        "summary": summary(report),
        "heading": heading(report),
        "contents": _contents(found, evidence, bool(flows), extra),
        "cards": _cards(report),
        "clusters": [_cluster(one, report, ids) for one in found[:_MOST_CLUSTERS]],
        "more_clusters": max(0, len(found) - _MOST_CLUSTERS),
        "nothing": _nothing(report),
        "pages": [_page(one, report, ids, room) for one in evidence.cases],
        "left_out": evidence.left_out,
        "findings": _findings(report),
        "flows": flows,
        "extra": [
            {
                "id": f"extra-{number}",
                "title": title,
                "picture": room.figure(Picture(f"extra-{number}", title, svg)),
            }
            for number, (title, svg) in enumerate(extra)
        ],
        "cases": [_case(report, case) for case in _first(report)],
        "more_cases": max(0, len(report.case_list) - _MOST_CASES),
        "environment": [*report.environment.items(), *evidence.hashes.items()],
    }
    return template.render(told)


def _shown(value: Any) -> Any:
    """What a template prints: text without control characters."""
    return xml(plain(value)) if type(value) is str else value


def _contents(
    found: Sequence[Cluster], evidence: Evidence, flows: bool, extra: Sequence[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    yield "failures", "What is wrong" if found else "Verdict"
    if evidence.cases:
        yield "pictures", "Failing cases"
    if flows:
        yield "flows", "Distances"
    yield from ((f"extra-{number}", title) for number, (title, _) in enumerate(extra))
    yield "cases", "What was verified"
    yield "environment", "Made with"


def _cards(report: Report) -> list[tuple[str, Any]]:
    names = ["flow", "machine", "generation", "level", "seed", "cases", "interleavings", "ctas", "logits"]
    names += ["mismatched", "findings"]
    told = [(name, getattr(report, name)) for name in names]
    return [*told, ("seconds", f"{report.seconds:.1f}")]


def _nothing(report: Report) -> str:
    if report.executed == 0:
        return "Nothing ran, so nothing is known."
    return (
        f"All {report.logits} valid logits of {report.executed} launches have the bits that the reference gives, and"
        " no hazard was seen."
    )


def _cluster(one: Cluster, report: Report, ids: Mapping[tuple[str, str, int], str]) -> dict[str, Any]:
    case = None if one.first is None else report.case_list[one.first]
    link = None if case is None else ids.get((case.name, case.order, case.seed))
    command = "" if case is None or one.kind != "mismatch" else report.explain_command(case)
    told = {name: getattr(one, name) for name in Cluster.__dataclass_fields__}
    return {**told, "case_link": link, "explain": command}


def _ids(cases: Sequence[CaseEvidence]) -> dict[tuple[str, str, int], str]:
    return {(one.name, one.order, one.seed): f"case-{number}" for number, one in enumerate(cases)}


def _page(
    one: CaseEvidence, report: Report, ids: Mapping[tuple[str, str, int], str], room: _Room
) -> dict[str, Any]:
    name = ids[one.name, one.order, one.seed]
    case = next(c for c in report.case_list if (c.name, c.order, c.seed) == (one.name, one.order, one.seed))
    first = case.comparison.first if case.comparison else ()
    return {
        "id": name,
        "title": one.title,
        "why": case.why,
        "pictures": [room.figure(picture) for picture in case_pictures(one, name)],
        "first": [
            (
                m.kind,
                f"{m.expected} ({m.expected_value!r})",
                f"{m.actual} ({m.actual_value!r})",
                m.ulp,
                str(m.place),
            )
            for m in first
        ],
        "explained": None if one.explanation is None else _explained(one.explanation),
    }


class _Room:
    """Takes pictures into the page as long as there is room."""

    def __init__(self) -> None:
        self.left = MOST_PICTURE_BYTES

    def figure(self, picture: Picture) -> dict[str, Any]:
        """What the template shows; without room only where the picture lies."""
        from markupsafe import Markup

        size = len(picture.svg.encode())
        if size > self.left:
            return {"title": picture.title, "svg": f"Too large for this page: pictures/{picture.name}.svg"}
        self.left -= size
        return {"title": picture.title, "svg": Markup(picture.svg)}


def _explained(told: Mapping[str, Any]) -> dict[str, Any]:
    rows = [_step(row, number == told["parts_at"]) for number, row in enumerate(told["steps"])]
    at = told["parts_at"] or 0
    near = rows[max(0, at - _AROUND) : at + _AROUND]
    near += [] if rows[-1] in near else rows[-1:]
    names = ("row", "column", "verdict", "expected")
    plain_told = {name: told[name] for name in names}
    return {
        **plain_told,
        "actual": told["actual"] or "nothing",
        "count": len(rows),
        "near": near,
        "all": rows,
    }


def _step(row: Mapping[str, Any], parts: bool) -> dict[str, Any]:
    sides: dict[str, Any] = {}
    for side in ("reference", "kernel"):
        value = row[side]
        sides[side] = "no such step" if value is None else f"{value['bits']} = {value['value']!r}"
        sides[f"{side}_how"] = "" if value is None else value["how"]
    kernel = row["kernel"] or {}
    place = [f"PTX line {kernel['ptx_line']}"] if kernel.get("ptx_line") is not None else []
    place += [kernel["source"]] if kernel.get("source") else []
    return {"name": row["name"], "parts": parts, "place": ", ".join(place), **sides}


def _findings(report: Report) -> list[tuple[Any, ...]]:
    return [
        (one["id"], one["severity"], one["known"] or "", one["message"], len(one["cases"]))
        for one in finding_ids(report)
    ]


def _first(report: Report) -> Sequence[CaseResult]:
    """As many cases as are shown, in order; where there are more, those that did not pass come before the others."""
    cases = report.case_list
    if len(cases) > _MOST_CASES:
        cases = tuple(sorted(cases, key=lambda case: case.status == "pass"))
    return cases[:_MOST_CASES]


def _case(report: Report, case: CaseResult) -> tuple[Any, ...]:
    lengths = case.shape["lengths"]
    shown = ", ".join(str(length) for length in lengths[:_MOST_LENGTHS])
    shown += f" and {len(lengths) - _MOST_LENGTHS} more" if len(lengths) > _MOST_LENGTHS else ""
    compared = case.comparison
    return (
        one_line(f"{case.name} [{case.order}]"),
        case.shape.get("flow", report.flow),
        shown,
        *(case.shape[name] for name in ("page", "heads", "next_n", "num_sms")),
        compared.compared if compared else "-",
        compared.mismatched if compared else "-",
        len(case.errors),
        f"{case.seconds:.1f}",
        case.status,
    )
