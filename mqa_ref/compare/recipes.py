"""Epilogues, right and wrong: from accumulators to logits with one thing done in another way. All operations are those
of ``mqa_ref.numerics``, so that a wrong kernel's bits can be met exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mqa_ref.compare.gather import Elements
from mqa_ref.flow import Flow
from mqa_ref.numerics import (
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

Array = NDArray[Any]
Groups = Callable[[int], Sequence[Sequence[int]]]
Tree = tuple[tuple[int, int], ...]
Relu = Literal["folded", "max", "max_nan", "none", "after"]
HALF = np.uint32(0x3F000000)
FP16_MAX = 0x7BFF
_INF16 = 0x7C00


@dataclass(frozen=True)
class Operations:
    """Those of one epilogue format."""

    fma: Callable[..., Array]
    mul: Callable[..., Array]
    add: Callable[..., Array]
    max: Callable[..., Array]
    zero: np.unsignedinteger[Any]


OPERATIONS: Mapping[str, Operations] = {
    "fp32": Operations(fma_f32, mul_f32, add_f32, max_f32, np.uint32(0)),
    "fp16": Operations(fma_f16, mul_f16, add_f16, max_f16, np.uint16(0)),
}
TREES: Mapping[str, Tree] = {"fp32": ((0, 1), (0, 2), (0, 3)), "fp16": ((0, 2), (1, 3), (0, 1))}
"""How the four partial sums are added (docs/flows.md): pairs of positions of which the first takes the sum."""


def _in_turn(sums: int) -> Groups:
    return lambda heads: [range(i, heads, sums) for i in range(sums)]


_FOUR = _in_turn(4)


@dataclass(frozen=True)
class Recipe:
    """An epilogue. ``groups``: the heads of each partial sum for H heads, in order. ``tree``: how the partial
    sums are added. ``relu``: "folded", "max", "max_nan", "none", or "after" the sum. ``half``: the half that belongs to
    "folded". ``saturate``: accumulators beyond fp16 become its largest number. ``wide_scale``: the scale of the
    fp16 epilogue stays fp32."""

    epi: str
    out: str
    tree: Tree
    groups: Groups = _FOUR
    relu: Relu = "folded"
    fused: bool = True
    half: bool = True
    scaled: bool = True
    saturate: bool = False
    wide_scale: bool = False

    def apply(self, given: Elements) -> Array:
        """The logits of ``given``, output patterns [n]."""
        do = OPERATIONS[self.epi]
        acc: Array = given.acc
        weights: Array = given.weights
        if self.epi == "fp16":
            acc = acc if acc.dtype == np.uint16 else cvt_f16_f32(acc)
            weights = cvt_f16_f32(weights)
            if self.saturate:
                infinite = (acc & 0x7FFF) == _INF16
                acc = np.where(infinite, acc & 0x8000 | FP16_MAX, acc).astype(np.uint16)
        x = self._relu(acc, do)
        sums: list[Array] = []
        for heads in self.groups(x.shape[1]):
            total = np.full(np.broadcast_shapes(x.shape[:1], weights.shape[:1]), do.zero)
            for head in heads:
                factor, value = weights[:, head], x[:, head]
                total = do.fma(value, factor, total) if self.fused else do.add(do.mul(value, factor), total)
            sums.append(total)
        for into, other in self.tree:
            sums[into] = do.add(sums[into], sums[other])
        total = do.max(sums[0], do.zero) if self.relu == "after" else sums[0]
        return self._finish(total, given.scales)

    def _relu(self, acc: Array, do: Operations) -> Array:
        if self.relu in ("none", "after"):
            return acc
        if self.relu == "folded" and self.epi == "fp32":
            return add_f32(acc, abs_f32(acc))
        if self.relu == "max_nan" and self.epi == "fp32":
            return max_nan_f32(acc, 0)
        return do.max(acc, do.zero)

    def _finish(self, total: Array, scales: Array) -> Array:
        if self.epi == "fp32":
            if self.half and self.relu == "folded":
                total = mul_f32(total, HALF)
            total = mul_f32(total, scales) if self.scaled else total
        elif self.wide_scale:
            total = mul_f32(cvt_f32_f16(total), scales)
        else:
            total = mul_f16(total, cvt_f16_f32(scales)) if self.scaled else total
        return _store(np.asarray(total), self.out)


def _store(total: Array, out: str) -> Array:
    if total.dtype == np.uint16:
        if out == "fp16":
            return total
        total = cvt_f32_f16(total)
    if out == "fp32":
        return total
    return cvt_f16_f32(total) if out == "fp16" else cvt_bf16_f32(total)


def right(flow: Flow, generation: str) -> Recipe:
    """The flow's own epilogue."""
    relus: Mapping[str, Relu] = {"folded": "folded", "max": "max", "max_nan": "max_nan"}
    relu = relus[generation] if flow.epi == "fp32" else "max"
    return Recipe(flow.epi, flow.out, TREES[flow.epi], relu=relu)


