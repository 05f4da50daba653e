"""What a run is asked to do, checked as a whole before anything is compiled: every bad argument at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from mqa_ref.emulator.policy import ORDERS
from mqa_ref.errors import Fault, InputError, Unsupported
from mqa_ref.flow import FLOWS, Flow
from mqa_ref.kernel.targets import Target, resolve
from mqa_ref.numerics import MACHINES, MachineModel
from mqa_ref.problem import Problem
from mqa_ref.reference import GENERATIONS, Generation
from mqa_ref.verification.full import full
from mqa_ref.verification.problems import NamedProblem, quick

BACKENDS = ("emulator", "cuda")
LEVELS = ("quick", "full")
SERVED = {"on": ("emulator",)}
ALL_FLOWS = "all"

PtxEdit = Callable[[str], str]


@dataclass(frozen=True)
class Request:
    """A checked request; ``problems`` are named, ``flow`` is parsed (None for all flows), ``machine`` is a
    name or a model, ``orders`` is None for those of ``mqa_ref.verification.interleavings``, ``baseline`` is
    empty when there is none.
    """

    kernel: str
    target: Target
    backend: str
    flow: Flow | None
    problems: tuple[NamedProblem, ...]
    level: str
    machine: str | MachineModel
    generation: Generation
    edit_ptx: PtxEdit | None
    orders: tuple[str, ...] | None
    seed: int
    baseline: str = ""
    baseline_target: Target | None = None

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
    def machine_name(self) -> str:
        """The machine model's name."""
        return self.machine if isinstance(self.machine, str) else self.machine.name


def named(problems: Iterable[Problem | NamedProblem]) -> tuple[NamedProblem, ...]:
    """Problems with names; one without gets its case id."""
    return tuple(
        one
        if isinstance(one, NamedProblem)
        else NamedProblem(f"problem-{one.case_id}", one, "given by the caller")
        for one in problems
    )


def of_level(level: str, flow: str) -> tuple[NamedProblem, ...]:
    """The problems of a level for a flow or for all of them; "quick" runs the flows other than the default in one
    order only."""
    if level == "full":
        return full(flow)
    return quick() if flow != ALL_FLOWS else in_all_flows(quick())


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


def by_name(names: Sequence[str], level: str = "quick", flow: str = "") -> tuple[NamedProblem, ...]:
    """Named problems of a level in its order; all of them for no name. InputError for unknown names."""
    known = {one.name: one for one in (full(flow) if level == "full" else quick())}
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


def _order_faults(orders: object) -> list[Fault]:
    if orders is None:
        return []
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
    machine: str | MachineModel,
    generation: str,
    edit_ptx: PtxEdit | None,
    orders: Sequence[str] | None,
    seed: int,
    baseline: str | None = None,
    force: bool = False,
) -> Request:
    """The request, or InputError with every fault, or Unsupported for what is well formed but not served
    yet."""
    parsed, faults = _flow_faults(flow)
    target, kernel_faults = _kernel_faults(kernel)
    faults += kernel_faults
    other, baseline_faults = (None, []) if baseline is None else _kernel_faults(baseline, "baseline")
    faults += baseline_faults
    faults += _choice("on", on, BACKENDS) + _choice("level", level, LEVELS)
    faults += [] if isinstance(machine, MachineModel) else _choice("machine", machine, MACHINES)
    faults += _choice("generation", generation, GENERATIONS)
    problem_faults = _problem_faults(problems)
    chosen: tuple[NamedProblem, ...] = ()
    if problems is None:
        chosen = of_level(level, str(flow)) if not faults else ()
    elif not problem_faults:
        chosen = named(problems)
        chosen = in_all_flows(chosen) if flow == ALL_FLOWS else chosen
    faults += _order_faults(orders) + problem_faults + ([] if force else _schedule_faults(chosen))
    if edit_ptx is not None and not callable(edit_ptx):
        faults.append(Fault("edit_ptx", repr(edit_ptx), "None or a function from PTX text to PTX text"))
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**64:
        faults.append(Fault("seed", repr(seed), "an integer in 0..2^64-1"))
    if faults or target is None:
        raise InputError(faults)
    if on not in SERVED["on"]:
        raise Unsupported(f"on={on!r} is not part of this version, which has {SERVED['on']}")
    return Request(
        kernel=kernel,
        target=target,
        backend=on,
        flow=parsed,
        problems=chosen,
        level=level if problems is None else "given",
        machine=machine,
        generation=generation,  # type: ignore[arg-type]  # checked above
        edit_ptx=edit_ptx,
        orders=None if orders is None else tuple(orders),
        seed=seed,
        baseline=baseline or "",
        baseline_target=other,
    )
