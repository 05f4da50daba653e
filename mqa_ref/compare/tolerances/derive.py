"""Measures what tolerances.toml says: the twins of the reference against each other, and errors against their bounds on
the attacks of ``mqa_ref.reference.observations``."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from mqa_ref.compare.tolerances.model import BoundRow, FlowTolerances, SameModelRow, Tolerances
from mqa_ref.errors import Fault, InputError
from mqa_ref.flow import FLOWS, Flow
from mqa_ref.numerics import FORMATS, canonical_nan
from mqa_ref.numerics import MACHINES as MODELS
from mqa_ref.numerics.samples import Source
from mqa_ref.reference import Generation, Observation, reference_logits, scalar_logit
from mqa_ref.reference.attacks import PLAIN_FLOATS, attack_problems
from mqa_ref.reference.observations import observe_flows

MACHINES = tuple(MODELS)
"""The machines that are measured."""
FACTOR = 1.0
"""Bounds are proved (docs/bounds.md), so nothing is added to them."""
MEASURED: tuple[Generation, ...] = ("folded", "max")
"""Those of an fp32 epilogue whose bounds differ: "max_nan" is "max" wherever a bound says anything."""
_PLACES = 8
"""Logits of each problem that the scalar twin, which is slow, computes too."""
_TWIN_PROBLEMS = 12

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Measured:
    """Of one flow over all machines and generations: ``seen`` on all attacks, ``plain`` on the plain ones;
    ``bits``: the most in which the twins differ, in ``twins`` logits."""

    seen: Observation
    plain: Observation
    bits: int
    twins: int

    def with_(self, other: Measured) -> Measured:
        """Both together."""
        return Measured(
            self.seen.with_(other.seen),
            self.plain.with_(other.plain),
            max(self.bits, other.bits),
            self.twins + other.twins,
        )


def measure(
    *,
    elements: int,
    seed: int,
    flows: Sequence[Flow],
    machines: Sequence[str] = MACHINES,
    progress: Progress | None = None,
) -> dict[str, Measured]:
    """Each flow by name. ``elements``: logits with a bound for each flow, machine and generation, once of all
    attacks and once of the plain ones. Raises InputError."""
    unknown = [name for name in machines if name not in MODELS]
    faults = [Fault("machines", name, "one of " + ", ".join(MODELS)) for name in unknown]
    faults += [] if machines else [Fault("machines", "none", "at least one")]
    faults += [
        Fault(name, str(value), f"an integer, at least {least}")
        for name, value, least in (("seed", seed, 0), ("elements", elements, 1))
        if value < least
    ]
    if faults:
        raise InputError(faults)
    found: dict[str, Measured] = {}
    steps = list(_steps(flows, machines))
    for number, (group, machine, generation) in enumerate(steps):
        if progress is not None:
            progress(number, len(steps), f"{group[0].acc}-{group[0].epi} {machine} {generation}")
        seen = observe_flows(group, machine, seed, elements, generation)
        plain = observe_flows(group, machine, seed, elements, generation, PLAIN_FLOATS)
        for flow in group:
            one = Measured(seen[flow], plain[flow], *_twins(flow, machine, generation, seed))
            known = found.get(str(flow))
            found[str(flow)] = one if known is None else known.with_(one)
    if progress is not None:
        progress(len(steps), len(steps), "")
    return found


def derive(
    *,
    elements: int,
    seed: int,
    date: dt.date,
    flows: Sequence[Flow] | None = None,
    machines: Sequence[str] = MACHINES,
    progress: Progress | None = None,
) -> Tolerances:
    """The content of tolerances.toml, measured anew; ``date`` is the day to write into it. Arguments as ``measure``."""
    chosen = [Flow.parse(name) for name in FLOWS] if flows is None else list(flows)
    found = measure(elements=elements, seed=seed, flows=chosen, machines=machines, progress=progress)
    rows = {str(flow): _rows(flow, found[str(flow)], date, machines) for flow in chosen}
    return Tolerances(version=1, seed=seed, elements=elements, flows=rows)


def _steps(flows: Sequence[Flow], machines: Sequence[str]) -> Iterator[tuple[list[Flow], str, Generation]]:
    """Flows of one accumulator and epilogue are measured together."""
    stages = dict.fromkeys((flow.acc, flow.epi) for flow in flows)
    for acc, epi in stages:
        group = [flow for flow in flows if (flow.acc, flow.epi) == (acc, epi)]
        for machine in machines:
            for generation in MEASURED if epi == "fp32" else MEASURED[:1]:
                yield group, machine, generation


def _twins(flow: Flow, machine: str, generation: Generation, seed: int) -> tuple[int, int]:
    """The most bits in which the two references differ in one logit, and how many logits were compared."""
    fmt, source, worst, tried = FORMATS[flow.out], Source(seed), 0, 0
    for problem in islice(attack_problems(seed), _TWIN_PROBLEMS):
        bits = canonical_nan(reference_logits(problem, flow, machine, generation=generation)[0], fmt)
        for place in (source.words(_PLACES) % np.uint64(bits.size)).tolist():
            row, column = divmod(int(place), problem.max_context_len)
            twin = scalar_logit(problem, flow, machine, row, column, generation)
            worst = max(worst, (twin ^ int(bits[row, column])).bit_count())
            tried += 1
    return worst, tried


def _rows(flow: Flow, found: Measured, date: dt.date, machines: Sequence[str]) -> FlowTolerances:
    standing = {name: MODELS[name].standing(flow.acc) for name in machines}

    def bound(compared: str, observed: float, plain: float) -> BoundRow:
        observed, plain = rounded_up(observed), rounded_up(plain)
        return BoundRow(
            compared=compared,
            samples=found.seen.bounded + found.plain.bounded,
            date=date,
            standing=standing,
            factor=FACTOR,
            observed=max(observed, plain),
            plain=plain,
            margin=round(FACTOR / plain, 4),
        )

    return FlowTolerances(
        same_model=SameModelRow(
            compared="bits with reference_logits; measured: its two twins",
            samples=found.twins,
            date=date,
            standing=standing,
            bits=0,
            observed=found.bits,
            margin=-found.bits,
        ),
        exact=bound(
            "each logit with the true one, within factor * own_order_bounds",
            found.seen.own_order,
            found.plain.own_order,
        ),
        foreign_order=bound(
            "each logit with the true one, within factor * any_order_bounds",
            found.seen.any_order,
            found.plain.any_order,
        ),
    )


def rounded_up(share: float) -> float:
    """Six decimals, never below; sums in float64 may differ in their last digits elsewhere."""
    return math.ceil(share * 1e6) / 1e6
