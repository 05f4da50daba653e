"""The whole of a run of mutants: what is asked, checked at once; which mutants; every verdict; the report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mqa_ref.emulator.engines import Emulation
from mqa_ref.errors import Fault, InputError, Unsupported
from mqa_ref.flow import Flow
from mqa_ref.fuzz.mutants import schedules, select, sources
from mqa_ref.fuzz.mutants.campaign import Ask, ptx_asker, run
from mqa_ref.fuzz.mutants.judge import Step, Verdict, prepared
from mqa_ref.fuzz.mutants.ladder import DRAWN, STATIC, Rung, ladder
from mqa_ref.fuzz.mutants.ledger import Reasons, contradicted, own_file, read_reasons
from mqa_ref.fuzz.mutants.mutant import Mutant
from mqa_ref.fuzz.mutants.report import MutationReport
from mqa_ref.kernel.targets import Target, resolve
from mqa_ref.report.environment import environment
from mqa_ref.verification.runner import compile_target
from mqa_ref.verification.worker import Limits

Told = Callable[[int, int, str], None]
BUILTIN = "builtin"
BASELINE = Mutant("none", "as it is", "", 0, "", "")


@dataclass(frozen=True)
class Asked:
    """A checked request. ``ptx``: of the kernel. ``pool``: every mutant there is; ``chosen``: those to run."""

    kernel: str
    flow: Flow
    seed: int
    pool: tuple[Mutant, ...]
    chosen: tuple[Mutant, ...]
    reasons: Reasons


def ask(
    kernel: str = BUILTIN,
    flow: str = "fp32-fp32-fp32",
    count: int = 300,
    seed: int = 0,
    only: Sequence[str] = (),
    ledger: Path | None = None,
) -> Asked:
    """``count`` PTX mutants and, of the builtin kernel, all of its source and of the schedule's builder; or those whose
    ids are in ``only`` ("class:" for all of a class).

    ``ledger``: None for that of the builtin kernel, if it is at hand. Raises InputError with everything that is wrong,
    NotAvailable without the compiler or the kernel's package, Unsupported for a kernel whose bits are not known.
    """
    faults: list[Fault] = []
    target, parsed = _parsed(kernel, flow, faults)
    path = own_file() if ledger is None and kernel == BUILTIN else ledger
    reasons = Reasons()
    try:
        reasons = Reasons() if path is None else read_reasons(path)
    except InputError as error:
        faults += error.faults
    if faults or target is None or parsed is None:
        raise InputError(faults)
    if target.declared.order is None:
        raise Unsupported(f"{kernel}: the order of its sums is not known, so that no wrong bit can be told")
    made = select.pool(ptx_of(target, parsed))
    others = (*sources.mutants(), *schedules.mutants()) if kernel == BUILTIN else ()
    every = (*made, *others)
    chosen = (*select.choose(made, count, seed), *others)
    if only:
        chosen = tuple(one for one in every if any(_named(one, name) for name in only))
        unknown = [name for name in only if not any(_named(one, name) for one in every)]
        if unknown:
            raise InputError([Fault("--only", name, "the id of a mutant, or CLASS:") for name in unknown])
    return Asked(kernel, parsed, seed, every, chosen, reasons)


def _parsed(kernel: str, flow: str, faults: list[Fault]) -> tuple[Target | None, Flow | None]:
    target = parsed = None
    try:
        target = resolve(kernel)
    except InputError as error:
        faults += error.faults
    try:
        parsed = Flow.parse(flow)
    except InputError as error:
        faults += error.faults
    return target, parsed


def _named(mutant: Mutant, name: str) -> bool:
    return mutant.id == name or (name.endswith(":") and mutant.id.startswith(name))


def ptx_of(target: Target, flow: Flow) -> str:
    """The PTX at the static shape of the ladder."""
    if target.raw is not None:
        first = next(ladder(flow, drawn=0)).subject.problem
        return target.raw.compile(target.scheduled(first), flow).ptx
    if target.isolated:
        return compile_target(target.name, STATIC, flow).ptx
    shape: Any = SimpleNamespace(**STATIC)
    return target.compile(shape, flow).ptx


def study(
    asked: Asked,
    *,
    workers: int = 1,
    limits: Limits | None = None,
    emulation: Emulation | None = None,
    drawn: int = DRAWN,
    rungs: Sequence[Rung] | None = None,
    progress: Told | None = None,
    done: Callable[[Verdict], None] | None = None,
) -> MutationReport:
    """Run the chosen mutants, the kernel as it is before them. ``rungs``: in place of the ladder; ``drawn``: examples
    of the fuzzer at its end. Raises NotAvailable when hypothesis is not installed."""
    begun = time.monotonic()
    target = resolve(asked.kernel)
    declared = target.declared
    climbed = tuple(ladder(asked.flow, asked.seed, drawn) if rungs is None else rungs)
    assert declared.order is not None, "asked with known bits"
    steps = prepared(_scheduled(target, climbed), declared.machine, declared.generation, declared.order)
    bounds = limits or Limits(seconds=120)
    make = partial(asker, asked.kernel, steps, bounds, emulation)
    baseline, *verdicts = run((BASELINE, *asked.chosen), make, workers, progress, done)
    caught = {one.id: one.caught for one in verdicts}
    found = {one.id: asked.reasons.of(one) for one in asked.chosen}
    return MutationReport(
        kernel=asked.kernel,
        flow=str(asked.flow),
        seed=asked.seed,
        workers=workers,
        rungs=len(steps),
        pool=len(asked.pool),
        seconds=time.monotonic() - begun,
        baseline=baseline,
        mutants=asked.chosen,
        verdicts=tuple(verdicts),
        entries={name: entry for name, entry in found.items() if entry is not None},
        idle=asked.reasons.idle(asked.pool),
        wrong=contradicted(asked.reasons, asked.chosen, caught),
        environment=environment(*([target.distribution] if target.distribution else [])),
    )


def asker(
    kernel: str, steps: Sequence[Step], limits: Limits, emulation: Emulation | None
) -> tuple[Ask, Callable[[], None]]:
    """What judges a mutant of any kind, and what ends its process."""
    of_ptx, close = ptx_asker(kernel, steps, limits, emulation)

    def judge(mutant: Mutant) -> Verdict:
        if mutant.kind == "schedule":
            return schedules.judge(mutant)
        if mutant.kind == "source":
            return sources.judge(mutant, steps, limits)
        return of_ptx(mutant)

    return judge, close


def _scheduled(target: Target, rungs: Sequence[Rung]) -> tuple[Rung, ...]:
    """The rungs with the schedule that the kernel computes, where it computes its own."""
    if target.raw is None:
        return tuple(rungs)
    return tuple(
        replace(one, subject=replace(one.subject, problem=target.scheduled(one.subject.problem)))
        for one in rungs
    )
