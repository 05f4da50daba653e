"""How large errors really get: the bit-accurate logits of a stream of attacks, held against both bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mqa_ref.errors import Fault, InputError
from mqa_ref.flow import Flow
from mqa_ref.numerics import MachineModel
from mqa_ref.problem import Problem
from mqa_ref.reference.attacks import FLOAT_KINDS, attack_problems
from mqa_ref.reference.bounds import any_order_bounds, own_order_bounds
from mqa_ref.reference.epilogue import Generation
from mqa_ref.reference.logits import reference_logits


@dataclass(frozen=True)
class Observation:
    """``elements``: valid logits looked at. ``bounded``: those with a bound, that is, which may not overflow and depend
    on no inf or NaN. ``own_order``, ``any_order``: the largest error among these as a share of either bound; above 1
    the bound is wrong (inf: a logit overflowed that should not)."""

    elements: int
    bounded: int
    own_order: float
    any_order: float

    def with_(self, other: Observation) -> Observation:
        """Both together."""
        return Observation(
            self.elements + other.elements,
            self.bounded + other.bounded,
            max(self.own_order, other.own_order),
            max(self.any_order, other.any_order),
        )


NOTHING = Observation(0, 0, 0.0, 0.0)


def observe(
    flow: Flow,
    machine: str | MachineModel = "sm100",
    *,
    seed: int = 0,
    elements: int = 100_000,
    generation: Generation = "folded",
    floats: Sequence[str] = FLOAT_KINDS,
) -> Observation:
    """The largest errors of ``reference_logits`` on ``attack_problems(seed, floats)``, until at least ``elements``
    logits had a bound.

    The same arguments give the same problems and logits everywhere; the shares may differ in their last digits, as
    float64 sums do. InputError for a negative seed or fewer than one element, and as ``reference_logits``.
    """
    faults = [
        Fault(name, str(value), f"an integer, at least {least}")
        for name, value, least in (("seed", seed, 0), ("elements", elements, 1))
        if value < least
    ]
    if faults:
        raise InputError(faults)
    found = NOTHING
    for problem in attack_problems(seed, floats):
        found = found.with_(observe_problem(problem, flow, machine, generation))
        if found.bounded >= elements:
            break
    return found


def observe_problem(
    problem: Problem, flow: Flow, machine: str | MachineModel = "sm100", generation: Generation = "folded"
) -> Observation:
    """The same for one problem."""
    bits, mask = reference_logits(problem, flow, machine, generation=generation)
    own = own_order_bounds(problem, flow, machine, generation=generation)
    every = any_order_bounds(problem, flow, machine, generation=generation)
    bounded = mask & ~own.special & ~own.may_overflow
    return Observation(
        int(mask.sum()),
        int(bounded.sum()),
        float(own.ratios(bits, flow.out).max()),
        float(every.ratios(bits, flow.out).max()),
    )
