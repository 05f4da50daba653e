"""The main job: launch every problem on a backend, compare every valid logit with the reference, collect a
report."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from mqa_ref.cuda.launch import Settings
from mqa_ref.cuda.probe import require
from mqa_ref.emulator.engines import Emulation
from mqa_ref.flow import Flow
from mqa_ref.numerics import MachineModel
from mqa_ref.problem import Problem
from mqa_ref.report import CaseResult, Report, environment
from mqa_ref.verification.case import References, run_case
from mqa_ref.verification.evidence import Seen
from mqa_ref.verification.interleavings import plan
from mqa_ref.verification.ledger import Ledger
from mqa_ref.verification.problems import NamedProblem
from mqa_ref.verification.request import PtxEdit, check_request
from mqa_ref.verification.runner import Launcher, launcher
from mqa_ref.verification.worker import Limits

Progress = Callable[[int, int, str], None]
"""Called with the cases done, the cases in all and the name of the next one, "" at the end."""


def verify(
    kernel: str = "builtin",
    on: str = "emulator",
    flow: str | Flow = "fp32-fp32-fp32",
    problems: Sequence[Problem | NamedProblem] | None = None,
    *,
    level: str = "quick",
    machine: str | MachineModel | None = None,
    generation: str | None = None,
    expect: str | None = None,
    options: Mapping[str, Any] | None = None,
    edit_ptx: PtxEdit | None = None,
    orders: Sequence[str] | None = None,
    seed: int = 0,
    baseline: str | None = None,
    known: Ledger | None = None,
    force: bool = False,
    limits: Limits | None = None,
    native: Settings | None = None,
    emulation: Emulation | None = None,
    launch: Launcher | None = None,
    progress: Progress | None = None,
    watch: Callable[[Seen], None] | None = None,
) -> Report:
    """Run ``kernel`` on backend ``on`` over ``problems`` and compare it bit for bit with the reference.

    ``kernel``: what ``mqa_ref.kernel.targets.resolve`` takes; any but "builtin" is executed in a process of its own,
    within ``limits``. ``problems``: None for the named problems of ``level``. ``machine``: the tensor core that the
    reference follows, None for the kernel's; the emulator follows the kernel's, whatever this says. ``generation``: the
    ReLU of the reference, a name in ``mqa_ref.reference.GENERATIONS``; None for the one that the kernel declares.
    ``expect``: "bits" of the order that the kernel declares (the builtin kernel's for one from a file), or "bound", the
    one for any order; None for bits where an order is declared. ``options``: further constructor arguments of the
    kernel. ``edit_ptx``: changes the kernel's PTX text before it runs. ``orders``: interleavings, every problem runs
    once in each; None for those of ``mqa_ref.verification.interleavings``. ``seed``: for the orders "random" and
    "systematic". ``baseline``: another kernel that gets the same problems and is held against this one, and against the
    reference for what it declares; it decides nothing. ``known``: findings of the ledger fail nothing, its expected
    ones that are not seen do.
    ``emulation``: the engine of the emulator, and whether it looks for races.
    ``launch``: of the kernel on the backend, when the caller has it open already.
    ``force``: take problems whose schedule was forced, too (``Problem.forced``). ``watch``: is shown every case that
    ran, with its logits (``mqa_ref.verification.evidence.Collector`` gathers pictures for a report from that).

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
        baseline=baseline,
        force=force,
        options=options,
        expect=expect,
    )
    settings = (native or Settings()) if on == "cuda" else None
    facts = require().environment() if on == "cuda" else {}
    results: list[CaseResult] = []
    steps = plan(request.problems, request.orders, request.seed)
    references = References(request)
    with ExitStack() as stack:
        launch = launch or stack.enter_context(launcher(request.own.target, limits, settings, emulation))
        other = None
        if request.other is not None:
            other = stack.enter_context(launcher(request.other.target, limits, settings, emulation))
        for done, step in enumerate(steps):
            if progress is not None:
                progress(done, len(steps), step.problem.name)
            results.append(
                run_case(launch, step, request, references, baseline=other, ledger=known, watch=watch)
            )
    if progress is not None:
        progress(len(steps), len(steps), "")
    unseen = known.unseen(kernel, results) if known is not None else ()
    return Report(
        kernel=kernel,
        backend=request.backend,
        flow=request.flow_name,
        machine=request.machine_name,
        generation=request.own.generation,
        level=request.level,
        seed=request.seed,
        seconds=time.perf_counter() - begun,
        case_list=tuple(results),
        environment=environment(*request.distributions) | facts,
        baseline=baseline or "",
        options=dict(options or {}),
        expect="bits" if request.own.declared.order else "bound",
        unseen=tuple((one.id, f"{one.kind} of {one.source or 'any place'}: {one.reason}") for one in unseen),
    )
