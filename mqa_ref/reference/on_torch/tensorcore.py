"""``numerics.mma`` in torch: dot products of e4m3fn codes as chains of K = 32 steps. Rules, bounds and proofs are
those of ``mqa_ref.numerics.tensorcore``; here a step that cuts anything is done over for the whole block."""

from __future__ import annotations

from typing import Any

import torch

from mqa_ref.numerics import E4M3_EXPONENT, E4M3_VALUE, MachineModel
from mqa_ref.numerics.formats import FP32
from mqa_ref.numerics.machines import ACCUMULATORS, STEP_K
from mqa_ref.reference.on_torch.operations import Tensor, round16, round32

_FAST_MIN_FRACTION_BITS = 20


class Tables:
    """Value and exponent of each e4m3fn code on a device."""

    def __init__(self, device: Any) -> None:
        self.value = torch.from_numpy(E4M3_VALUE.copy()).to(device)
        self.exponent = torch.from_numpy(E4M3_EXPONENT.astype("int64")).to(device)


def products(a: Tensor, b: Tensor, tables: Tables, model: MachineModel, acc: str) -> Tensor:
    """``a @ b.T`` for codes [M, K] and [N, K], int64, as float64 numbers [M, N] of the accumulator format."""
    left, right = tables.value[a], tables.value[b]
    if model.fraction_bits is None:
        return _final(left @ right.T, model, acc)
    a_exp, b_exp = tables.exponent[a], tables.exponent[b]
    addend = torch.zeros((len(a), len(b)), dtype=torch.float64, device=a.device)
    limit = 2.0 ** (model.fraction_bits - 17) if model.fraction_bits >= _FAST_MIN_FRACTION_BITS else 0.0
    for start in range(0, a.shape[1], STEP_K):
        part = slice(start, start + STEP_K)
        x, y = left[:, part], right[:, part]
        total = addend + x @ y.T
        uncut = addend.abs() + x.abs() @ y.abs().T < limit
        if not bool(uncut.all()):
            cut = _cut_step(x, y, a_exp[:, part], b_exp[:, part], addend, model.fraction_bits, acc)
            total = torch.where(uncut, total, cut)
        addend = _final(total, model, acc)
    return addend


def _cut_step(
    x: Tensor, y: Tensor, a_exp: Tensor, b_exp: Tensor, addend: Tensor, fraction_bits: int, acc: str
) -> Tensor:
    """The exact sum of the 33 cut terms."""
    fmt = ACCUMULATORS[acc]
    exponent = ((addend.view(torch.int64) >> 52) & 0x7FF) - 1023
    largest = exponent.clamp(fmt.min_exponent, fmt.bias + 1)
    for k in range(STEP_K):
        largest = torch.maximum(largest, a_exp[:, k, None] + b_exp[None, :, k])
    scale = _power_of_two(fraction_bits - largest)
    total = torch.trunc(addend * scale)
    for k in range(STEP_K):
        total = total + torch.trunc((x[:, k, None] * y[None, :, k]) * scale)
    return total * _power_of_two(largest - fraction_bits)


def _power_of_two(exponent: Tensor) -> Tensor:
    return ((exponent + 1023) << 52).view(torch.float64)


def _final(total: Tensor, model: MachineModel, acc: str) -> Tensor:
    """The one rounding of exact sums into the accumulator format."""
    rule = model.final(acc)
    total = (total + 0.0).contiguous()  # -0 becomes +0
    if acc == "fp16":
        return round16(total)
    if rule.rounding == "rz":
        total = (total.view(torch.int64) & -(1 << (52 - rule.fraction_bits))).view(torch.float64)
        if rule.fraction_bits < FP32.fraction_bits:
            unit = 2.0 ** (FP32.min_exponent - rule.fraction_bits)
            tiny = torch.trunc(total / unit) * unit + 0.0
            total = torch.where(total.abs() < 2.0**FP32.min_exponent, tiny, total)
    return round32(total)
