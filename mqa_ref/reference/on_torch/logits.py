"""The logits of a problem computed on a torch device, run by run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from mqa_ref.flow import Flow
from mqa_ref.numerics import MachineModel
from mqa_ref.problem import Problem
from mqa_ref.reference.epilogue import PARTIAL_SUMS, Generation, checked_request
from mqa_ref.reference.on_torch import operations as op
from mqa_ref.reference.on_torch.operations import Tensor
from mqa_ref.reference.on_torch.tensorcore import Tables, products
from mqa_ref.reference.runs import Run, runs

_RELU: dict[str, Callable[[Tensor], Tensor]] = {
    "folded": op.twice_relu32,
    "max": op.relu,
    "max_nan": op.relu_nan,
}
_STORED = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
_NAN = {"fp32": (torch.int32, 0x7FFFFFFF), "fp16": (torch.int16, 0x7FFF), "bf16": (torch.int16, 0x7FFF)}


def device_logits(
    problem: Problem, flow: Flow, machine: str | MachineModel, generation: Generation, device: Any
) -> tuple[Tensor, Tensor]:
    """The logits [rows, max_context_len] in the output's dtype and the mask of the valid ones, both on ``device``.

    The bits are those of ``reference_logits`` with the order "four_chains". Raises InputError for an unknown machine or
    generation.
    """
    model = checked_request(machine, generation)
    tables = Tables(device)
    mask = torch.from_numpy(problem.valid_mask()).to(device)
    out = torch.zeros(mask.shape, dtype=_STORED[flow.out], device=device)
    for run in runs(problem):
        acc = products(_codes(run.queries, device), _codes(run.keys, device), tables, model, flow.acc)
        heads = acc.reshape(problem.next_n, problem.heads, -1)
        out[run.rows, run.columns] = _canonical(
            _store(_sum(run, heads, flow, generation, device), flow), flow
        )
    out[~mask] = 0
    return out, mask


def _sum(run: Run, acc: Tensor, flow: Flow, generation: Generation, device: Any) -> Tensor:
    """From accumulators [next_n, H, tokens] to scaled sums [next_n, tokens] in the epilogue's format."""
    weights, scales = _numbers(run.weights, device), _numbers(run.scales, device)
    if flow.epi == "fp32":
        sums = _partial_sums(_RELU[generation](acc), weights, op.fma32)
        total = op.add32(op.add32(op.add32(sums[:, 0], sums[:, 1]), sums[:, 2]), sums[:, 3])
        total = op.mul32(total, torch.full_like(total, 0.5)) if generation == "folded" else total
        return op.mul32(total, scales)
    positive = op.relu(acc if flow.acc == "fp16" else op.round16(acc))
    sums = _partial_sums(positive, op.round16(weights), op.fma16)
    pair = op.add16(sums[:, 0:2], sums[:, 2:4])
    return op.mul16(op.add16(pair[:, 0], pair[:, 1]), op.round16(scales))


def _partial_sums(positive: Tensor, weights: Tensor, fma: Callable[..., Tensor]) -> Tensor:
    next_n, heads, tokens = positive.shape
    parts = (next_n, heads // PARTIAL_SUMS, PARTIAL_SUMS)
    values, factors = positive.reshape(*parts, tokens), weights.reshape(*parts, 1)
    sums = torch.zeros((next_n, PARTIAL_SUMS, tokens), dtype=torch.float64, device=positive.device)
    for step in range(parts[1]):
        sums = fma(values[:, step], factors[:, step], sums)
    return sums


def _store(total: Tensor, flow: Flow) -> Tensor:
    """To the output's dtype; from fp16 to bf16 by way of fp32, which is exact."""
    if flow.out == "fp16":
        return op.round16(total).half()
    return total.float().to(_STORED[flow.out])


def _canonical(stored: Tensor, flow: Flow) -> Tensor:
    words, nan = _NAN[flow.out]
    bits = stored.contiguous().view(words)
    bits[torch.isnan(stored)] = nan
    return bits.view(stored.dtype)


def _codes(codes: Any, device: Any) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(codes).astype(np.int64)).to(device)


def _numbers(bits: Any, device: Any) -> Tensor:
    """fp32 codes as float64 numbers."""
    return torch.from_numpy(np.array(bits).view(np.float32)).to(device).double()
