"""The logits of kernels that add in another order: what ``bounds.any_order_bounds`` is for, and is attacked with.

No kernel of the field is meant by any of them; together they have what such kernels differ in: the order of the heads
and of K, the number of sums, trees, separate rounding of products, dot products joined from parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.errors import Fault, InputError
from mqa_ref.flow import Flow
from mqa_ref.numerics import MachineModel, add_f16, add_f32, fma_f16, fma_f32, mma, mul_f16, mul_f32
from mqa_ref.numerics.machines import STEP_K
from mqa_ref.numerics.samples import Source
from mqa_ref.problem import Problem
from mqa_ref.reference.epilogue import Generation, checked_request, finish, relus
from mqa_ref.reference.runs import Run, runs

Bits = NDArray[Any]
Binary = Callable[[Bits, Bits], Bits]


@dataclass(frozen=True)
class Order:
    """How a kernel adds. ``sums``: partial sums, which the heads take in turn, joined pairwise at the end; as many as
    heads make it a tree. ``fused``: whether a product is rounded together with the sum. ``shuffled``: whether heads and
    K are taken in random order. ``split``: whether the K = 32 steps are not chained but added pairwise afterwards."""

    sums: int
    fused: bool
    shuffled: bool
    split: bool


_TREE = 256
ORDERS: Mapping[str, Order] = {
    "serial": Order(1, fused=True, shuffled=False, split=False),
    "serial, unfused": Order(1, fused=False, shuffled=False, split=False),
    "shuffled": Order(4, fused=True, shuffled=True, split=False),
    "two sums, split K": Order(2, fused=True, shuffled=False, split=True),
    "pairwise": Order(_TREE, fused=False, shuffled=False, split=False),
    "shuffled tree, split K": Order(_TREE, fused=False, shuffled=True, split=True),
}
"""The orders there are, by name."""

_OPERATIONS: Mapping[str, tuple[Callable[..., Bits], Binary, Binary]] = {
    "fp32": (fma_f32, mul_f32, add_f32),
    "fp16": (fma_f16, mul_f16, add_f16),
}


def reordered_logits(
    problem: Problem,
    flow: Flow,
    machine: str | MachineModel = "sm100",
    order: str = "serial",
    *,
    generation: Generation = "folded",
    seed: int = 0,
) -> tuple[Bits, NDArray[np.bool_]]:
    """The logits of a kernel that adds in ``order``, a name in ORDERS, and is otherwise as ``reference_logits``.

    ``seed``: of the shuffled orders. Result and errors as there, and InputError for an unknown order. The machine
    "exact" has one step over all K and does not split it. Standing: that of the operations.
    """
    model = checked_request(machine, generation)
    if order not in ORDERS:
        raise InputError([Fault("order", repr(order), "one of " + ", ".join(ORDERS))])
    rule, source = ORDERS[order], Source(seed)
    mask = problem.valid_mask()
    bits: Bits = np.zeros(mask.shape, flow.bits_dtype)
    for run in runs(problem):
        next_n, heads = run.weights.shape
        acc = _dots(run, flow, model, rule, source).reshape(next_n, heads, -1)
        positive, weights = relus(flow, acc, run.weights, generation)
        if rule.shuffled:
            at = _permutation(source, heads)
            positive, weights = positive[:, at], weights[:, at]
        total = _sum(positive, weights, rule, flow.epi)
        bits[run.rows, run.columns] = finish(flow, total, run.scales, generation)
    bits[~mask] = 0
    return bits, mask


def _permutation(source: Source, count: int) -> NDArray[np.intp]:
    return np.argsort(source.words(count), kind="stable")


def _dots(run: Run, flow: Flow, model: MachineModel, rule: Order, source: Source) -> Bits:
    queries, keys = run.queries, run.keys
    if rule.shuffled:
        at = _permutation(source, queries.shape[1])
        queries, keys = queries[:, at], keys[:, at]
    if not rule.split or model.fraction_bits is None:
        return mma(queries, keys, machine=model, acc=flow.acc)
    parts = [
        mma(queries[:, k : k + STEP_K], keys[:, k : k + STEP_K], machine=model, acc=flow.acc)
        for k in range(0, queries.shape[1], STEP_K)
    ]
    return _pairwise(parts, add_f16 if flow.acc == "fp16" else add_f32)


def _sum(positive: Bits, weights: Bits, rule: Order, epi: str) -> Bits:
    """The sum over the heads, [next_n, tokens], of ``positive`` [next_n, H, tokens] and ``weights`` [next_n, H]."""
    fma, mul, add = _OPERATIONS[epi]
    sums: list[Bits] = []
    for head in range(positive.shape[1]):
        value, weight = positive[:, head], weights[:, head, None]
        at = head % rule.sums
        if head < rule.sums:
            sums.append(mul(value, weight))
        elif rule.fused:
            sums[at] = fma(value, weight, sums[at])
        else:
            sums[at] = add(sums[at], mul(value, weight))
    return _pairwise(sums, add)


def _pairwise(terms: list[Bits], add: Binary) -> Bits:
    while len(terms) > 1:
        joined = [add(left, right) for left, right in zip(terms[::2], terms[1::2], strict=False)]
        terms = joined + terms[2 * len(joined) :]
    return terms[0]
