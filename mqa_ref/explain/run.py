"""Runs one problem on a kernel, finds the first wrong logit, and explains it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mqa_ref.compare.classes import KINDS
from mqa_ref.errors import Fault, InputError, Unsupported
from mqa_ref.explain.case import explain_seen
from mqa_ref.explain.logit import Explanation, check_place
from mqa_ref.flow import Flow
from mqa_ref.report import Report
from mqa_ref.result import Status, result_json, result_values
from mqa_ref.verification.evidence import Place, Seen, classes
from mqa_ref.verification.observe import watcher
from mqa_ref.verification.problems import NamedProblem
from mqa_ref.verification.request import PtxEdit
from mqa_ref.verification.verify import verify
from mqa_ref.verification.worker import Limits


@dataclass(frozen=True)
class Explained:
    """``report``: of the run. ``explanation``: None when the kernel did not run to its end. ``chosen``: why this logit
    is the one that is explained."""

    report: Report
    explanation: Explanation | None
    chosen: str

    @property
    def status(self) -> Status:
        """ "pass" when every step agrees, "fail" when the two part, "error" when nothing ran."""
        if self.explanation is None:
            return "error"
        return "pass" if self.explanation.agrees and self.explanation.parts_at is None else "fail"

    @property
    def exit_code(self) -> int:
        """0 and 1 as the status says, else that of the run."""
        return {"pass": 0, "fail": 1, "error": self.report.exit_code}[self.status]

    def to_json(self) -> str:
        """One versioned JSON object."""
        told, report = self.explanation, self.report
        case = report.case_list[0]
        more: dict[str, Any] = {"case": case.name, "case_id": case.case_id, "chosen": self.chosen}
        more |= {"message": case.message} if told is None else told.values()
        return result_json(
            result_values(
                "explain",
                status=self.status,
                exit_code=self.exit_code,
                kernel=report.kernel,
                backend=report.backend,
                flow=report.flow,
                cases=1,
                logits=0 if told is None else 1,
                mismatched=0 if told is None or told.agrees else 1,
                findings=report.findings,
                seed=case.seed,
                seconds=report.seconds,
                more=more,
            )
        )


def explain_problem(
    kernel: str,
    problem: NamedProblem,
    flow: str | Flow,
    *,
    row: int | None = None,
    column: int | None = None,
    head: int | None = None,
    order: str = "eager",
    seed: int = 0,
    machine: str | None = None,
    generation: str | None = None,
    edit_ptx: PtxEdit | None = None,
    limits: Limits | None = None,
) -> Explained:
    """Run ``problem`` once on the emulator and explain one logit: (``row``, ``column``), by default the first wrong
    one, and where none is wrong the first valid one; of ``row`` alone where only that is given.

    ``head``: whose products are told term by term. The others as for ``verify``. Raises InputError for a place that is
    no valid logit, Unsupported for a kernel that declares no order of its sum or cannot be watched, and what ``verify``
    does.
    """
    if column is not None and row is None:
        raise InputError([Fault("column", str(column), "a row beside it")])
    check_place(problem.problem, row, column, head)
    kept: list[Seen] = []
    report = verify(
        kernel,
        "emulator",
        flow,
        [problem],
        orders=[order],
        seed=seed,
        machine=machine,
        generation=generation,
        edit_ptx=edit_ptx,
        limits=limits,
        watch=kept.append,
    )
    if not kept:
        return Explained(report, None, "")
    (seen,) = kept
    if seen.request.own.declared.order is None:
        raise Unsupported(
            f"{kernel} declares no order of its sum, so there is nothing to hold its steps against"
        )
    place, chosen = _place(seen, row, column)
    with watcher(seen.request.own.target, limits) as watch:
        writer = -1 if seen.launch.writer is None else int(seen.launch.writer[place])
        explanation = explain_seen(watch, seen, place, writer if writer >= 0 else None, head)
    return Explained(report, explanation, chosen)


def _place(seen: Seen, row: int | None, column: int | None) -> tuple[Place, str]:
    if row is not None and column is not None:
        return (row, column), "the logit that was asked for"
    kinds = classes(seen, seen.flow)
    rows = slice(None) if row is None else slice(row, row + 1)
    within = "" if row is None else f" of row {row}"
    wrong = np.argwhere(kinds[rows] >= 0)
    if wrong.size:
        first = int(wrong[0, 0]) + (row or 0), int(wrong[0, 1])
        return first, f"the first wrong logit{within} ({KINDS[int(kinds[first])]}), one of {len(wrong)}"
    valid = np.argwhere(seen.valid[rows])
    if not valid.size:
        raise InputError([Fault("problem", seen.result.name, "a problem with a valid logit")])
    return (int(valid[0, 0]) + (row or 0), int(valid[0, 1])), f"the first valid logit{within}: none is wrong"
