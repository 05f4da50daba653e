"""The report of a run: what was asked, what every case gave, one verdict, one exit code, one JSON object."""

from __future__ import annotations

import json
import math
import shlex
from dataclasses import dataclass, field
from typing import Any, Literal

from mqa_ref.compare import Comparison, Mismatch
from mqa_ref.findings import Finding

VERSION = 1
"""Version of the JSON object; it grows when a field changes its meaning or goes away."""

CaseStatus = Literal["pass", "fail", "error", "unsupported"]
Status = Literal["pass", "fail", "error"]

EXIT_PASS, EXIT_FAIL, EXIT_INPUT, EXIT_ORACLE, EXIT_ABSENT, EXIT_NOTHING = range(6)


@dataclass(frozen=True)
class CaseResult:
    """One problem on one backend in one order of execution.

    ``status``: "pass"; "fail" for a wrong element or a finding of severity "error"; "unsupported" when the
    target said before the launch that it cannot do this; "error" when the case ended with an exception.
    ``error`` is the exception's type, ``message`` its text. ``comparison`` is None when nothing was compared.
    ``shape``: lengths, page, heads, next_n, num_sms. ``seconds``: compilation, execution, reference and
    comparison together.
    """

    name: str
    case_id: str
    why: str
    shape: dict[str, Any]
    order: str
    status: CaseStatus
    seconds: float
    comparison: Comparison | None = None
    findings: tuple[Finding, ...] = ()
    ctas: int = 0
    instructions: int = 0
    run_seconds: float = 0.0
    error: str = ""
    message: str = ""

    @property
    def executed(self) -> bool:
        """Whether the kernel ran to the end and its output was compared."""
        return self.comparison is not None

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that fail the case."""
        return tuple(finding for finding in self.findings if finding.severity == "error")


@dataclass(frozen=True)
class Report:
    """The outcome of one run over all its cases.

    ``status``: "fail" when a case failed or ended with an error although others ran, "error" when nothing ran
    at all, else "pass". A case that is unsupported decides nothing by itself.
    """

    kernel: str
    backend: str
    flow: str
    machine: str
    generation: str
    level: str
    seed: int
    seconds: float
    case_list: tuple[CaseResult, ...]
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def executed(self) -> int:
        """Cases that ran and were compared."""
        return sum(case.executed for case in self.case_list)

    @property
    def status(self) -> Status:
        """The verdict."""
        if self.executed == 0:
            return "error"
        return "fail" if any(case.status in ("fail", "error") for case in self.case_list) else "pass"

    @property
    def exit_code(self) -> int:
        """0 pass; 1 a mismatch, a finding or a broken case; when nothing ran: 3 if an oracle disagreed with
        itself, 4 if something asked for is not on this machine, else 5."""
        if self.status != "error":
            return EXIT_PASS if self.status == "pass" else EXIT_FAIL
        kinds = {case.error for case in self.case_list}
        if "OracleError" in kinds:
            return EXIT_ORACLE
        return EXIT_ABSENT if kinds == {"NotAvailable"} else EXIT_NOTHING

    @property
    def cases(self) -> int:
        """How many cases there are, run or not."""
        return len(self.case_list)

    @property
    def logits(self) -> int:
        """Elements compared."""
        return sum(case.comparison.compared for case in self.case_list if case.comparison)

    @property
    def mismatched(self) -> int:
        """Elements that are wrong."""
        return sum(case.comparison.mismatched for case in self.case_list if case.comparison)

    @property
    def ctas(self) -> int:
        """CTAs executed."""
        return sum(case.ctas for case in self.case_list)

    @property
    def findings(self) -> int:
        """Findings of severity "error"."""
        return sum(len(case.errors) for case in self.case_list)

    def repro(self, case: CaseResult) -> str:
        """The command that runs one case again."""
        words = ["mqa-ref", "verify", "--kernel", self.kernel, "--on", self.backend, "--flow", self.flow]
        words += ["--machine", self.machine, "--generation", self.generation, "--order", case.order]
        words += ["--case", case.name, "--seed", str(self.seed)]
        return shlex.join(words)

    def as_dict(self) -> dict[str, Any]:
        """The report as plain JSON values; numbers that JSON does not know are strings."""
        plain: dict[str, Any] = {"version": VERSION, "status": self.status, "exit_code": self.exit_code}
        for name in ("kernel", "backend", "flow", "machine", "generation", "level"):
            plain[name] = getattr(self, name)
        for name in ("cases", "executed", "logits", "ctas", "mismatched", "findings", "seed"):
            plain[name] = getattr(self, name)
        for status in ("pass", "fail", "error", "unsupported"):
            plain[f"cases_{status}"] = sum(case.status == status for case in self.case_list)
        plain["seconds"] = round(self.seconds, 3)
        plain["environment"] = self.environment
        plain["finding_list"] = [
            {"case": case.name, "order": case.order, **finding.as_dict()}
            for case in self.case_list
            for finding in case.findings
        ]
        plain["case_list"] = [self._case(case) for case in self.case_list]
        return plain

    def to_json(self) -> str:
        """``as_dict`` as one line-broken JSON object."""
        return json.dumps(self.as_dict(), indent=2, allow_nan=False) + "\n"

    def _case(self, case: CaseResult) -> dict[str, Any]:
        plain: dict[str, Any] = {
            name: getattr(case, name)
            for name in (
                "name",
                "case_id",
                "why",
                "shape",
                "order",
                "status",
                "error",
                "message",
                "ctas",
                "instructions",
            )
        }
        plain |= {"seconds": round(case.seconds, 3), "run_seconds": round(case.run_seconds, 3)}
        plain |= {"findings": len(case.errors), "repro": self.repro(case)}
        plain["comparison"] = _comparison(case.comparison) if case.comparison else None
        return plain


def _number(value: float | None) -> float | str | None:
    return value if value is None or math.isfinite(value) else repr(value)


def _mismatch(mismatch: Mismatch) -> dict[str, Any]:
    return {
        "kind": mismatch.kind,
        **mismatch.place.as_dict(),
        "expected": mismatch.expected,
        "actual": mismatch.actual,
        "expected_value": _number(mismatch.expected_value),
        "actual_value": _number(mismatch.actual_value),
        "ulp": mismatch.ulp,
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    plain: dict[str, Any] = {"logits": comparison.compared, "mismatched": comparison.mismatched}
    plain |= {"counts": dict(comparison.counts), "where": list(comparison.where)}
    plain["suspects"] = list(comparison.suspects)
    plain |= {"max_ulp": comparison.max_ulp, "max_abs": _number(comparison.max_abs)}
    plain |= {"tail_written": comparison.tail_written, "stray_written": comparison.stray_written}
    plain |= {"calc_diff": _number(comparison.calc_diff), "cosine": _number(comparison.cosine)}
    plain["first"] = [_mismatch(mismatch) for mismatch in comparison.first]
    return plain