def other_orders(own: Recipe) -> Iterator[tuple[str, Recipe]]:
    """The right operations in another order, each with its name."""
    yield "one sum over the heads in ascending order", replace(own, groups=_in_turn(1), tree=())
    yield "two partial sums, head h in sum h % 2", replace(own, groups=_in_turn(2), tree=((0, 1),))
    yield (
        "four partial sums of neighbouring heads",
        replace(own, groups=lambda heads: [range(i * heads // 4, (i + 1) * heads // 4) for i in range(4)]),
    )
    yield (
        "the heads in descending order",
        replace(own, groups=lambda heads: [range(heads - 4 + i, -1, -4) for i in range(4)]),
    )
    trees: dict[str, Tree] = {
        "((s0x + s0y) + s1x) + s1y": ((0, 1), (0, 2), (0, 3)),
        "(s0x + s0y) + (s1x + s1y)": ((0, 1), (2, 3), (0, 2)),
        "(s0x + s1x) + (s0y + s1y)": ((0, 2), (1, 3), (0, 1)),
        "((s0x + s1x) + s0y) + s1y": ((0, 2), (0, 1), (0, 3)),
    }
    for name, tree in trees.items():
        if tree != own.tree:
            yield f"partial sums added as {name}", replace(own, tree=tree)
    yield "products rounded before they are added (no fused multiply-add)", replace(own, fused=False)


def mistakes(own: Recipe) -> Iterator[tuple[str, Recipe]]:
    """Other operations, each with its name."""
    if own.epi == "fp32":
        if own.relu == "folded":
            yield "the ReLU max(x, 0) without a final half", replace(own, relu="max")
            yield "the final half left out", replace(own, half=False)
        else:
            yield "the folded ReLU, x + |x| and a final half", replace(own, relu="folded")
            other: Relu = "max_nan" if own.relu == "max" else "max"
            what = "hands on" if other == "max_nan" else "loses"
            yield f"the ReLU max(x, 0) that {what} a NaN", replace(own, relu=other)
            yield "the folded ReLU without its final half", replace(own, relu="folded", half=False)
    else:
        yield "accumulators that saturate at 65504 instead of overflowing", replace(own, saturate=True)
        yield "the scale in fp32, not rounded to fp16", replace(own, wide_scale=True)
    yield "no ReLU", replace(own, relu="none")
    yield "the ReLU after the sum over the heads", replace(own, relu="after")
    yield "the scale left out", replace(own, scaled=False)


def missing_heads(own: Recipe) -> Iterator[tuple[str, Recipe]]:
    """Only some of the heads summed, each with its name."""

    def only(wanted: Callable[[NDArray[np.int64]], NDArray[np.bool_]]) -> Recipe:
        turn = own.groups
        return replace(own, groups=lambda count: _chosen(turn(count), wanted(np.arange(count))))

    yield "the first half of the heads alone", only(lambda head: head < head.size // 2)
    yield "the second half of the heads alone", only(lambda head: head >= head.size // 2)
    yield "the even heads alone", only(lambda head: head % 2 == 0)
    yield "the odd heads alone", only(lambda head: head % 2 == 1)
    for part, name in enumerate(("s0x", "s0y", "s1x", "s1y")):
        yield f"the partial sum {name} left out", only(partial(_outside, part))


def _outside(part: int, head: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.asarray(head % 4 != part)


def _chosen(groups: Sequence[Sequence[int]], wanted: NDArray[np.bool_]) -> list[list[int]]:
    return [[head for head in group if wanted[head]] for group in groups]
