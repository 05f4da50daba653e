"""Why elements may be wrong: the wrong bits held against those of well-known mistakes and of other orders of
the sum.

Each suspect computes the logit with one thing changed: another order of the heads, no fused multiply-add, no
ReLU, the neighbour's scale, another tensor core. One that gives every wrong element that was looked at, bit
for bit, is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.compare.bits import Bits
from mqa_ref.compare.place import Index
from mqa_ref.flow import Flow
from mqa_ref.numerics import (
    FP32,
    MACHINES,
    MachineModel,
    abs_f32,
    add_f32,
    canonical_nan,
    fma_f32,
    max_f32,
    mma,
    mul_f32,
)
from mqa_ref.problem import Problem

Words = NDArray[np.uint32]
LOOKED_AT = 16
_HALF = 0x3F000000


@dataclass(frozen=True)
class Elements:
    """Some elements: ``dots``, ``weights`` fp32 patterns [n, H], ``scales`` [n]."""

    dots: Words
    weights: Words
    scales: Words


@dataclass(frozen=True)
class Recipe:
    """An epilogue. ``groups``: the heads of each partial sum for H heads, in order. ``tree``: how the partial
    sums are added, pairs of positions of which the first takes the sum. ``relu``: "folded", "max", "none" or
    "after" the sum."""

    groups: Callable[[int], Sequence[Sequence[int]]] = lambda heads: [range(i, heads, 4) for i in range(4)]
    tree: tuple[tuple[int, int], ...] = ((0, 1), (0, 2), (0, 3))
    fused: bool = True
    relu: str = "folded"
    half: bool = True
    scaled: bool = True

    def apply(self, given: Elements) -> Words:
        """The logits of ``given``, fp32 patterns [n]."""
        x: Any = given.dots
        if self.relu == "folded":
            x = add_f32(x, abs_f32(x))
        elif self.relu == "max":
            x = max_f32(x, np.uint32(0))
        sums: list[Any] = []
        for heads in self.groups(x.shape[1]):
            total: Any = np.zeros(x.shape[0], np.uint32)
            for head in heads:
                weight = given.weights[:, head]
                product = None if self.fused else mul_f32(x[:, head], weight)
                total = fma_f32(x[:, head], weight, total) if product is None else add_f32(product, total)
            sums.append(total)
        for into, other in self.tree:
            sums[into] = add_f32(sums[into], sums[other])
        out = max_f32(sums[0], np.uint32(0)) if self.relu == "after" else sums[0]
        out = mul_f32(out, np.uint32(_HALF)) if self.half and self.relu == "folded" else out
        return np.asarray(mul_f32(out, given.scales) if self.scaled else out, np.uint32)


_RIGHT = Recipe()
_EPILOGUES: tuple[tuple[str, Recipe], ...] = (
    ("one sum over the heads in ascending order", Recipe(lambda heads: [range(heads)], ())),
    (
        "two partial sums, head h in sum h % 2",
        Recipe(lambda heads: [range(i, heads, 2) for i in range(2)], ((0, 1),)),
    ),
    (
        "four partial sums of neighbouring heads",
        Recipe(lambda heads: [range(i * heads // 4, (i + 1) * heads // 4) for i in range(4)]),
    ),
    ("the heads in descending order", Recipe(lambda heads: [range(heads - 4 + i, -1, -4) for i in range(4)])),
    ("partial sums added as (s0x + s0y) + (s1x + s1y)", Recipe(tree=((0, 1), (2, 3), (0, 2)))),
    ("partial sums added as (s0x + s1x) + (s0y + s1y)", Recipe(tree=((0, 2), (1, 3), (0, 1)))),
    ("partial sums added as ((s0x + s1x) + s0y) + s1y", Recipe(tree=((0, 2), (0, 1), (0, 3)))),
    ("products rounded before they are added (no fused multiply-add)", Recipe(fused=False)),
    ("the folded ReLU, x + |x| and a final half", _RIGHT),
    ("the ReLU max(x, 0) without a final half", Recipe(relu="max")),
    ("no ReLU", Recipe(relu="none")),
    ("the ReLU after the sum over the heads", Recipe(relu="after")),
    ("the final half left out", Recipe(half=False)),
    ("the scale left out", Recipe(scaled=False)),
)


def _keys(problem: Problem, b: Index, column: Index) -> tuple[Any, Any]:
    """Codes [n, D] and scale patterns [n] of the tokens at ``column`` of the sequences ``b``."""
    slot, token = np.divmod(column, problem.page)
    page = problem.block_table[b, slot]
    return problem.key_codes[page, token], problem.scale_bits[page, token]


def _elements(problem: Problem, rows: Index, columns: Index, machine: str | MachineModel) -> Elements:
    b, t = np.divmod(rows, problem.next_n)
    keys, scales = _keys(problem, b, columns)
    dots = [
        mma(problem.q[b[i], t[i]], keys[i : i + 1], machine=machine, acc="fp32")[:, 0]
        for i in range(rows.size)
    ]
    return Elements(np.array(dots, np.uint32), problem.weights.view(np.uint32)[rows], scales)


def _suspects(
    problem: Problem, rows: Index, columns: Index, machine: str | MachineModel
) -> Iterator[tuple[str, Words]]:
    """Every suspect's name and its logits for the elements, fp32 patterns [n]."""
    right = _elements(problem, rows, columns, machine)
    for name, recipe in _EPILOGUES:
        yield name, recipe.apply(right)
    model = MACHINES[machine] if isinstance(machine, str) else machine
    sm100 = MACHINES["sm100"]
    others = [
        *MACHINES.values(),
        *(replace(sm100, name=f"F = {bits}", fraction_bits=bits) for bits in (24, 26)),
    ]
    for other in others:
        if other != model:
            dots = _elements(problem, rows, columns, other).dots
            yield f"the tensor core {other.name}", _RIGHT.apply(replace(right, dots=dots))
    yield (
        "the weights of the next head",
        _RIGHT.apply(replace(right, weights=np.roll(right.weights, -1, axis=1))),
    )
    for step, which in ((-1, "before"), (1, "after")):
        b = rows // problem.next_n
        beside = columns + step
        if (beside < 0).any() or (beside >= problem.context_lens[b]).any():
            continue
        yield (
            f"the scale of the token {which}",
            _RIGHT.apply(replace(right, scales=_keys(problem, b, beside)[1])),
        )
        moved = _elements(problem, rows, beside, machine)
        yield f"the key of the token {which}", _RIGHT.apply(replace(right, dots=moved.dots))
        yield f"the key and scale of the token {which}", _RIGHT.apply(moved)
    if problem.next_n > 1:
        first = rows - rows % problem.next_n
        turned = first + (rows + 1) % problem.next_n
        weights = problem.weights.view(np.uint32)[turned]
        yield "the weights of the next query token", _RIGHT.apply(replace(right, weights=weights))


def suspects(
    problem: Problem, flow: Flow, machine: str | MachineModel, rows: Index, columns: Index, got: Bits
) -> tuple[str, ...]:
    """The suspects that explain wrong elements given by row, column and the bits found there, each [n].

    At most ``LOOKED_AT`` of them, evenly taken, are looked at. Only for fp32-fp32-fp32; no answer for other
    flows.
    """
    if str(flow) != "fp32-fp32-fp32" or rows.size == 0:
        return ()
    some = np.unique(np.linspace(0, rows.size - 1, LOOKED_AT).astype(np.int64))
    found = canonical_nan(got[some], FP32)
    with np.errstate(all="ignore"):
        return tuple(
            name
            for name, bits in _suspects(problem, rows[some], columns[some], machine)
            if np.array_equal(canonical_nan(bits, FP32), found)
        )
