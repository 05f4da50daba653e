"""The bit-accurate logits of a whole problem, run by run, so that memory stays bounded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.flow import Flow
from mqa_ref.numerics import MachineModel, mma
from mqa_ref.problem import Problem
from mqa_ref.reference.epilogue import Generation, checked_request, finish
from mqa_ref.reference.fused import sums as fused
from mqa_ref.reference.orders import SumOrder, checked_order, logits_of
from mqa_ref.reference.runs import Run, runs

Logits = tuple[NDArray[Any], NDArray[np.bool_]]


def reference_logits(
    problem: Problem,
    flow: Flow,
    machine: str | MachineModel = "sm100",
    *,
    generation: Generation = "folded",
    order: SumOrder = "four_chains",
) -> Logits:
    """The bits every valid logit of ``problem`` must have.

    ``machine``: the tensor core to follow, a name in ``numerics.MACHINES`` or a model. ``generation``: how the fp32
    epilogue does its ReLU, see ``epilogue.GENERATIONS``; it changes nothing in the fp16 epilogues, whose weights are
    ``problem.weights`` rounded to fp16. ``order``: in which the heads are added, see ``orders``. Returns the bit
    patterns, uint32 (fp32 output) or uint16 [rows, max_context_len], 0 in columns that are not valid, and the mask of
    the valid ones, bool of the same shape. Of ``block_table`` only the entries of pages with tokens are read. Beside
    the result a few MiB are in use.

    Raises InputError for an unknown machine, generation or order, Unsupported for an order that has no such epilogue.
    Standing: that of the machine model; the order of the epilogue is the kernel's (op.md), its operations are doc and
    hw. docs/flows.md has the special values.
    """
    model = checked_request(machine, generation)
    checked_order(order, flow)
    if order != "four_chains" or not fused.serves(model):
        return plain_logits(problem, flow, model, generation=generation, order=order)
    return _filled(problem, flow, _fused(problem, flow, model, generation))


def plain_logits(
    problem: Problem,
    flow: Flow,
    machine: str | MachineModel = "sm100",
    *,
    generation: Generation = "folded",
    order: SumOrder = "four_chains",
) -> Logits:
    """``reference_logits`` in NumPy, operation by operation: the judge of its compiled twin, and what runs where that
    cannot (``fused.serves``). Arguments, result and errors as there."""
    model = checked_request(machine, generation)
    checked_order(order, flow)
    return _filled(problem, flow, _plain(problem, flow, model, generation, order))


def _filled(problem: Problem, flow: Flow, parts: Iterator[tuple[Run, NDArray[Any]]]) -> Logits:
    mask = problem.valid_mask()
    bits: NDArray[Any] = np.zeros(mask.shape, flow.bits_dtype)
    for run, logits in parts:
        bits[run.rows, run.columns] = logits
    np.copyto(bits, 0, where=~mask)
    return bits, mask


def _plain(
    problem: Problem, flow: Flow, model: MachineModel, generation: Generation, order: SumOrder
) -> Iterator[tuple[Run, NDArray[Any]]]:
    for run in runs(problem):
        # q first: a product has no order, and so the heads lie where the epilogue wants them.
        acc = mma(run.queries, run.keys, machine=model, acc=flow.acc)
        acc = acc.reshape(problem.next_n, problem.heads, -1)
        yield run, logits_of(order, flow, acc, run.weights, run.scales, generation)


def _fused(
    problem: Problem, flow: Flow, model: MachineModel, generation: Generation
) -> Iterator[tuple[Run, NDArray[Any]]]:
    rows = None
    for run in runs(problem):
        if run.rows != rows:
            rows, queries = run.rows, fused.prepare(run, flow)
        total, _ = fused.sums(run, queries, flow, model, generation)
        yield run, finish(flow, total, run.scales, generation)
