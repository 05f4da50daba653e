"""A case file run again, on any kernel and backend."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mqa_ref.flow import Flow
from mqa_ref.fuzz.campaign import WITH_OPTIONS, Campaign, check_campaign
from mqa_ref.fuzz.casefile import Case, kernel_of, read_case
from mqa_ref.fuzz.report import repro
from mqa_ref.fuzz.session import Judged, Session
from mqa_ref.report import environment
from mqa_ref.report.model import EXIT_FAIL, EXIT_NOTHING, EXIT_PASS, Status
from mqa_ref.result import result_json, result_values


@dataclass(frozen=True)
class ReplayReport:
    """What a case gave now. ``seconds``: of all."""

    path: Path
    case: Case
    campaign: Campaign
    judged: Judged
    seconds: float

    @property
    def status(self) -> Status:
        """The verdict: "fail" for any failure, not only the one that the case was kept for."""
        if self.judged.outcome.unsupported:
            return "error"
        return "fail" if self.judged.outcome.failures else "pass"

    @property
    def exit_code(self) -> int:
        """0 when it passes now, 1 when it fails, 5 when the kernel cannot do it."""
        return {"pass": EXIT_PASS, "fail": EXIT_FAIL, "error": EXIT_NOTHING}[self.status]

    def as_dict(self) -> dict[str, Any]:
        """The report as plain JSON values."""
        subject, outcome = self.judged.subject, self.judged.outcome
        names = [one.name for one in outcome.failures]
        plain: dict[str, Any] = {"file": str(self.path), "case_id": subject.problem.case_id}
        plain |= {"machine": self.campaign.machine, "generation": self.campaign.generation}
        plain["kept_for"] = self.case.failure
        plain["failures"] = [{"class": one.name, "message": one.message} for one in outcome.failures]
        plain |= {"unsupported": outcome.unsupported, "repro": repro(self.path, self.campaign)}
        return result_values(
            "replay",
            status=self.status,
            exit_code=self.exit_code,
            kernel=self.campaign.kernel,
            backend=self.campaign.backend,
            flow=str(subject.flow),
            cases=1,
            logits=self.judged.logits,
            mismatched=sum(name.startswith("bits:") for name in names),
            findings=sum(name.startswith("finding:") for name in names),
            seed=subject.seed,
            seconds=self.seconds,
            more=plain | {"environment": dict(environment())},
        )

    def to_json(self) -> str:
        """``as_dict`` as one line-broken JSON object."""
        return result_json(self.as_dict())

    def lines(self) -> Iterator[str]:
        """The report for people."""
        problem = self.judged.subject.problem
        lengths = problem.context_lens.tolist()
        yield f"case {problem.case_id}: lengths {lengths}, {problem}, kept for {self.case.failure or 'nothing'}"
        for failure in self.judged.outcome.failures:
            yield f"FAIL {failure.name}: {failure.message}"
        if self.judged.outcome.unsupported:
            yield f"unsupported: {self.judged.outcome.unsupported}"
        yield f"  REPRO: {repro(self.path, self.campaign)}"
        yield f"{self.status}: kernel {self.campaign.kernel}, flow {self.judged.subject.flow}, {self.seconds:.1f} s"


def replay(
    path: Path,
    *,
    kernel: str | None = None,
    on: str = "emulator",
    flow: str | None = None,
    machine: str | None = None,
    generation: str | None = None,
    known: str = "",
    seconds: float = 300.0,
    memory_bytes: int = 8 << 30,
    session: Session | None = None,
) -> ReplayReport:
    """Run the case in a file; what is None is as the case says, but for a kernel in a file or a module, which only the
    caller may name. Another kernel than the case's whose options are not known is run without.

    Raises InputError for a file that is no case and for bad arguments, and what a launch raises: NotAvailable,
    OracleError.
    """
    begun = time.monotonic()
    case = read_case(path)
    subject = case.subject
    if flow is not None:
        subject = replace(subject, flow=Flow.parse(flow))
    campaign = check_campaign(
        kernel=kernel_of(case, kernel),
        on=on,
        flow=str(subject.flow),
        machine=machine or case.machine,
        generation=generation or case.generation,
        known=known,
        seconds=seconds,
        memory_bytes=memory_bytes,
    )
    if campaign.kernel not in (*WITH_OPTIONS, case.kernel):
        subject = replace(subject, options={})
    with session or Session(campaign) as own:
        judged = own.judge_subject(subject, case.check, case.label)
    return ReplayReport(path, case, campaign, judged, time.monotonic() - begun)
