"""The orders in which known kernels add over the heads, by name: the project's own, and DeepGEMM's two.

``four_chains``: four chains of fused multiply-adds, head ``h`` in chain ``h % 4``, joined one after the other
(``epilogue``; op.md, "Dtype flows").

``deepgemm_sm90``: a token's heads lie in four neighbouring lanes, as the accumulators of wgmma do (PTX ISA, "wgmma,
register fragments"): lane ``q`` has heads ``8j + 2q`` and ``8j + 2q + 1``. Each lane has a chain for either; it begins
with ``fma(x_0, w_0, x_1 * w_1)``, whose inner product is rounded by itself, since the compiler fuses one of the two.
Their sum is scaled in every lane, and then the lanes are added by two shuffles, 0 with 1 and 2 with 3, then the pairs.

``deepgemm_sm100``: the four chains are two packed pairs, heads ``4j, 4j + 1`` and ``4j + 2, 4j + 3``; the pairs are
added as such, then their halves: ``(s0 + s2) + (s1 + s3)``.

Source: the two kernels of sgl-deep-gemm 0.1.5 as nvcc 13 compiles them. Standing: deepgemm_sm90 is hw, where the
recordings of docs/trust.md were made; deepgemm_sm100 is published: its operations are doc, its tensor core is modelled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mqa_ref.errors import Fault, InputError, Unsupported
from mqa_ref.flow import Flow
from mqa_ref.numerics import add_f32, fma_f32, mul_f32
from mqa_ref.reference.epilogue import STORES, Generation, apply, relus

Bits = NDArray[Any]
SumOrder = Literal["four_chains", "deepgemm_sm90", "deepgemm_sm100"]

SUM_ORDERS: tuple[SumOrder, ...] = ("four_chains", "deepgemm_sm90", "deepgemm_sm100")
"""Every order whose bits the reference knows."""

_HALF = 0x3F000000
_LANES = 4


def checked_order(order: str, flow: Flow) -> None:
    """InputError for an order there is not, Unsupported for one that has no such epilogue."""
    if order not in SUM_ORDERS:
        raise InputError([Fault("order", repr(order), "one of " + ", ".join(SUM_ORDERS))])
    if order != SUM_ORDERS[0] and flow.epi != "fp32":
        raise Unsupported(f"order {order}: no kernel has it with an {flow.epi} epilogue")


def logits_of(
    order: SumOrder, flow: Flow, acc: Bits, weights: Bits, scales: Bits, generation: Generation
) -> Bits:
    """As ``epilogue.apply``, in an order of ``SUM_ORDERS``. Raises Unsupported for a number of heads that DeepGEMM's
    kernels do not deal out to their lanes."""
    if order == "four_chains":
        return apply(flow, acc, weights, scales, generation)
    heads = weights.shape[1]
    if heads % 8 or heads < 16:
        raise Unsupported(f"order {order}: it is not defined for {heads} heads")
    positive, factors = relus(flow, acc, weights, generation)
    total = _SUMS[order](positive, factors, scales, generation == "folded")
    return STORES[flow.epi, flow.out](total)


def _sm90(positive: Bits, weights: Bits, scales: Bits, halved: bool) -> Bits:
    next_n, heads, tokens = positive.shape
    x = positive.reshape(next_n, heads // 8, _LANES, 2, tokens)
    w = weights.reshape(next_n, heads // 8, _LANES, 2, 1)
    chains = fma_f32(x[:, 0], w[:, 0], mul_f32(x[:, 1], w[:, 1]))
    for group in range(2, heads // 8):
        chains = fma_f32(x[:, group], w[:, group], chains)
    lanes = mul_f32(_half(add_f32(chains[:, :, 0], chains[:, :, 1]), halved), scales)
    pairs = add_f32(lanes[:, 0::2], lanes[:, 1::2])
    return add_f32(pairs[:, 0], pairs[:, 1])


def _sm100(positive: Bits, weights: Bits, scales: Bits, halved: bool) -> Bits:
    next_n, heads, tokens = positive.shape
    x = positive.reshape(next_n, heads // 4, 2, 2, tokens)
    w = weights.reshape(next_n, heads // 4, 2, 2, 1)
    chains = np.zeros((next_n, 2, 2, tokens), np.uint32)
    for group in range(heads // 4):
        chains = fma_f32(x[:, group], w[:, group], chains)
    both = add_f32(chains[:, 0], chains[:, 1])
    return mul_f32(_half(add_f32(both[:, 0], both[:, 1]), halved), scales)


def _half(total: Bits, halved: bool) -> Bits:
    return mul_f32(total, _HALF) if halved else total


_SUMS: Mapping[str, Callable[[Bits, Bits, Bits, bool], Bits]] = {
    "deepgemm_sm90": _sm90,
    "deepgemm_sm100": _sm100,
}
