"""Failures that belong together: wrong elements with one cause, findings at one place, one error, over all cases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from mqa_ref.report.model import CaseResult, Report

ClusterKind = Literal["mismatch", "finding", "error", "not seen"]
_MOST_CASES = 200


@dataclass(frozen=True)
class Cluster:
    """``title``: in a few words. ``message``: in a sentence. ``count``: wrong elements, or how often a finding was
    seen. ``cases``: the names of the cases, each once; ``first``: the number of the first in ``case_list``, None where
    no case shows it. ``where``, ``suspects``: of the first case. ``source``: "file:line" of the kernel. ``repro``: the
    command that shows it again."""

    kind: ClusterKind
    title: str
    message: str
    count: int
    cases: tuple[str, ...]
    first: int | None
    where: tuple[str, ...]
    suspects: tuple[str, ...]
    source: str | None
    repro: str

    def values(self) -> dict[str, Any]:
        """As plain values; at most 200 names of cases."""
        return {**asdict(self), "cases": list(self.cases[:_MOST_CASES])}


def clusters(report: Report) -> tuple[Cluster, ...]:
    """All failures of a run; those in most cases first."""
    found: dict[tuple[str, ...], Cluster] = {}
    for number, case in enumerate(report.case_list):
        for key, one in _of_case(report, number, case):
            old = found.get(key)
            if old is None:
                found[key] = one
            else:
                cases = tuple(dict.fromkeys((*old.cases, case.name)))
                told = {name: getattr(old, name) for name in Cluster.__dataclass_fields__}
                found[key] = Cluster(**told | {"count": old.count + one.count, "cases": cases})
    for name, expected in report.unseen:
        message = f"expected and not seen: {expected}"
        found["not seen", name] = Cluster("not seen", name, message, 0, (), None, (), (), None, "")
    return tuple(sorted(found.values(), key=lambda one: -len(one.cases)))


def _of_case(report: Report, number: int, case: CaseResult) -> Iterator[tuple[tuple[str, ...], Cluster]]:
    repro = report.repro(case)
    compared = case.comparison
    if compared is not None and not compared.equal:
        kinds = [kind for kind, count in compared.counts.items() if count]
        title = "; ".join(compared.suspects) or "wrong elements: " + ", ".join(kinds)
        message = f"{compared.mismatched} of {compared.compared} logits of {case.name} are wrong"
        message += "".join(f"; the wrong bits are those of {name}" for name in compared.suspects)
        key = ("mismatch", *(compared.suspects or kinds))
        told = (compared.mismatched, (case.name,), number, compared.where, compared.suspects, None, repro)
        yield key, Cluster("mismatch", title, message, *told)
    for finding in case.errors:
        place = (finding.count, (case.name,), number, (), (), finding.source, repro)
        yield ("finding", finding.id), Cluster("finding", finding.id, finding.message, *place)
    if case.status == "error":
        yield (
            ("error", case.error, case.message),
            Cluster("error", case.error, case.message, 1, (case.name,), number, (), (), None, repro),
        )
