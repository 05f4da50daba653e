"""The report of a run: what was asked, what every case gave, one verdict, one exit code, one JSON object."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import Any, Literal

from mqa_ref.compare import Comparison
from mqa_ref.findings import Finding
from mqa_ref.report.values import report_values
from mqa_ref.result import VERSION, Status, result_json

__all__ = ["VERSION", "BaselineResult", "CaseResult", "CaseStatus", "KindResult", "Report", "Status"]

CaseStatus = Literal["pass", "fail", "error", "unsupported"]
Verdict = Literal["bit-identical", "within tolerance", "different", "not compared"]

VALID_KINDS: tuple[str, ...] = (
    "ordinary data",
    "sums near the subnormals",
    "sums near the greatest number",
    "dot products beyond fp16",
    "NaN or inf among weights and scales",
    "NaN codes",
)
"""Kinds of valid logits; where several apply, the last one counts. Only "ordinary data" promises anything: no sum in
it can overflow or lose a bit below the smallest number, so that a factor of two, taken in and out again, is exact."""
TAIL_KINDS: tuple[str, ...] = (
    "tokens of later queries",
    "rest of the last page",
    "pages behind the length",
    "tile behind the length",
    "splits without a token",
)
"""Kinds of columns that mean nothing for their row, from left to right."""
KINDS: tuple[str, ...] = (*VALID_KINDS, *TAIL_KINDS)

EXIT_PASS, EXIT_FAIL, EXIT_INPUT, EXIT_ORACLE, EXIT_ABSENT, EXIT_NOTHING = range(6)


@dataclass(frozen=True)
class KindResult:
    """Two kernels on the elements of one of the KINDS of one case.

    ``compared``: elements; ``differing``: of these, other bits or written by one kernel alone; ``alone``: the latter.
    ``first``: the first that differs, both words, empty when there is none.
    """

    kind: str
    compared: int
    differing: int
    alone: int = 0
    first: str = ""


@dataclass(frozen=True)
class BaselineResult:
    """What the baseline kernel made of the same problem in the same interleaving.

    ``verdict``: of the two kernels' valid logits against each other, NaN as one class; "within tolerance"
    when they differ and both stay within the bound for any order of addition; "not compared" when one of the
    two gave none. ``difference``: the kernel's logits held against the baseline's, None when not compared.
    ``status``, ``mismatched``, ``findings``, ``error``, ``message``: the baseline's own, against the
    reference. ``kinds``: the two outputs against each other, tail columns included, kind by kind.
    """

    verdict: Verdict
    status: CaseStatus
    difference: Comparison | None = None
    mismatched: int = 0
    findings: int = 0
    error: str = ""
    message: str = ""
    kinds: tuple[KindResult, ...] = ()


@dataclass(frozen=True)
class CaseResult:
    """One problem on one backend in one order of execution.

    ``status``: "pass"; "fail" for a wrong element or a finding of severity "error"; "unsupported" when the
    target said before the launch that it cannot do this; "error" when the case ended with an exception.
    ``error`` is the exception's type, ``message`` its text. ``comparison`` is None when nothing was compared.
    ``shape``: lengths, page, heads, next_n, num_sms. ``order`` and ``seed``: the interleaving. ``select``:
    the words of a command line that choose the problem. ``seconds``: compilation, execution, reference and
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
    seed: int = 0
    select: tuple[str, ...] = ()
    baseline: BaselineResult | None = None

    @property
    def executed(self) -> bool:
        """Whether the kernel ran to the end and its output was compared."""
        return self.comparison is not None

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that fail the case."""
        return tuple(finding for finding in self.findings if finding.fails)


@dataclass(frozen=True)
class Report:
    """The outcome of one run over all its cases.

    ``status``: "fail" when a case failed or ended with an error although others ran, or an expected finding of the
    ledger was not seen; "error" when nothing ran at all; else "pass". A case that is unsupported decides nothing by
    itself, and neither does the baseline. ``unseen``: the entries of the ledger that were not seen, each with its
    id and what was expected.
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
    baseline: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    expect: str = "bits"
    unseen: tuple[tuple[str, str], ...] = ()

    @property
    def executed(self) -> int:
        """Cases that ran and were compared."""
        return sum(case.executed for case in self.case_list)

    @property
    def status(self) -> Status:
        """The verdict."""
        if self.executed == 0:
            return "error"
        failed = any(case.status in ("fail", "error") for case in self.case_list)
        return "fail" if failed or self.unseen else "pass"

    @property
    def exit_code(self) -> int:
        """0 pass; 1 a mismatch, a finding or a broken case; when nothing ran: 2 if the kernel is not what can be
        tested, 3 if an oracle disagreed with itself, 4 if something asked for is not on this machine, else 5."""
        if self.status != "error":
            return EXIT_PASS if self.status == "pass" else EXIT_FAIL
        kinds = {case.error for case in self.case_list}
        if "OracleError" in kinds:
            return EXIT_ORACLE
        if kinds == {"InputError"}:
            return EXIT_INPUT
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
        """Findings of severity "error" that are not known."""
        return sum(len(case.errors) for case in self.case_list)

    @property
    def interleavings(self) -> int:
        """Different interleavings that were executed, counted for each problem."""
        ran = {(case.case_id, case.order, case.seed) for case in self.case_list if case.executed}
        return len(ran)

    def repro(self, case: CaseResult) -> str:
        """The command that runs one case again."""
        words = ["mqa-ref", "verify", "--kernel", self.kernel, "--on", self.backend, "--flow", self.flow]
        words += ["--machine", self.machine, "--generation", self.generation, "--order", case.order]
        words += ["--expect", self.expect] if self.expect != "bits" else []
        words += ["--baseline", self.baseline] if self.baseline else []
        words += [word for name, value in self.options.items() for word in ("--option", f"{name}={value}")]
        words += [*(case.select or ("--case", case.name)), "--seed", str(case.seed)]
        return shlex.join(words)

    def explain_command(self, case: CaseResult) -> str:
        """The command that explains the first wrong logit of a case; empty for one that has no name on a command line,
        and for options of the kernel, which that command does not take."""
        named = case.select in ((), ("--case", case.name))
        if not named or self.backend != "emulator" or self.options:
            return ""
        flow = str(case.shape.get("flow", self.flow))
        words = ["mqa-ref", "explain", "--case", case.name, "--kernel", self.kernel, "--flow", flow]
        words += ["--machine", self.machine, "--generation", self.generation]
        words += ["--order", case.order, "--seed", str(case.seed)]
        return shlex.join(words)

    def as_dict(self) -> dict[str, Any]:
        """The report as plain JSON values; numbers that JSON does not know are strings."""
        return report_values(self)

    def to_json(self) -> str:
        """``as_dict`` as one line-broken JSON object."""
        return result_json(self.as_dict())
