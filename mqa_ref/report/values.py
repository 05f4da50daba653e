"""The report as plain JSON values."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from mqa_ref.compare import Comparison, Mismatch
from mqa_ref.report.clusters import clusters
from mqa_ref.result import result_values

if TYPE_CHECKING:
    from mqa_ref.report.model import BaselineResult, CaseResult, Report

VERDICTS = ("bit-identical", "within tolerance", "different", "not compared")
"""What the comparison with a baseline can say of a case; over all cases the worst that was seen counts."""

_CASE = (
    *("name", "case_id", "why", "shape", "order", "seed", "status"),
    *("error", "message", "ctas", "instructions"),
)


def report_values(report: Report) -> dict[str, Any]:
    """Everything; numbers that JSON does not know are strings."""
    plain: dict[str, Any] = {}
    for name in ("machine", "generation", "expect", "options", "level", "executed", "interleavings", "ctas"):
        plain[name] = getattr(report, name)
    plain["known_findings"] = sum(f.known is not None for case in report.case_list for f in case.findings)
    for status in ("pass", "fail", "error", "unsupported"):
        plain[f"cases_{status}"] = sum(case.status == status for case in report.case_list)
    plain["environment"] = report.environment
    plain["orders"] = dict(Counter(case.order for case in report.case_list if case.executed))
    plain["known_unseen"] = [{"id": name, "expected": text} for name, text in report.unseen]
    plain["baseline"] = baseline_values(report) if report.baseline else None
    plain["clusters"] = [one.values() for one in clusters(report)]
    plain["finding_ids"] = finding_ids(report)
    plain["finding_list"] = [
        {"case": case.name, "order": case.order, "seed": case.seed, **finding.as_dict()}
        for case in report.case_list
        for finding in case.findings
    ]
    plain["case_list"] = [_case(report, case) for case in report.case_list]
    return result_values(
        "verify",
        status=report.status,
        exit_code=report.exit_code,
        kernel=report.kernel,
        backend=report.backend,
        flow=report.flow,
        cases=report.cases,
        logits=report.logits,
        mismatched=report.mismatched,
        findings=report.findings,
        seed=report.seed,
        seconds=report.seconds,
        more=plain,
    )


def finding_ids(report: Report) -> list[dict[str, Any]]:
    """Each finding once: its id, severity, kind, the ledger's entry, the cases that show it; those that fail first."""
    seen: dict[str, dict[str, Any]] = {}
    for case in report.case_list:
        for finding in case.findings:
            told = {name: getattr(finding, name) for name in ("id", "severity", "kind", "known", "message")}
            entry = seen.setdefault(f"{finding.id} {finding.known}", {**told, "cases": []})
            if case.name not in entry["cases"]:
                entry["cases"].append(case.name)
    return sorted(seen.values(), key=lambda one: (one["severity"] != "error", one["known"] is not None))


def baseline_values(report: Report) -> dict[str, Any]:
    """The two kernels over all cases: one verdict, and counts."""
    told = [case.baseline for case in report.case_list if case.baseline is not None]
    verdicts: Counter[str] = Counter(one.verdict for one in told)
    compared = [one.difference for one in told if one.difference is not None]
    verdict = next((one for one in VERDICTS[2::-1] if verdicts[one]), VERDICTS[0])
    return {
        "kernel": report.baseline,
        "verdict": verdict if compared else "not compared",
        "logits": sum(one.compared for one in compared),
        "differing": sum(one.mismatched for one in compared),
        "max_ulp": max((one.max_ulp for one in compared if one.max_ulp is not None), default=None),
        "cases": {name: verdicts[name] for name in VERDICTS},
        "mismatched": sum(one.mismatched for one in told),
        "findings": sum(one.findings for one in told),
        "cases_status": dict(Counter(one.status for one in told)),
        "kinds": kind_values(report),
    }


def kind_values(report: Report) -> list[dict[str, Any]]:
    """Each kind of element over all cases: counts, a verdict ("not compared" where no case has any), and the smallest
    case that differs (fewest tokens, then fewest rows, then the first)."""
    from mqa_ref.report.model import KINDS

    none: dict[str, Any] = {
        "verdict": VERDICTS[3],
        "compared": 0,
        "differing": 0,
        "alone": 0,
        "smallest": None,
    }
    totals = {kind: {"kind": kind, **none} for kind in KINDS}
    sizes: dict[str, tuple[int, int]] = {}
    for case in report.case_list:
        for one in case.baseline.kinds if case.baseline is not None else ():
            entry = totals[one.kind]
            for name in ("compared", "differing", "alone"):
                entry[name] += getattr(one, name)
            size = (sum(case.shape["lengths"]), len(case.shape["lengths"]))
            if one.differing and (one.kind not in sizes or size < sizes[one.kind]):
                sizes[one.kind] = size
                entry["smallest"] = {"case": case.name, "first": one.first, "repro": report.repro(case)}
    for entry in totals.values():
        if entry["compared"]:
            entry["verdict"] = VERDICTS[2] if entry["differing"] else VERDICTS[0]
    return list(totals.values())


def _case(report: Report, case: CaseResult) -> dict[str, Any]:
    plain: dict[str, Any] = {name: getattr(case, name) for name in _CASE}
    plain |= {"seconds": round(case.seconds, 3), "run_seconds": round(case.run_seconds, 3)}
    plain |= {"findings": len(case.errors), "repro": report.repro(case)}
    plain["comparison"] = _comparison(case.comparison) if case.comparison else None
    plain["baseline"] = _baseline(case.baseline) if case.baseline else None
    return plain


def _baseline(baseline: BaselineResult) -> dict[str, Any]:
    names = ("verdict", "status", "mismatched", "findings", "error", "message")
    plain = {name: getattr(baseline, name) for name in names}
    plain["kinds"] = [asdict(one) for one in baseline.kinds]
    return plain | {"difference": _comparison(baseline.difference) if baseline.difference else None}


def _mismatch(mismatch: Mismatch) -> dict[str, Any]:
    return {
        "kind": mismatch.kind,
        **mismatch.place.as_dict(),
        "expected": mismatch.expected,
        "actual": mismatch.actual,
        "expected_value": mismatch.expected_value,
        "actual_value": mismatch.actual_value,
        "ulp": mismatch.ulp,
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    plain: dict[str, Any] = {"logits": comparison.compared, "mismatched": comparison.mismatched}
    plain |= {"counts": dict(comparison.counts), "where": list(comparison.where)}
    plain["suspects"] = list(comparison.suspects)
    plain |= {"max_ulp": comparison.max_ulp, "max_abs": comparison.max_abs}
    plain |= {"tail_written": comparison.tail_written, "stray_written": comparison.stray_written}
    plain |= {"calc_diff": comparison.calc_diff, "cosine": comparison.cosine}
    plain |= {"max_ratio": comparison.max_ratio, "factor": comparison.factor}
    plain["unbounded"] = comparison.unbounded
    plain["worst"] = [
        {"measure": extreme.measure, "greatest": extreme.value, **_mismatch(extreme.element)}
        for extreme in comparison.worst
    ]
    plain["first"] = [_mismatch(mismatch) for mismatch in comparison.first]
    return plain
