"""One problem in one interleaving: launch, comparison with the reference, and with the baseline where there
is one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.compare import Comparison, compare, compare_within
from mqa_ref.compare.tolerances import factor
from mqa_ref.errors import MqaRefError, Unsupported
from mqa_ref.findings import Finding
from mqa_ref.kernel.targets import Declared
from mqa_ref.launch import Launch
from mqa_ref.problem import Problem
from mqa_ref.reference import SUM_ORDERS, any_order_bounds, reference_logits
from mqa_ref.report import CaseResult
from mqa_ref.report.model import BaselineResult, CaseStatus, KindResult, Verdict
from mqa_ref.verification.derived import derive, unlike_declared
from mqa_ref.verification.differences import differences
from mqa_ref.verification.evidence import Seen
from mqa_ref.verification.interleavings import Step
from mqa_ref.verification.ledger import Ledger
from mqa_ref.verification.problems import NamedProblem
from mqa_ref.verification.request import Request, Side
from mqa_ref.verification.runner import Launcher


@dataclass(frozen=True)
class Expected:
    """What the reference gives: bit patterns and validity, both [rows, columns]."""

    bits: NDArray[np.unsignedinteger]
    valid: NDArray[np.bool_]


class References:
    """The references of the latest problem: the launches of one problem follow each other."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self._case: NamedProblem | None = None
        self._expected: dict[Declared, Expected] = {}

    def of(self, case: NamedProblem, declared: Declared) -> Expected:
        """The expected bits of a problem in its flow, from a kernel that declares this of itself."""
        if self._case is not case:
            self._case, self._expected = case, {}
        if declared not in self._expected:
            order: Any = declared.order or SUM_ORDERS[0]
            told: Any = {"generation": declared.generation, "order": order}
            machine = self.request.machine or declared.machine
            bits, valid = reference_logits(case.problem, self.request.flow_of(case), machine, **told)
            self._expected[declared] = Expected(bits, valid)
        return self._expected[declared]


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
    launch: Launcher, side: Side, step: Step, request: Request, references: References, ledger: Ledger | None
) -> Attempt:
    """Launch and compare with the reference. Never raises for what the kernel or the backend does."""
    problem, flow = step.problem.problem, request.flow_of(step.problem)
    try:
        if side.declared.order is not None:
            references.of(step.problem, side.declared)  # before the launch: what it lacks is not launched
        problem = side.target.scheduled(problem)
        outcome = launch(
            problem,
            flow,
            machine=side.target.declared.machine,
            edit_ptx=side.edit_ptx,
            order=step.order,
            seed=step.seed,
            options=side.options_for(step.problem),
        )
        comparison = judge(outcome, problem, step.problem, request, side, references)
        machine = request.machine or side.declared.machine
        derived = (
            *derive(side.kernel, problem, outcome, comparison),
            *unlike_declared(side.declared, machine, problem, flow, outcome),
        )
    except Unsupported as error:
        return Attempt("unsupported", error="Unsupported", message=str(error))
    except Exception as error:  # noqa: BLE001 - whatever one case raises, the other cases still count
        return Attempt("error", error=type(error).__name__, message=explain(error))
    findings = (*outcome.findings, *derived)
    if ledger is not None:
        findings = ledger.mark(side.kernel, step.problem.name, findings)
    bad = not comparison.equal or any(finding.fails for finding in findings)
    return Attempt("fail" if bad else "pass", outcome, comparison, findings)


def judge(
    launch: Launch, problem: Problem, case: NamedProblem, request: Request, side: Side, references: References
) -> Comparison:
    """A launch against the bits of the order that the kernel declares, or without one against the bound for any order.

    ``problem``: that of ``case`` with the schedule which the kernel was given.
    """
    flow = request.flow_of(case)
    told: Any = {"machine": request.machine or side.declared.machine, "generation": side.generation}
    if side.declared.order is None:
        bounds = any_order_bounds(problem, flow, scaled="parts", **told)
        return compare_within(launch, problem, flow, bounds, factor(flow, "foreign_order"), **told)
    expected = references.of(case, side.declared)
    return compare(expected.bits, expected.valid, launch, problem, flow, **told)


def run_case(
    launch: Launcher,
    step: Step,
    request: Request,
    references: References,
    *,
    baseline: Launcher | None = None,
    ledger: Ledger | None = None,
    watch: Callable[[Seen], None] | None = None,
) -> CaseResult:
    """One step of a run, and the same step of the baseline. ``watch`` is shown what came of it."""
    begun = time.perf_counter()
    problem = step.problem.problem
    made = attempt(launch, request.own, step, request, references, ledger)
    compared = None
    if baseline is not None and request.other is not None:
        other = attempt(baseline, request.other, step, request, references, None)
        compared = against(made, other, step.problem, request)
    result = CaseResult(
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
    if watch is not None and made.launch is not None:
        expected = references.of(step.problem, request.own.declared)
        watch(Seen(result, step, request, made.launch, expected.bits, expected.valid))
    return result


def against(made: Attempt, other: Attempt, case: NamedProblem, request: Request) -> BaselineResult:
    """The valid logits of two kernels held against each other; ``other`` is the baseline's."""
    difference = None
    verdict: Verdict = "not compared"
    kinds: tuple[KindResult, ...] = ()
    if made.launch is not None and other.launch is not None:
        valid, flow = case.problem.valid_mask(), request.flow_of(case)
        bits = other.launch.logits[:, : valid.shape[1]]
        machine = request.machine or request.own.declared.machine
        difference = compare(bits, valid, made.launch, case.problem, flow, machine=machine)
        verdict = "bit-identical"
        kinds = differences(made.launch, other.launch, case.problem, flow)
        if not difference.equal:
            sides = ((made.launch, request.own), (other.launch, request.other))
            close = all(within_tolerance(launch, case, request, side) for launch, side in sides)
            verdict = "within tolerance" if close else "different"
    return BaselineResult(
        verdict=verdict,
        status=other.status,
        difference=difference,
        mismatched=other.comparison.mismatched if other.comparison else 0,
        findings=sum(finding.fails for finding in other.findings),
        error=other.error,
        message=other.message,
        kinds=kinds,
    )


def within_tolerance(launch: Launch, case: NamedProblem, request: Request, side: Side | None) -> bool:
    """Does every logit of a launch stay within the bound that holds for any order of addition?"""
    assert side is not None, "what was launched has a side"
    problem, flow = case.problem, request.flow_of(case)
    told: Any = {"machine": request.machine or side.declared.machine, "generation": side.generation}
    bounds = any_order_bounds(problem, flow, scaled="parts", **told)
    return compare_within(launch, problem, flow, bounds, factor(flow, "foreign_order"), **told).equal


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
