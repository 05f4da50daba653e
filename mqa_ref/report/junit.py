"""The report as JUnit XML, the form that CI services read: a suite, a test case for each case."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement, indent, tostring

from mqa_ref.report.model import CaseResult, Report
from mqa_ref.report.shown import plain, xml
from mqa_ref.report.text import failure_lines


def render_junit(report: Report) -> str:
    """One XML document. Wrong elements and findings are failures, exceptions are errors, unsupported cases are
    skipped; a failure's text is that of the terminal."""
    suite = Element("testsuite", _attributes(report))
    properties = SubElement(suite, "properties")
    for name, value in report.environment.items():
        SubElement(properties, "property", {"name": xml(name), "value": xml(plain(value))})
    for case in report.case_list:
        _case(suite, report, case)
    for name, expected in report.unseen:
        one = SubElement(
            suite, "testcase", {"classname": "known findings", "name": xml(plain(name)), "time": "0"}
        )
        SubElement(one, "failure", {"message": "expected and not seen"}).text = xml(plain(expected))
    root = Element("testsuites")
    root.append(suite)
    indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _attributes(report: Report) -> dict[str, str]:
    status = [case.status for case in report.case_list]
    counts = {
        "tests": len(status) + len(report.unseen),
        "failures": status.count("fail") + len(report.unseen),
        "errors": status.count("error"),
        "skipped": status.count("unsupported"),
    }
    name = f"mqa-ref verify {report.kernel} on {report.backend}"
    return {
        "name": xml(plain(name)),
        **{key: str(n) for key, n in counts.items()},
        "time": f"{report.seconds:.3f}",
    }


def _case(suite: Element, report: Report, case: CaseResult) -> None:
    flow = str(case.shape.get("flow", report.flow))
    name = f"{case.name} [{case.order}]"
    told = {
        "classname": xml(plain(f"{report.kernel}.{flow}")),
        "name": xml(plain(name)),
        "time": f"{case.seconds:.3f}",
    }
    one = SubElement(suite, "testcase", told)
    if case.status == "pass":
        return
    text = xml(plain("\n".join(failure_lines(report, case))))
    if case.status == "unsupported":
        SubElement(one, "skipped", {"message": xml(plain(case.message))})
    else:
        kind = "failure" if case.status == "fail" else "error"
        SubElement(
            one, kind, {"message": xml(plain(_message(case))), "type": case.error or case.status}
        ).text = text


def _message(case: CaseResult) -> str:
    if case.status == "error":
        return f"{case.error}: {case.message}"
    wrong = case.comparison.mismatched if case.comparison else 0
    return f"{wrong} wrong logits, {len(case.errors)} findings"
