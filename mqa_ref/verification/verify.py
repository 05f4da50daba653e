"""The main job: launch every problem on a backend, compare every valid logit with the reference, collect a
report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from mqa_ref.compare import Comparison, compare
from mqa_ref.errors import MqaRefError, Unsupported
from mqa_ref.findings import Finding
from mqa_ref.flow import Flow
from mqa_ref.launch import Launch
from mqa_ref.numerics import MachineModel
from mqa_ref.problem import Problem
from mqa_ref.reference import reference_logits
from mqa_ref.report import CaseResult, Report, environment
from mqa_ref.verification.launch import launch
from mqa_ref.verification.problems import NamedProblem
from mqa_ref.verification.request import PtxEdit, Request, check_request

EMULATED = "sm100"
"""The tensor core that the emulator follows: the one the kernels are made for."""

Progress = Callable[[int, int, str], None]
"""Called with the cases done, the cases in all and the name of the next one, "" at the end."""


def verify(
    kernel: str = "builtin",
    on: str = "emulator",
    flow: str | Flow = "fp32-fp32-fp32",
    problems: Sequence[Problem | NamedProblem] | None = None,
    *,
    level: str = "quick",
    machine: str | MachineModel = "sm100",
    generation: str = "folded",
    edit_ptx: PtxEdit | None = None,
    orders: Sequence[str] = ("eager",),
    seed: int = 0,
    progress: Progress | None = None,
) -> Report:
    """Run ``kernel`` on backend ``on`` over ``problems`` and compare it bit for bit with the reference.

    ``kernel``: what ``mqa_ref.kernel.targets.resolve`` takes. ``problems``: None for the named problems of
    ``level``. ``machine``: the tensor core that the reference follows; the emulator follows SM100's, whatever
    this says. ``generation``: the ReLU of the reference, "folded" or "max". ``edit_ptx``: changes the PTX
    text before it runs. ``orders``: interleavings of the warps, every problem runs once per order. ``seed``:
    for the order "random".

    A case that raises ends with status "error" and the run goes on. Raises InputError with every bad argument
    at once, Unsupported for what this version does not serve, NotAvailable for a kernel whose package is not
    installed.
    """
    begun = time.perf_counter()
    request = check_request(
        kernel=kernel,
        on=on,
        flow=flow,
        problems=problems,
        level=level,
        machine=machine,
        generation=generation,
        edit_ptx=edit_ptx,
        orders=orders,
        seed=seed,
    )
    results: list[CaseResult] = []
    todo = [(problem, order) for problem in request.problems for order in request.orders]
    for done, (problem, order) in enumerate(todo):
        if progress is not None:
            progress(done, len(todo), problem.name)
        results.append(run_case(problem, order, request))
    if progress is not None:
        progress(len(todo), len(todo), "")
    return Report(
        kernel=kernel,
        backend=request.backend,
        flow=str(request.flow),
        machine=request.machine_name,
        generation=request.generation,
        level=request.level,
        seed=request.seed,
        seconds=time.perf_counter() - begun,
        case_list=tuple(results),
        environment=environment(),
    )


def run_case(case: NamedProblem, order: str, request: Request) -> CaseResult:
    """One problem in one order: reference, launch, comparison. Never raises for what the kernel or the
    backend does."""
    begun = time.perf_counter()
    problem = case.problem
    told: dict[str, Any] = {
        "name": case.name,
        "case_id": problem.case_id,
        "why": case.why,
        "shape": describe(problem),
        "order": order,
    }
    try:
        expected, valid = reference_logits(
            problem, request.flow, request.machine, generation=request.generation
        )
        outcome: Launch = launch(
            request.target,
            problem,
            request.flow,
            machine=EMULATED,
            edit_ptx=request.edit_ptx,
            order=order,
            seed=request.seed,
        )
        comparison = compare(expected, valid, outcome, problem, request.flow, machine=request.machine)
    except Unsupported as error:
        return CaseResult(
            **told,
            status="unsupported",
            seconds=time.perf_counter() - begun,
            error="Unsupported",
            message=str(error),
        )
    except Exception as error:  # noqa: BLE001 - whatever one case raises, the other cases still count
        return CaseResult(
            **told,
            status="error",
            seconds=time.perf_counter() - begun,
            error=type(error).__name__,
            message=explain(error),
        )
    findings = (*outcome.findings, *unasked(request.kernel, comparison))
    bad = not comparison.equal or any(finding.severity == "error" for finding in findings)
    return CaseResult(
        **told,
        status="fail" if bad else "pass",
        seconds=time.perf_counter() - begun,
        comparison=comparison,
        findings=findings,
        ctas=outcome.ctas,
        instructions=outcome.instructions,
        run_seconds=outcome.seconds,
    )


def describe(problem: Problem) -> dict[str, Any]:
    """The sizes of a problem, for people."""
    return {
        "lengths": problem.context_lens.tolist(),
        "page": problem.page,
        "heads": problem.heads,
        "next_n": problem.next_n,
        "num_sms": problem.num_sms,
    }


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


def unasked(kernel: str, comparison: Comparison) -> tuple[Finding, ...]:
    """The finding ``unasked_columns``: columns written in splits that hold no token of their row.

    Nobody reads them, so for kernels in general it is "info"; the builtin kernel promises not to do it.
    """
    if comparison.stray_written == 0:
        return ()
    message = f"{comparison.stray_written} elements were written in splits that hold no token of their row"
    return (Finding("unasked_columns", "error" if kernel == "builtin" else "info", message),)
