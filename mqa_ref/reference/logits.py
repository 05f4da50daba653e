"""The bit-accurate logits of a whole problem, run by run, so that memory stays bounded."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.flow import Flow
from mqa_ref.numerics import MachineModel, mma
from mqa_ref.problem import Problem
from mqa_ref.reference.epilogue import Generation, apply, checked_request
from mqa_ref.reference.runs import runs


def reference_logits(
    problem: Problem, flow: Flow, machine: str | MachineModel = "sm100", *, generation: Generation = "folded"
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The bits every valid logit of ``problem`` must have.

    ``machine``: the tensor core to follow, a name in ``numerics.MACHINES`` or a model. ``generation``: how the fp32
    epilogue does its ReLU, see ``epilogue.GENERATIONS``; it changes nothing in the fp16 epilogues, whose weights are
    ``problem.weights`` rounded to fp16. Returns the bit patterns, uint32 (fp32 output) or uint16 [rows,
    max_context_len], 0 in columns that are not valid, and the mask of the valid ones, bool of the same shape. Of
    ``block_table`` only the entries of pages with tokens are read.

    Raises InputError for an unknown machine or generation. Standing: that of the machine model; the order of the
    epilogue is the kernel's (op.md), its operations are doc and hw. docs/flows.md has the special values.
    """
    model = checked_request(machine, generation)
    mask = problem.valid_mask()
    bits: NDArray[Any] = np.zeros(mask.shape, flow.bits_dtype)
    for run in runs(problem):
        # q first: a product has no order, and so the heads lie where the epilogue wants them.
        acc = mma(run.queries, run.keys, machine=model, acc=flow.acc)
        acc = acc.reshape(problem.next_n, problem.heads, -1)
        bits[run.rows, run.columns] = apply(flow, acc, run.weights, run.scales, generation)
    bits[~mask] = 0
    return bits, mask
