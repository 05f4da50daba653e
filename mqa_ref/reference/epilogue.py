"""What becomes of the dot products: ReLU, weights, four partial sums, scale, conversion, in the kernel's order.

The order of operations is that of op.md, "Dtype flows"; docs/flows.md has what it makes of special values. The standing
of each operation is stated in ``mqa_ref.numerics``.
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
    max_nan_f32,
    mul_f16,
    mul_f32,
)
from mqa_ref.numerics.environment import check_environment

Bits32 = NDArray[np.uint32]
Bits16 = NDArray[np.uint16]
Generation = Literal["folded", "max", "max_nan"]

GENERATIONS: tuple[Generation, ...] = ("folded", "max", "max_nan")
"""How the fp32 epilogue does its ReLU: "folded" sums ``x + |x|`` and halves the sum, "max" sums ``max(x, 0)``, in which
a NaN becomes 0, and "max_nan" sums the ``max.NaN`` of x and 0, which keeps a NaN.

They differ on overflow, on fp32-subnormal partial sums, and on NaN and -inf (docs/flows.md). The fp16 epilogue takes
``max(x, 0)`` in all of them, so there the names mean the same bits."""

PARTIAL_SUMS = 4
"""Head ``h`` goes to partial sum ``h % 4`` of s0x, s0y, s1x, s1y, heads ascending (op.md, "Dtype flows")."""

SUPPORTED_FLOWS: tuple[str, ...] = FLOWS
"""The names of the flows the reference can compute: all there are."""

_HALF = 0x3F000000


def _twice_relu(x: Bits32) -> Bits32:
    return add_f32(x, abs_f32(x))


def _relu(x: Bits32) -> Bits32:
    return max_f32(x, 0)


def _relu_nan(x: Bits32) -> Bits32:
    return max_nan_f32(x, 0)


_RELU: Mapping[Generation, Callable[[Bits32], Bits32]] = {
    "folded": _twice_relu,
    "max": _relu,
    "max_nan": _relu_nan,
}


def relus(
    flow: Flow, acc: NDArray[Any], weights: Bits32, generation: Generation
) -> tuple[NDArray[Any], NDArray[Any]]:
    """What is multiplied: accumulators [next_n, H, tokens] after the ReLU (doubled where folded), and fp32 weights
    [next_n, H], both as codes of the epilogue's format.

    In the fp16 epilogue fp32 accumulators are rounded to fp16; so are the weights, before the launch.
    """
    if flow.epi == "fp32":
        return _RELU[generation](acc), weights
    return max_f16(acc if flow.acc == "fp16" else cvt_f16_f32(acc), 0), cvt_f16_f32(weights)


def finish(flow: Flow, total: NDArray[Any], scales: Bits32, generation: Generation) -> NDArray[Any]:
    """From sums over the heads [next_n, tokens] and fp32 scales [tokens] to output codes: half, scale, conversion."""
    if flow.epi == "fp16":
        total = mul_f16(total, cvt_f16_f32(scales))
    else:
        total = mul_f32(mul_f32(total, _HALF) if generation == "folded" else total, scales)
    return STORES[flow.epi, flow.out](total)


def _partial_sums(positive: NDArray[Any], weights: NDArray[Any], fma: Callable[..., Any]) -> NDArray[Any]:
    """The four partial sums [next_n, 4, tokens] of values [next_n, H, tokens] and weights [next_n, H]."""
    next_n, heads, tokens = positive.shape
    parts = (next_n, heads // PARTIAL_SUMS, PARTIAL_SUMS)
    values, factors = positive.reshape(*parts, tokens), weights.reshape(*parts, 1)
    sums = np.zeros((next_n, PARTIAL_SUMS, tokens), positive.dtype)
    for step in range(parts[1]):
        sums = fma(values[:, step], factors[:, step], sums)
    return sums


def _as_it_is(bits: NDArray[Any]) -> NDArray[Any]:
    return bits


def _cvt_bf16_f16(bits: NDArray[Any]) -> Bits16:
    """No instruction goes from fp16 to bf16 at once; the first of the two is exact."""
    return cvt_bf16_f32(cvt_f32_f16(bits))


STORES: Mapping[tuple[str, str], Callable[[NDArray[Any]], NDArray[Any]]] = {
    ("fp32", "fp32"): _as_it_is,
    ("fp32", "fp16"): cvt_f16_f32,
    ("fp32", "bf16"): cvt_bf16_f32,
    ("fp16", "fp32"): cvt_f32_f16,
    ("fp16", "fp16"): _as_it_is,
    ("fp16", "bf16"): _cvt_bf16_f16,
}
"""From sums in the epilogue's format to output codes, by the two formats."""


def apply(
    flow: Flow, acc: NDArray[Any], weights: Bits32, scales: Bits32, generation: Generation
) -> NDArray[Any]:
    """The logits of one run of tokens of one sequence, as output bit patterns [next_n, tokens].

    ``acc``: accumulator bit patterns [next_n, H, tokens]; ``weights``, ``scales``: fp32 bit patterns [next_n, H] and
    [tokens].
    """
    positive, factors = relus(flow, acc, weights, generation)
    if flow.epi == "fp32":
        sums = _partial_sums(positive, factors, fma_f32)
        total: NDArray[Any] = add_f32(add_f32(add_f32(sums[:, 0], sums[:, 1]), sums[:, 2]), sums[:, 3])
    else:
        sums = _partial_sums(positive, factors, fma_f16)
        pair = add_f16(sums[:, 0:2], sums[:, 2:4])
        total = add_f16(pair[:, 0], pair[:, 1])
    return finish(flow, total, scales, generation)


def checked_request(machine: str | MachineModel, generation: str) -> MachineModel:
    """The machine model asked for. InputError for an unknown machine or generation (both told), OracleError when this
    thread's arithmetic is not what the reference relies on."""
    check_environment()
    model = machine if isinstance(machine, MachineModel) else MACHINES.get(machine)
    faults = []
    if model is None:
        faults.append(Fault("machine", repr(machine), "a MachineModel or one of " + ", ".join(MACHINES)))
    if generation not in GENERATIONS:
        faults.append(Fault("generation", repr(generation), "one of " + ", ".join(GENERATIONS)))
    if faults or model is None:
        raise InputError(faults)
    return model
