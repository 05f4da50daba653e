"""What a run is asked to do, checked as a whole before anything is compiled: every bad argument at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mqa_ref.emulator.policy import ORDERS
from mqa_ref.errors import Fault, InputError
from mqa_ref.flow import FLOWS, Flow
from mqa_ref.kernel.targets import CONTRACT_OPTIONS, Declared, Options, Target, resolve
from mqa_ref.numerics import MACHINES, MachineModel
from mqa_ref.problem import Problem
from mqa_ref.reference import GENERATIONS, Generation
from mqa_ref.verification.full import full
from mqa_ref.verification.native import require_for
from mqa_ref.verification.probes import probes
from mqa_ref.verification.problems import NamedProblem, quick

BACKENDS = ("emulator", "cuda")
LEVELS = ("quick", "full", "ab")
EXPECTATIONS = ("bits", "bound")
HARDWARE = "hardware"
"""The one order in which a GPU runs a launch: its own."""
ALL_FLOWS = "all"

PtxEdit = Callable[[str], str]


@dataclass(frozen=True)
class Side:
    """One of the two kernels of a run. ``declared``: what the reference follows for it. ``options``: constructor
    arguments that the caller chose; they come before those of a problem. ``edit_ptx``: None to run it as it is."""

    kernel: str
    target: Target
    declared: Declared
    options: Mapping[str, Any] = field(default_factory=dict)
    edit_ptx: PtxEdit | None = None

    def options_for(self, problem: NamedProblem) -> dict[str, Any]:
        """The constructor arguments for a problem. What the problem asks of kernels that have it, and this one has not,
        is left out."""
        return {**self.target.own(problem.options or {}), **self.options}

    @property
    def generation(self) -> Generation:
        """The ReLU that the reference follows."""
        return self.declared.generation  # type: ignore[return-value]  # checked with the request


@dataclass(frozen=True)
class Request:
    """A checked request; ``problems`` are named, ``flow`` is parsed (None for all flows), ``machine`` is a
    name or a model, None for that of each kernel, ``orders`` is None for those of
    ``mqa_ref.verification.interleavings``, ``own`` is the kernel under test, ``other`` the baseline, None when there is
    none.
    """

    own: Side
    backend: str
    flow: Flow | None
    problems: tuple[NamedProblem, ...]
    level: str
    machine: str | MachineModel | None
    orders: tuple[str, ...] | None
    seed: int
    other: Side | None = None

    @property
    def flow_name(self) -> str:
        """The flow's name, or "all"."""
        return ALL_FLOWS if self.flow is None else str(self.flow)

    def flow_of(self, problem: NamedProblem) -> Flow:
        """The flow that a problem of this request runs with."""
        flow = problem.flow or self.flow
        if flow is None:
            raise AssertionError("a request for all flows has a flow in each problem")
        return flow

    @property
    def distributions(self) -> tuple[str, ...]:
        """The packages that the kernels come from."""
        sides = (self.own,) if self.other is None else (self.own, self.other)
        return tuple(dict.fromkeys(s.target.distribution for s in sides if s.target.distribution))

    @property
    def machine_name(self) -> str:
        """The name of the machine model that the kernel under test is held to."""
        machine = self.machine or self.own.declared.machine
        return machine if isinstance(machine, str) else machine.name


def named(problems: Iterable[Problem | NamedProblem]) -> tuple[NamedProblem, ...]:
    """Problems with names; one without gets its case id."""
    return tuple(
        one
        if isinstance(one, NamedProblem)
        else NamedProblem(f"problem-{one.case_id}", one, "given by the caller")
        for one in problems
    )


def of_level(level: str, flow: str, options: Options = CONTRACT_OPTIONS) -> tuple[NamedProblem, ...]:
    """The problems of a level for a flow or for all of them; "quick" runs the flows other than the default in one
    order only, "full" crosses the ``options`` of the kernel, "ab" has the probes alone."""
    if level == "full":
        return full(flow, options)
    found = probes() if level == "ab" else quick()
    return found if flow != ALL_FLOWS else in_all_flows(found)


def in_all_flows(problems: Sequence[NamedProblem]) -> tuple[NamedProblem, ...]:
    """Each problem once with every flow, but those that have one already."""
    open_ones = [one for one in problems if one.flow is None]
    settled = [one for one in problems if one.flow is not None]
    expanded = (
        replace(
            one,
            name=f"{one.name}/{flow}",
            flow=Flow.parse(flow),
            interleaving="" if flow == FLOWS[0] else "eager",
            select=(*(one.select or ("--case", one.name)), "--flow", flow),
        )
        for flow in FLOWS
        for one in open_ones
    )
    return (*settled, *expanded)


def by_name(
    names: Sequence[str], level: str = "quick", flow: str = "", kernel: str = "builtin"
) -> tuple[NamedProblem, ...]:
    """Named problems of a level in its order, for a kernel; all of them for no name. InputError for unknown names."""
    crossed = resolve(kernel).options or CONTRACT_OPTIONS
    known = {one.name: one for one in (*(full(flow, crossed) if level == "full" else quick()), *probes())}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError(Fault("case", repr(name), "one of " + ", ".join(known)) for name in unknown)
    return tuple(one for name, one in known.items() if not names or name in names)


def _choice(argument: str, value: object, choices: Iterable[str]) -> list[Fault]:
    allowed = tuple(choices)
    good = isinstance(value, str) and value in allowed
    return [] if good else [Fault(argument, repr(value), "one of " + ", ".join(allowed))]


