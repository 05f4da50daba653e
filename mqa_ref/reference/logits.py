"""The bit-accurate logits of a whole problem, sequence by sequence in runs of tokens, so that memory stays bounded."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.flow import Flow
from mqa_ref.numerics import MachineModel, mma
from mqa_ref.problem import Problem
from mqa_ref.reference.epilogue import Generation, apply, checked_request

_RUN_TOKENS = 1024
"""Tokens in work at once; a multiple of every page size."""


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
    keys, scales = problem.key_codes, problem.scale_bits
    weights = problem.weights.view(np.uint32).reshape(problem.batch, problem.next_n, problem.heads)
    for sequence, length in enumerate(problem.context_lens.tolist()):
        rows = slice(sequence * problem.next_n, (sequence + 1) * problem.next_n)
        queries = problem.q[sequence].reshape(problem.next_n * problem.heads, problem.head_dim)
        for first in range(0, length, _RUN_TOKENS):
            stop = min(first + _RUN_TOKENS, length)
            pages = problem.block_table[sequence, first // problem.page : -(-stop // problem.page)]
            run_keys = keys[pages].reshape(-1, problem.head_dim)[: stop - first]
            run_scales = scales[pages].reshape(-1)[: stop - first]
            # q first: a product has no order, and so the heads lie where the epilogue wants them.
            acc = mma(queries, run_keys, machine=model, acc=flow.acc)
            acc = acc.reshape(problem.next_n, problem.heads, stop - first)
            bits[rows, first:stop] = apply(flow, acc, weights[sequence], run_scales, generation)
    bits[~mask] = 0
    return bits, mask
