"""What becomes of the dot products: ReLU, weights, four partial sums, scale, conversion, in the kernel's order.

One function for each epilogue format, and a table of the conversions to the output format. The orders are those of
op.md, "Dtype flows"; docs/flows.md has what they make of special values. The standing of each operation is stated in
``mqa_ref.numerics``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mqa_ref.errors import Fault, InputError
from mqa_ref.flow import FLOWS, Flow
from mqa_ref.numerics import (
    MACHINES,
    MachineModel,
    abs_f32,
    add_f16,
    add_f32,
    cvt_bf16_f32,
    cvt_f16_f32,
    cvt_f32_f16,
    fma_f16,
    fma_f32,
    max_f16,
    max_f32,
    mul_f16,
    mul_f32,
)

Bits32 = NDArray[np.uint32]
Bits16 = NDArray[np.uint16]
Generation = Literal["folded", "max"]

GENERATIONS: tuple[Generation, ...] = ("folded", "max")
"""How the fp32 epilogue does its ReLU: "folded" sums ``x + |x|`` and halves the sum, "max" sums ``max(x, 0)``.

The two differ on overflow, on fp32-subnormal partial sums, and on NaN and -inf (op.md, "Dtype flows"). The fp16
epilogue takes ``max(x, 0)`` in both generations, so there the two names mean the same bits."""

PARTIAL_SUMS = 4
"""Head ``h`` goes to partial sum ``h % 4`` of s0x, s0y, s1x, s1y, heads ascending (op.md, "Dtype flows")."""

SUPPORTED_FLOWS: tuple[str, ...] = FLOWS
"""The names of the flows the reference can compute: all there are."""

_HALF = 0x3F000000


def _twice_relu(x: Bits32) -> Bits32:
    return add_f32(x, abs_f32(x))


def _relu(x: Bits32) -> Bits32:
    return max_f32(x, 0)


_RELU: Mapping[Generation, Callable[[Bits32], Bits32]] = {"folded": _twice_relu, "max": _relu}


def _weighted(positive: NDArray[Any], weights: NDArray[Any], fma: Callable[..., Any]) -> NDArray[Any]:
    """The four partial sums [next_n, 4, tokens] of values [next_n, H, tokens] and weights [next_n, H]."""
    next_n, heads, tokens = positive.shape
    parts = (next_n, heads // PARTIAL_SUMS, PARTIAL_SUMS)
    values, factors = positive.reshape(*parts, tokens), weights.reshape(*parts, 1)
    sums = np.zeros((next_n, PARTIAL_SUMS, tokens), positive.dtype)
    for step in range(parts[1]):
        sums = fma(values[:, step], factors[:, step], sums)
    return sums


def _fp32(acc: NDArray[Any], weights: Bits32, scales: Bits32, generation: Generation) -> Bits32:
    """acc uint32 [next_n, H, tokens], weights uint32 [next_n, H], scales uint32 [tokens] -> uint32 [next_n, tokens]."""
    sums = _weighted(_RELU[generation](acc), weights, fma_f32)
    total: Bits32 = sums[:, 0]
    for part in range(1, PARTIAL_SUMS):
        total = add_f32(total, sums[:, part])
    if generation == "folded":
        total = mul_f32(total, _HALF)
    return mul_f32(total, scales)


def _fp16(acc: NDArray[Any], weights: Bits32, scales: Bits32) -> Bits16:
    """acc uint32 or uint16 [next_n, H, tokens], weights and scales as for ``_fp32`` -> uint16 [next_n, tokens].

    The weights are rounded to fp16 before the launch, the scale in the kernel, both to nearest even.
    """
    halves = acc if acc.dtype == np.uint16 else cvt_f16_f32(acc)
    sums = _weighted(max_f16(halves, 0), cvt_f16_f32(weights), fma_f16)
    pair = add_f16(sums[:, 0:2], sums[:, 2:4])
    return mul_f16(add_f16(pair[:, 0], pair[:, 1]), cvt_f16_f32(scales))


def _as_it_is(bits: NDArray[Any]) -> NDArray[Any]:
    return bits


def _cvt_bf16_f16(bits: NDArray[Any]) -> Bits16:
    """No instruction goes from fp16 to bf16 at once; the first of the two is exact."""
    return cvt_bf16_f32(cvt_f32_f16(bits))


_STORES: Mapping[tuple[str, str], Callable[[NDArray[Any]], NDArray[Any]]] = {
    ("fp32", "fp32"): _as_it_is,
    ("fp32", "fp16"): cvt_f16_f32,
    ("fp32", "bf16"): cvt_bf16_f32,
    ("fp16", "fp32"): cvt_f32_f16,
    ("fp16", "fp16"): _as_it_is,
    ("fp16", "bf16"): _cvt_bf16_f16,
}


def apply(
    flow: Flow, acc: NDArray[Any], weights: Bits32, scales: Bits32, generation: Generation
) -> NDArray[Any]:
    """The logits of one run of tokens of one sequence, as output bit patterns [next_n, tokens].

    ``acc``: accumulator bit patterns [next_n, H, tokens]; ``weights``, ``scales``: fp32 bit patterns [next_n, H] and
    [tokens].
    """
    store = _STORES[flow.epi, flow.out]
    if flow.epi == "fp32":
        return store(_fp32(acc, weights, scales, generation))
    return store(_fp16(acc, weights, scales))


def checked_request(machine: str | MachineModel, generation: str) -> MachineModel:
    """The machine model asked for. InputError for an unknown machine or generation (both told)."""
    model = machine if isinstance(machine, MachineModel) else MACHINES.get(machine)
    faults = []
    if model is None:
        faults.append(Fault("machine", repr(machine), "a MachineModel or one of " + ", ".join(MACHINES)))
    if generation not in GENERATIONS:
        faults.append(Fault("generation", repr(generation), "one of " + ", ".join(GENERATIONS)))
    if faults or model is None:
        raise InputError(faults)
    return model
