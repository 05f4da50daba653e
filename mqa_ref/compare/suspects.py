"""Why elements may be wrong: the wrong bits held against those of well-known mistakes and of other orders of
the sum.

Each suspect computes the logit with one thing changed: another order of the heads, no fused multiply-add, no
ReLU, the neighbour's scale, another tensor core. One that gives every wrong element that was looked at, bit
for bit, is named, provided that so few candidates could not do so by chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.compare.bits import Bits, Mask, ulp_distance
from mqa_ref.compare.families import Family, Sample, families
from mqa_ref.compare.gather import Elements, Source
from mqa_ref.compare.patterns import patterns
from mqa_ref.compare.recipes import Recipe, missing_heads, mistakes, other_orders, right
from mqa_ref.flow import Flow
from mqa_ref.numerics import FORMATS, MACHINES, Format, MachineModel, canonical_nan, is_inf, is_nan, is_zero
from mqa_ref.problem import Problem

LOOKED_AT = 16
"""Wrong elements looked at."""
RIGHT_LOOKED_AT = 64
"""Right elements looked at."""
_DIFFERENT = 4
"""Different words that right elements must have to tell anything."""
_MOST_EVIDENCE = {32: 12.0, 16: 5.0}
"""The most bits of evidence that one element is worth, by the width of the output."""
_SURE = 12.0
"""Bits of evidence from which on an epilogue need not explain the right elements too."""
_CHANCE = 8.0
"""Bits of evidence beyond the logarithm of a family's size that are asked for."""
_NAMED = 3
_MOSTLY = 0.5
"""The share of the elements for which there must be such a place: none lies before the first token."""
_STAGES = (("fp32", "fp32"), ("fp32", "fp16"), ("fp16", "fp16"))


@dataclass(frozen=True)
class Case:
    """What the suspects are tried on. ``wrong``: the elements to explain; ``right``: some that are as they should be.
    ``expected``, ``valid`` [rows, columns]: the output as it should be."""

    problem: Problem
    flow: Flow
    machine: str | MachineModel
    generation: str
    wrong: Sample
    right: Sample
    expected: Bits
    valid: Mask


Try = tuple[str, Callable[[Sample], NDArray[Any]]]
"""A name, and the logits that it gives some elements."""


def suspects(case: Case) -> tuple[str, ...]:
    """The names of the suspects that explain the wrong elements, none when there are none."""
    if case.wrong.rows.size == 0:
        return ()
    fmt = FORMATS[case.flow.out]
    wrong = replace(case.wrong, found=canonical_nan(case.wrong.found, fmt))
    known = evidence(wrong, fmt)
    with np.errstate(all="ignore"):
        named = [name for name, give in _computations(case) if _explains(give, case, wrong, known, fmt)]
        source = Source(case.problem, case.flow.acc, case.machine)
        own = right(case.flow, case.generation)
        for family in families(source, wrong):
            if known >= math.log2(len(family.names)) + _CHANCE:
                named += _survivors(family, own, wrong, fmt)
        return tuple(named or patterns(case.flow, wrong, case.expected, case.valid))


def evidence(sample: Sample, fmt: Format) -> float:
    """How unlikely it is, in bits, that a candidate meets all elements by chance.

    Candidates are often nearly right, so an element that is d ULP off counts log2(1 + d) bits, up to a most, one that
    is not finite on one side one bit; zeros and what is found twice count nothing. A rule of thumb, no theorem.
    """
    found, first = np.unique(sample.found, return_index=True)
    expected = sample.expected[first]
    finite = ~(is_nan(found, fmt) | is_inf(found, fmt) | is_nan(expected, fmt) | is_inf(expected, fmt))
    bits = np.log2(1.0 + np.where(finite, ulp_distance(found, expected, fmt), 1))
    return float(np.minimum(bits, _MOST_EVIDENCE[fmt.bits])[~is_zero(found, fmt)].sum())


def _explains(
    give: Callable[[Sample], NDArray[Any]], case: Case, wrong: Sample, known: float, fmt: Format
) -> bool:
    if not np.array_equal(canonical_nan(give(wrong), fmt), wrong.found):
        return False
    if known >= _SURE:
        return True
    right_words = canonical_nan(case.right.found, fmt)
    plain = ~(is_nan(right_words, fmt) | is_inf(right_words, fmt) | is_zero(right_words, fmt))
    if np.unique(right_words[plain]).size < _DIFFERENT:
        return False
    return np.array_equal(canonical_nan(give(case.right), fmt), right_words)


def _computations(case: Case) -> Iterator[Try]:
    """Suspects that compute from the right inputs in another way."""
    source, own = Source(case.problem, case.flow.acc, case.machine), right(case.flow, case.generation)
    for recipes in (other_orders(own), mistakes(own), missing_heads(own)):
        for name, recipe in recipes:
            yield name, _giver(source, recipe)
    for model in other_machines(case.machine):
        yield f"the tensor core {model.name}", _giver(replace(source, machine=model), own)
    for acc, epi in _STAGES:
        if (acc, epi) != (case.flow.acc, case.flow.epi):
            flow = Flow(acc, epi, case.flow.out)  # type: ignore[arg-type]
            yield f"the flow {flow}", _giver(replace(source, acc=acc), right(flow, case.generation))


def _giver(source: Source, recipe: Recipe) -> Callable[[Sample], NDArray[Any]]:
    return lambda sample: recipe.apply(source.elements(sample.rows, sample.columns))


def other_machines(machine: str | MachineModel) -> Iterator[MachineModel]:
    """The models that are not the one asked for, and SM100's with one bit less or more."""
    model = MACHINES[machine] if isinstance(machine, str) else machine
    sm100 = MACHINES["sm100"]
    variants = [replace(sm100, name=f"F = {bits}", fraction_bits=bits) for bits in (24, 26)]
    return (other for other in (*MACHINES.values(), *variants) if other != model)


def _survivors(family: Family, own: Recipe, wrong: Sample, fmt: Format) -> list[str]:
    """The names of the candidates that give every element."""
    alive = np.arange(len(family.names))
    possible = family.possible
    if possible is not None:
        alive = alive[possible.mean(axis=1) >= _MOSTLY]
    for i in range(wrong.rows.size):
        if alive.size == 0:
            return []
        given: Elements = family.probe(i, alive)
        met = canonical_nan(own.apply(given), fmt) == wrong.found[i]
        alive = alive[met if possible is None else met | ~possible[alive, i]]
    if possible is not None and possible[alive].all(axis=1).any():
        alive = alive[possible[alive].all(axis=1)]
    names = [family.names[at] for at in alive[:_NAMED].tolist()]
    if alive.size > _NAMED:
        names[-1] += f" (and {alive.size - _NAMED} more that give the same bits)"
    return names


def take(indices: NDArray[np.intp], most: int = LOOKED_AT) -> NDArray[np.intp]:
    """At most ``most`` of some positions, evenly taken."""
    if indices.size <= most:
        return indices
    return indices[np.linspace(0, indices.size - 1, most).astype(np.int64)]
