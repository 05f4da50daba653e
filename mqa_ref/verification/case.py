"""One problem in one interleaving: launch, comparison with the reference, and with the baseline where there
is one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.compare import Comparison, compare, compare_within
from mqa_ref.compare.tolerances import factor
from mqa_ref.errors import MqaRefError, Unsupported
from mqa_ref.findings import Finding
from mqa_ref.launch import Launch
from mqa_ref.problem import Problem
from mqa_ref.reference import any_order_bounds, reference_logits
from mqa_ref.report import CaseResult
from mqa_ref.report.model import BaselineResult, CaseStatus, Verdict
from mqa_ref.verification.derived import derive
from mqa_ref.verification.interleavings import Step
from mqa_ref.verification.ledger import Ledger
from mqa_ref.verification.problems import NamedProblem
from mqa_ref.verification.request import Request
from mqa_ref.verification.runner import Launcher

EMULATED = "sm100"
"""The tensor core that the emulator follows: the one the kernels are made for."""


@dataclass(frozen=True)
class Expected:
    """What the reference gives: bit patterns and validity, both [rows, columns]."""

    bits: NDArray[np.unsignedinteger]
    valid: NDArray[np.bool_]


class References:
    """The reference of the latest problem: the launches of one problem follow each other."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self._case: NamedProblem | None = None
        self._expected: Expected | None = None

    def of(self, case: NamedProblem) -> Expected:
        """The expected bits of a problem in its flow."""
        if self._expected is None or self._case is not case:
            request = self.request
            bits, valid = reference_logits(
                case.problem, request.flow_of(case), request.machine, generation=request.generation
            )
            self._case, self._expected = case, Expected(bits, valid)
        return self._expected


@dataclass(frozen=True)
class Attempt:
    """What one kernel made of one step. ``launch`` and ``comparison`` are None when it failed."""

    status: CaseStatus
    launch: Launch | None = None
    comparison: Comparison | None = None
    findings: tuple[Finding, ...] = ()
    error: str = ""
    message: str = ""


def attempt(
    launch: Launcher, kernel: str, step: Step, request: Request, references: References, ledger: Ledger | None
) -> Attempt:
    """Launch and compare with the reference. Never raises for what the kernel or the backend does."""
    problem, flow = step.problem.problem, request.flow_of(step.problem)
    try:
        expected = references.of(step.problem)
        outcome = launch(
            problem,
            flow,
            machine=EMULATED,
            edit_ptx=request.edit_ptx,
            order=step.order,
            seed=step.seed,
            options=step.problem.options,
        )
        comparison = compare(
            *(expected.bits, expected.valid, outcome, problem, flow),
            machine=request.machine,
            generation=request.generation,
        )
    except Unsupported as error:
        return Attempt("unsupported", error="Unsupported", message=str(error))
    except Exception as error:  # noqa: BLE001 - whatever one case raises, the other cases still count
        return Attempt("error", error=type(error).__name__, message=explain(error))
    findings = (*outcome.findings, *derive(kernel, problem, outcome, comparison))
    if ledger is not None:
        findings = ledger.mark(kernel, step.problem.name, findings)
    bad = not comparison.equal or any(finding.fails for finding in findings)
    return Attempt("fail" if bad else "pass", outcome, comparison, findings)


def run_case(
    launch: Launcher,
    step: Step,
    request: Request,
    references: References,
    *,
    baseline: Launcher | None = None,
    ledger: Ledger | None = None,
) -> CaseResult:
    """One step of a run, and the same step of the baseline."""
    begun = time.perf_counter()
    problem = step.problem.problem
    made = attempt(launch, request.kernel, step, request, references, ledger)
    compared = None
    if baseline is not None:
        plain = replace(request, edit_ptx=None)
        other = attempt(baseline, request.baseline, step, plain, references, None)
        compared = against(made, other, step.problem, request, references)
    return CaseResult(
        name=step.problem.name,
        case_id=problem.case_id,
        why=step.problem.why,
        shape=describe(problem) | chosen(step.problem),
        order=step.order,
        seed=step.seed,
        select=step.problem.select,
        status=made.status,
        seconds=time.perf_counter() - begun,
        comparison=made.comparison,
        findings=made.findings,
        ctas=made.launch.ctas if made.launch else 0,
        instructions=made.launch.instructions if made.launch else 0,
        run_seconds=made.launch.seconds if made.launch else 0.0,
        error=made.error,
        message=made.message,
        baseline=compared,
    )


def against(
    made: Attempt, other: Attempt, case: NamedProblem, request: Request, references: References
) -> BaselineResult:
    """The valid logits of two kernels held against each other; ``other`` is the baseline's."""
    difference = None
    verdict: Verdict = "not compared"
    if made.launch is not None and other.launch is not None:
        valid, flow = references.of(case).valid, request.flow_of(case)
        bits = other.launch.logits[:, : valid.shape[1]]
        difference = compare(bits, valid, made.launch, case.problem, flow, machine=request.machine)
        verdict = "bit-identical"
        if not difference.equal:
            close = within_tolerance((made.launch, other.launch), case, request)
            verdict = "within tolerance" if close else "different"
    return BaselineResult(
        verdict=verdict,
        status=other.status,
        difference=difference,
        mismatched=other.comparison.mismatched if other.comparison else 0,
        findings=sum(finding.fails for finding in other.findings),
        error=other.error,
        message=other.message,
    )


def within_tolerance(launches: Iterable[Launch], case: NamedProblem, request: Request) -> bool:
    """Does every logit of every launch stay within the bound that holds for any order of addition?"""
    problem, flow = case.problem, request.flow_of(case)
    bounds = any_order_bounds(problem, flow, request.machine, generation=request.generation)
    share = factor(flow, "foreign_order")
    told: Any = {"machine": request.machine, "generation": request.generation}
    return all(compare_within(launch, problem, flow, bounds, share, **told).equal for launch in launches)


def describe(problem: Problem) -> dict[str, Any]:
    """The sizes of a problem, for people."""
    return {
        "lengths": problem.context_lens.tolist(),
        "page": problem.page,
        "heads": problem.heads,
        "next_n": problem.next_n,
        "num_sms": problem.num_sms,
    }


def chosen(case: NamedProblem) -> dict[str, Any]:
    """Flow and options that belong to the problem itself."""
    told: dict[str, Any] = {} if case.flow is None else {"flow": str(case.flow)}
    return told | ({"options": dict(case.options)} if case.options else {})


def explain(error: Exception) -> str:
    """The text of an exception; for one that this package does not raise on purpose, also where it came
    from."""
    text = str(error) or type(error).__name__
    trace = error.__traceback__
    if isinstance(error, MqaRefError) or trace is None:
        return text
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f"{text} (in {trace.tb_frame.f_code.co_name}, {trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno})"