def _flow_faults(flow: object) -> tuple[Flow | None, list[Fault]]:
    if isinstance(flow, Flow):
        return flow, []
    if flow == ALL_FLOWS:
        return None, []
    try:
        return Flow.parse(flow), []  # type: ignore[arg-type]  # parse refuses what is no string
    except InputError as error:
        return None, list(error.faults)


def _kernel_faults(kernel: object, argument: str = "kernel") -> tuple[Target | None, list[Fault]]:
    if not isinstance(kernel, str):
        return None, [Fault(argument, repr(kernel), "the name of a kernel")]
    try:
        return resolve(kernel), []
    except InputError as error:
        return None, [Fault(argument, fault.value, fault.expected) for fault in error.faults]


def _option_faults(options: Mapping[str, Any] | None, target: Target | None) -> list[Fault]:
    """The arguments that the kernel has not; of a kernel from a file that is known only once it is loaded."""
    if target is None or target.options is None:
        return []
    known = {name for name, _ in target.options}
    expected = "a constructor argument of the kernel: " + ", ".join(sorted(known))
    unknown = [(name, value) for name, value in (options or {}).items() if name not in known]
    return [Fault(f"option {name}", repr(value), expected) for name, value in unknown]


def _order_faults(orders: object, on: object) -> list[Fault]:
    if orders is None:
        return []
    if on == "cuda":
        told = f"nothing, or {HARDWARE} alone: a GPU has its own order"
        return [] if tuple(orders) == (HARDWARE,) else [Fault("orders", repr(orders), told)]  # type: ignore[arg-type]
    expected = "a non-empty sequence of " + ", ".join(ORDERS)
    if isinstance(orders, str) or not isinstance(orders, Sequence) or not orders:
        return [Fault("orders", repr(orders), expected)]
    faults = [fault for order in orders for fault in _choice("orders", order, ORDERS)]
    return faults or (
        [Fault("orders", repr(orders), "each order once")] if len(set(orders)) < len(orders) else []
    )


def _problem_faults(problems: object) -> list[Fault]:
    if problems is None:
        return []
    expected = "a sequence of Problem and NamedProblem"
    if not isinstance(problems, Sequence) or isinstance(problems, str):
        return [Fault("problems", type(problems).__name__, expected)]
    return [
        Fault(f"problems[{i}]", type(one).__name__, "a Problem or a NamedProblem")
        for i, one in enumerate(problems)
        if not isinstance(one, Problem | NamedProblem)
    ]


def _schedule_faults(problems: Iterable[NamedProblem]) -> list[Fault]:
    """The schedules that were forced upon their problems."""
    return [
        Fault(
            f"schedule of {one.name}",
            str(one.problem.schedule_faults[0]),
            "a schedule that fits the lengths; to launch it all the same, force it (--force, force=True)",
        )
        for one in problems
        if one.problem.schedule_faults
    ]


def check_request(
    *,
    kernel: str,
    on: str,
    flow: str | Flow,
    problems: Sequence[Problem | NamedProblem] | None,
    level: str,
    machine: str | MachineModel | None,
    generation: str | None,
    edit_ptx: PtxEdit | None,
    orders: Sequence[str] | None,
    seed: int,
    baseline: str | None = None,
    force: bool = False,
    options: Mapping[str, Any] | None = None,
    expect: str | None = None,
) -> Request:
    """The request, or InputError with every fault, or NotAvailable for the backend "cuda" where the GPU, the driver or
    the package is not there."""
    parsed, faults = _flow_faults(flow)
    target, kernel_faults = _kernel_faults(kernel)
    faults += kernel_faults
    other, baseline_faults = (None, []) if baseline is None else _kernel_faults(baseline, "baseline")
    faults += baseline_faults
    faults += _choice("on", on, BACKENDS) + _choice("level", level, LEVELS)
    named_machine = machine is not None and not isinstance(machine, MachineModel)
    faults += _choice("machine", machine, MACHINES) if named_machine else []
    faults += [] if expect is None else _choice("expect", expect, EXPECTATIONS)
    faults += [] if generation is None else _choice("generation", generation, GENERATIONS)
    faults += _option_faults(options, target)
    problem_faults = _problem_faults(problems)
    chosen: tuple[NamedProblem, ...] = ()
    if problems is None:
        crossed = CONTRACT_OPTIONS if target is None or target.options is None else target.options
        chosen = of_level(level, str(flow), crossed) if not faults else ()
        if other is not None and level != "ab" and not faults:
            chosen = (*chosen, *of_level("ab", str(flow)))
    elif not problem_faults:
        chosen = named(problems)
        chosen = in_all_flows(chosen) if flow == ALL_FLOWS else chosen
    faults += _order_faults(orders, on) + problem_faults + ([] if force else _schedule_faults(chosen))
    if edit_ptx is not None and not callable(edit_ptx):
        faults.append(Fault("edit_ptx", repr(edit_ptx), "None or a function from PTX text to PTX text"))
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**64:
        faults.append(Fault("seed", repr(seed), "an integer in 0..2^64-1"))
    if faults or target is None:
        raise InputError(faults)
    if on == "cuda":
        for one in (target, other):
            if one is not None:
                require_for(one)
    declared = target.declared if generation is None else replace(target.declared, generation=generation)
    declared = replace(declared, order=None) if expect == "bound" else declared
    return Request(
        own=Side(kernel, target, declared, dict(options or {}), edit_ptx),
        backend=on,
        flow=parsed,
        problems=chosen,
        level=level if problems is None else "given",
        machine=machine,
        orders=(HARDWARE,) if on == "cuda" else None if orders is None else tuple(orders),
        seed=seed,
        other=None if other is None or baseline is None else Side(baseline, other, other.declared),
    )
