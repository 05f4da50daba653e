"""How large errors really get: the bit-accurate logits of a stream of attacks, in the kernel's order and in others,
held against both bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mqa_ref.errors import Fault, InputError
from mqa_ref.flow import Flow
from mqa_ref.numerics import MachineModel, cvt_bf16_f32, cvt_f16_f32
from mqa_ref.problem import Problem
from mqa_ref.reference.attacks import FLOAT_KINDS, attack_problems
from mqa_ref.reference.bounds import any_order_bounds, own_order_bounds
from mqa_ref.reference.epilogue import Generation
from mqa_ref.reference.logits import reference_logits
from mqa_ref.reference.reordered import ORDERS, reordered_logits


@dataclass(frozen=True)
class Observation:
    """``elements``: valid logits looked at. ``bounded``: those with a bound, that is, which may not overflow and depend
    on no inf or NaN. ``own_order``: the largest error of ``reference_logits`` as a share of its bound. ``any_order``:
    that of these and of ``reordered.ORDERS``, which the problems take in turn, as a share of the bound for any order.
    Above 1 a bound is wrong (inf: a logit overflowed that should not)."""

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


_NOTHING = Observation(0, 0, 0.0, 0.0)


def observe(
    flow: Flow,
    machine: str | MachineModel = "sm100",
    *,
    seed: int = 0,
    elements: int = 100_000,
    generation: Generation = "folded",
    floats: Sequence[str] = FLOAT_KINDS,
) -> Observation:
    """The largest errors of ``flow`` on ``attack_problems(seed, floats)``, until at least ``elements`` logits had a
    bound.

    The same arguments give the same problems and logits everywhere; the shares may differ in their last digits, as
    float64 sums do. InputError for a negative seed or fewer than one element, and as ``reference_logits``.
    """
    given = (flow,), machine, seed, elements, generation, floats
    return observe_flows(*given)[flow]


def observe_flows(
    flows: Sequence[Flow],
    machine: str | MachineModel,
    seed: int,
    elements: int,
    generation: Generation = "folded",
    floats: Sequence[str] = FLOAT_KINDS,
) -> dict[Flow, Observation]:
    """``observe`` for flows that differ only in their output, until each has enough, at about the cost of one.

    Their logits and bounds are those of the flow with fp32 output, converted once more (or back, without error).
    """
    faults = [
        Fault(name, str(value), f"an integer, at least {least}")
        for name, value, least in (("seed", seed, 0), ("elements", elements, 1))
        if value < least
    ]
    if len({(flow.acc, flow.epi) for flow in flows}) != 1:
        faults.append(Fault("flows", ", ".join(map(str, flows)), "flows of one accumulator and one epilogue"))
    if faults:
        raise InputError(faults)
    found = dict.fromkeys(flows, _NOTHING)
    for number, problem in enumerate(attack_problems(seed, floats)):
        order = list(ORDERS)[number % len(ORDERS)]
        for flow, more in _observe(problem, flows, machine, order, generation).items():
            found[flow] = found[flow].with_(more)
        if min(seen.bounded for seen in found.values()) >= elements:
            break
    return found


def _observe(
    problem: Problem, flows: Sequence[Flow], machine: str | MachineModel, order: str, generation: Generation
) -> dict[Flow, Observation]:
    """One problem, in its own order and in ``order`` of ``reordered.ORDERS``."""
    plain = replace(flows[0], out="fp32")
    bits, mask = reference_logits(problem, plain, machine, generation=generation)
    other = reordered_logits(problem, plain, machine, order, generation=generation)[0]
    own = own_order_bounds(problem, plain, machine, generation=generation)
    every = any_order_bounds(problem, plain, machine, generation=generation)
    found = {}
    for flow in flows:
        own_out, every_out = (
            bounds if flow.out in ("fp32", flow.epi) else bounds.stored(flow.out) for bounds in (own, every)
        )
        store = _STORES[flow.out]
        found[flow] = Observation(
            int(mask.sum()),
            int((mask & ~own_out.special & ~own_out.may_overflow).sum()),
            float(own_out.ratios(store(bits), flow.out).max()),
            max(float(every_out.ratios(store(codes), flow.out).max()) for codes in (bits, other)),
        )
    return found


def _as_it_is(bits: Any) -> Any:
    return bits


_STORES: Mapping[str, Callable[[Any], Any]] = {"fp32": _as_it_is, "fp16": cvt_f16_f32, "bf16": cvt_bf16_f32}
