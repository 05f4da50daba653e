"""Every recipe by its name, against one logit at a time computed here with the scalar operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from mqa_ref.compare.gather import Elements
from mqa_ref.compare.recipes import Recipe, missing_heads, mistakes, other_orders, right
from mqa_ref.flow import FLOWS, Flow
from mqa_ref.numerics import samples, scalar
from mqa_ref.numerics.formats import FP16, FP32

HEADS = 8
FOUR = [[0, 4], [1, 5], [2, 6], [3, 7]]
FP32_TREE, FP16_TREE = "((s0x + s0y) + s1x) + s1y", "(s0x + s1x) + (s0y + s1y)"


@dataclass(frozen=True)
class Rule:
    """What is done to one logit: the heads of each sum, how the sums are added, and what is done in another way."""

    groups: list[list[int]] = field(default_factory=lambda: FOUR)
    tree: str | None = None
    relu: str = "own"
    fused: bool = True
    half: bool = True
    scaled: bool = True
    saturate: bool = False
    wide_scale: bool = False


OWN = Rule()
ORDERS: dict[str, Rule] = {
    "one sum over the heads in ascending order": Rule([[0, 1, 2, 3, 4, 5, 6, 7]], "s0x"),
    "two partial sums, head h in sum h % 2": Rule([[0, 2, 4, 6], [1, 3, 5, 7]], "s0x + s0y"),
    "four partial sums of neighbouring heads": Rule([[0, 1], [2, 3], [4, 5], [6, 7]]),
    "the heads in descending order": Rule([[4, 0], [5, 1], [6, 2], [7, 3]]),
    **{
        f"partial sums added as {tree}": Rule(tree=tree)
        for tree in (
            "((s0x + s0y) + s1x) + s1y",
            "(s0x + s0y) + (s1x + s1y)",
            "(s0x + s1x) + (s0y + s1y)",
            "((s0x + s1x) + s0y) + s1y",
        )
    },
    "products rounded before they are added (no fused multiply-add)": Rule(fused=False),
}
FOLDED = {
    "the ReLU max(x, 0) without a final half": Rule(relu="max"),
    "the final half left out": Rule(half=False),
}
PLAIN = {
    "the folded ReLU, x + |x| and a final half": Rule(relu="folded"),
    "the folded ReLU without its final half": Rule(relu="folded", half=False),
}
NARROW = {
    "accumulators that saturate at 65504 instead of overflowing": Rule(saturate=True),
    "the scale in fp32, not rounded to fp16": Rule(wide_scale=True),
}
ALWAYS = {
    "no ReLU": Rule(relu="none"),
    "the ReLU after the sum over the heads": Rule(relu="after"),
    "the scale left out": Rule(scaled=False),
}
HALVES = {
    "the first half of the heads alone": Rule([[0], [1], [2], [3]]),
    "the second half of the heads alone": Rule([[4], [5], [6], [7]]),
    "the even heads alone": Rule([[0, 4], [], [2, 6], []]),
    "the odd heads alone": Rule([[], [1, 5], [], [3, 7]]),
    "the partial sum s0x left out": Rule([[], [1, 5], [2, 6], [3, 7]]),
    "the partial sum s0y left out": Rule([[0, 4], [], [2, 6], [3, 7]]),
    "the partial sum s1x left out": Rule([[0, 4], [1, 5], [], [3, 7]]),
    "the partial sum s1y left out": Rule([[0, 4], [1, 5], [2, 6], []]),
}


def wanted(flow: Flow, generation: str) -> dict[str, Rule]:
    own_tree = FP32_TREE if flow.epi == "fp32" else FP16_TREE
    rules = {name: rule for name, rule in ORDERS.items() if name != f"partial sums added as {own_tree}"}
    if flow.epi == "fp16":
        rules |= NARROW
    elif generation == "folded":
        rules |= FOLDED
    else:
        rules |= PLAIN
        other, what = ("max_nan", "hands on") if generation == "max" else ("max", "loses")
        rules[f"the ReLU max(x, 0) that {what} a NaN"] = Rule(relu=other)
    return rules | ALWAYS | HALVES


class Sum:
    """A partial sum under its name in a tree."""

    def __init__(self, code: int, add: Callable[[int, int], int]) -> None:
        self.code, self.add = code, add

    def __add__(self, other: Sum) -> Sum:
        return Sum(self.add(self.code, other.code), self.add)


def logit(flow: Flow, generation: str, rule: Rule, acc: list[int], weights: list[int], scale: int) -> int:
    wide = flow.epi == "fp32"
    bits = "f32" if wide else "f16"
    fma, add, mul, top = (getattr(scalar, f"{name}_{bits}") for name in ("fma", "add", "mul", "max"))
    if not wide:
        weights = [scalar.cvt_f16_f32(code) for code in weights]
        if flow.acc == "fp32":
            acc = [scalar.cvt_f16_f32(code) for code in acc]
        if rule.saturate:
            acc = [code & 0x8000 | 0x7BFF if FP16.is_inf(code) else code for code in acc]
    relu = rule.relu if rule.relu != "own" else generation if wide else "max"
    if relu == "folded" and wide:
        acc = [scalar.add_f32(code, scalar.abs_f32(code)) for code in acc]
    elif relu == "max_nan":
        acc = [scalar.max_nan_f32(code, 0) for code in acc]
    elif relu not in ("none", "after"):
        acc = [top(code, 0) for code in acc]
    named = {}
    for name, heads in zip(("s0x", "s0y", "s1x", "s1y"), rule.groups, strict=False):
        total = 0
        for head in heads:
            product = mul(acc[head], weights[head])
            total = fma(acc[head], weights[head], total) if rule.fused else add(product, total)
        named[name] = Sum(total, add)
    tree = rule.tree or (FP32_TREE if wide else FP16_TREE)
    total = eval(tree, {}, named).code
    if relu == "after":
        total = top(total, 0)
    if wide:
        if relu == "folded" and rule.half:
            total = mul(total, 0x3F000000)
        total = mul(total, scale) if rule.scaled else total
        return {"fp32": lambda x: x, "fp16": scalar.cvt_f16_f32, "bf16": scalar.cvt_bf16_f32}[flow.out](total)
    if rule.wide_scale:
        total = scalar.mul_f32(scalar.cvt_f32_f16(total), scale)
    else:
        total = mul(total, scalar.cvt_f16_f32(scale)) if rule.scaled else total
        if flow.out == "fp16":
            return total
        total = scalar.cvt_f32_f16(total)
    return {"fp32": lambda x: x, "fp16": scalar.cvt_f16_f32, "bf16": scalar.cvt_bf16_f32}[flow.out](total)


@pytest.fixture(scope="module")
def elements() -> dict[str, Elements]:
    """10 of common size, 4 of any codes at all, with NaN, inf and zeros."""
    source, given = samples.Source(17), {}
    for acc, fmt in (("fp32", FP32), ("fp16", FP16)):
        common = [source.centred(fmt, 10 * HEADS, 3), source.mixed(fmt, 4 * HEADS)]
        weights = [source.centred(FP32, 10 * HEADS, 3), source.mixed(FP32, 4 * HEADS)]
        scales = [source.centred(FP32, 10, 2), source.mixed(FP32, 4)]
        codes = np.concatenate(common).reshape(14, HEADS)
        # Beyond fp16 in otherwise ordinary elements.
        codes[0, 2], codes[1, 5] = (0x7C00, 0xFC00) if acc == "fp16" else (0x49742400, 0xC9742400)
        given[acc] = Elements(
            codes,
            np.concatenate(weights).reshape(14, HEADS),
            np.concatenate(scales),
        )
    return given


@pytest.mark.parametrize("generation", ["folded", "max", "max_nan"])
@pytest.mark.parametrize("name", FLOWS)
def test_every_recipe(elements: dict[str, Elements], name: str, generation: str) -> None:
    flow = Flow.parse(name)
    if flow.epi == "fp16" and generation != "folded":
        return
    given = elements[flow.acc]
    own = right(flow, generation)
    recipes: dict[str, Recipe] = {"": own}
    for some in (other_orders(own), mistakes(own), missing_heads(own)):
        for told, recipe in some:
            assert told not in recipes
            recipes[told] = recipe
    rules = {"": OWN} | wanted(flow, generation)
    assert set(recipes) == set(rules)
    rows: Any = list(zip(given.acc.tolist(), given.weights.tolist(), given.scales.tolist(), strict=True))
    results = {}
    for told, recipe in recipes.items():
        with np.errstate(all="ignore"):
            found = recipe.apply(given)
        assert found.dtype == flow.bits_dtype
        assert found.tolist() == [logit(flow, generation, rules[told], *row) for row in rows], told
        results[told] = tuple(found.tolist())
    if flow.out == flow.epi == "fp32":
        assert len(set(results.values())) > 16, "the logits tell nothing apart"


def test_one_row_of_weights_or_accumulators_serves_all(elements: dict[str, Elements]) -> None:
    """Families give one of the two for many candidates."""
    given, own = elements["fp32"], right(Flow.parse("fp32-fp32-fp32"), "folded")
    with np.errstate(all="ignore"):
        each = [
            own.apply(Elements(given.acc[:1], given.weights[i : i + 1], given.scales[i : i + 1]))[0]
            for i in range(9)
        ]
        assert own.apply(Elements(given.acc[:1], given.weights[:9], given.scales[:9])).tolist() == each
        again = replace(own, groups=lambda heads: [range(0, heads, 4), [], [], []])
        assert again.apply(given).shape == (14,)
