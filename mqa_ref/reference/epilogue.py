"""What becomes of the dot products: ReLU, weights, four partial sums, scale, conversion, in the kernel's order.

A flow's epilogue is a row of ``_EPILOGUES`` (accumulator and epilogue format -> computation) and one of ``_STORES``
(epilogue and output format -> conversion); a flow without either is Unsupported. The orders are those of op.md, "Dtype
flows"; the standing of each operation is stated in ``mqa_ref.numerics``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mqa_ref.errors import Fault, InputError, Unsupported
from mqa_ref.flow import FLOWS, Flow
from mqa_ref.numerics import MACHINES, MachineModel, abs_f32, add_f32, fma_f32, max_f32, mul_f32

Bits32 = NDArray[np.uint32]
Generation = Literal["folded", "max"]

GENERATIONS: tuple[Generation, ...] = ("folded", "max")
"""How the fp32 epilogue does its ReLU: "folded" sums ``x + |x|`` and halves the sum, "max" sums ``max(x, 0)``.

The two differ on overflow, on fp32-subnormal partial sums, and on NaN and -inf (op.md, "Dtype flows")."""

PARTIAL_SUMS = 4
"""Head ``h`` goes to partial sum ``h % 4`` of s0x, s0y, s1x, s1y, heads ascending (op.md, "Dtype flows")."""

_HALF = 0x3F000000


def _twice_relu(x: Bits32) -> Bits32:
    return add_f32(x, abs_f32(x))


def _relu(x: Bits32) -> Bits32:
    return max_f32(x, 0)


_RELU: Mapping[Generation, Callable[[Bits32], Bits32]] = {"folded": _twice_relu, "max": _relu}


def _fp32(acc: NDArray[Any], weights: Bits32, scales: Bits32, generation: Generation) -> Bits32:
    """acc uint32 [next_n, H, tokens], weights uint32 [next_n, H], scales uint32 [tokens] -> uint32 [next_n, tokens]."""
    next_n, heads, tokens = acc.shape
    parts = (next_n, heads // PARTIAL_SUMS, PARTIAL_SUMS)
    positive = _RELU[generation](acc).reshape(*parts, tokens)
    factors = weights.reshape(*parts, 1)
    sums = np.zeros((next_n, PARTIAL_SUMS, tokens), np.uint32)
    for step in range(parts[1]):
        sums = fma_f32(positive[:, step], factors[:, step], sums)
    total = sums[:, 0]
    for part in range(1, PARTIAL_SUMS):
        total = add_f32(total, sums[:, part])
    if generation == "folded":
        total = mul_f32(total, _HALF)
    return mul_f32(total, scales)


def _as_it_is(bits: Bits32) -> Bits32:
    return bits


_Epilogue = Callable[[NDArray[Any], Bits32, Bits32, Generation], NDArray[Any]]
_EPILOGUES: Mapping[tuple[str, str], _Epilogue] = {("fp32", "fp32"): _fp32}
_STORES: Mapping[tuple[str, str], Callable[[NDArray[Any]], NDArray[Any]]] = {("fp32", "fp32"): _as_it_is}

SUPPORTED_FLOWS: tuple[str, ...] = tuple(
    name
    for name in FLOWS
    if (name.split("-")[0], name.split("-")[1]) in _EPILOGUES
    and (name.split("-")[1], name.split("-")[2]) in _STORES
)
"""The names of the flows the reference can compute."""


def apply(
    flow: Flow, acc: NDArray[Any], weights: Bits32, scales: Bits32, generation: Generation
) -> NDArray[Any]:
    """The logits of one run of tokens of one sequence, as output bit patterns [next_n, tokens].

    ``acc``: accumulator bit patterns [next_n, H, tokens]; ``weights``, ``scales``: fp32 bit patterns [next_n, H] and
    [tokens]. ``flow`` must be a supported one.
    """
    epilogue, store = _EPILOGUES[flow.acc, flow.epi], _STORES[flow.epi, flow.out]
    return store(epilogue(acc, weights, scales, generation))


def checked_request(flow: Flow, machine: str | MachineModel, generation: str) -> MachineModel:
    """The machine model asked for. InputError for an unknown machine or generation (both told), Unsupported for a flow
    the reference does not compute."""
    model = machine if isinstance(machine, MachineModel) else MACHINES.get(machine)
    faults = []
    if model is None:
        faults.append(Fault("machine", repr(machine), "a MachineModel or one of " + ", ".join(MACHINES)))
    if generation not in GENERATIONS:
        faults.append(Fault("generation", repr(generation), "one of " + ", ".join(GENERATIONS)))
    if faults or model is None:
        raise InputError(faults)
    if str(flow) not in SUPPORTED_FLOWS:
        raise Unsupported(
            f"the reference does not compute flow {flow} yet; it computes {', '.join(SUPPORTED_FLOWS)}"
        )
    return model
