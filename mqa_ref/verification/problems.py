"""The quick set: named problems that between them hold every shape, table, schedule and value known to have
broken a kernel.

The list of reported bugs is in peers.md; each problem says what it is for. All data come from
``mqa_ref.verification.words``, so a name stands for the same bytes everywhere; a test pins their hash.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from mqa_ref.flow import Flow
from mqa_ref.problem import Problem
from mqa_ref.schedule import Form, build, cut
from mqa_ref.verification.data import DIM, Sizes, fill
from mqa_ref.verification.pages import Order, Rest, make_table


@dataclass(frozen=True)
class NamedProblem:
    """A problem, the name people call it by, and why it is in the set. ``select``: the words of a command line that
    choose it, empty for ``--case`` and the name. ``flow``: the flow it is run with, None for the run's. ``options``:
    further constructor arguments of the kernel. ``interleaving``: the one order in which it runs, empty for any."""

    name: str
    problem: Problem
    why: str
    select: tuple[str, ...] = ()
    flow: Flow | None = None
    options: Mapping[str, Any] | None = None
    interleaving: str = ""


@dataclass(frozen=True)
class Recipe:
    """What a named problem is made from. ``poison``: NaN codes and NaN scales fill the pages that nobody
    uses, and the tokens past the end of the last page of each sequence (unless another sequence needs
    them). ``cuts``: where the CTAs but the first start on the line of splits, ascending, in place of ``form``.
    ``columns``: how many more columns than the longest length the result is made for."""

    name: str
    why: str
    lengths: tuple[int, ...]
    num_sms: int
    page: int = 64
    heads: int = 64
    next_n: int = 1
    data: str = "rms"
    order: Order = "shuffled"
    rest: Rest = "zeros"
    form: Form = "forward"
    poison: bool = True
    cuts: tuple[int, ...] = ()
    columns: int = 0


# A kernel is compiled once for each page, heads, next_n and num_sms: few combinations keep the set quick.
# fmt: off
RECIPES: tuple[Recipe, ...] = (
    Recipe("one-token", "the smallest launch there is, and a CTA without work", (1,), 2, order="in_order",
           rest="tight"),
    Recipe("lonely-page", "one full page for 148 CTAs; the table ends with it", (64,), 148, rest="tight"),
    Recipe("small-pages", "two pages of the four that a tile has, and no entries for the others", (33,), 2, page=32,
           rest="tight"),
    Recipe("edges-of-a-tile", "lengths around one page and one tile", (127, 64, 128, 1), 4, data="bits"),
    Recipe("edges-of-a-split", "lengths around one tile and one split, two rows each", (129, 256, 257, 300), 4,
           next_n=2, data="wide"),
    Recipe("zero-in-the-middle", "a row without tokens inside a CTA's range", (300, 0, 129), 2, page=128, data="amax"),
    Recipe("zero-at-the-end", "a row without tokens last", (300, 0), 4, next_n=2, data="bits", rest="tight"),
    Recipe("tight-table", "257 tokens need five entries, and five are all there are", (257, 64), 4, rest="tight",
           data="wide"),
    Recipe("short-before-long", "the last row needs every entry of the table; none is behind it", (64, 300), 4,
           rest="tight", data="amax"),
    Recipe("thousand", "production-shaped values in descending pages", (1000, 300), 4, heads=32, next_n=2, data="amax",
           order="descending"),
    Recipe("repeated-pages", "sequences that share pages, pages twice in one sequence", (257, 256, 129), 4, heads=32,
           next_n=2, data="bits", order="repeated"),
    Recipe("garbage-entries", "table entries nobody needs are no page numbers", (129, 1000), 2, page=128, data="wide",
           rest="garbage"),
    Recipe("nan-keys", "one NaN code in every seventh key", (300, 256), 2, page=128, heads=32, data="nan_keys",
           rest="garbage"),
    Recipe("nan-query", "one NaN code in one row's queries", (129, 128), 4, next_n=2, data="nan_query"),
    Recipe("special-scales", "NaN, infinite, zero, subnormal, extreme scales", (257, 127), 4, data="special_scales"),
    Recipe("plain-scales", "finite scales of all sizes and signs", (256, 300), 2, page=128, data="plain_scales",
           order="descending"),
    Recipe("fma-ties", "a sum that is rounded twice shows at every token", (300, 200), 4, next_n=2, data="fma_ties"),
    Recipe("overflow", "weights up to the greatest number, scores of either sign", (129, 256), 4, heads=32, next_n=2,
           data="overflow"),
    Recipe("many-ctas", "148 CTAs, most without work, in the reversed schedule", (1000, 257, 1300, 64), 148,
           data="bits", form="reversed", rest="garbage"),
    Recipe("wide-products", "products cut by the tensor core at every step", (1000,), 2, page=128, heads=32,
           data="wide"),
    Recipe("long", "one CTA walks 33 splits: its table entries are fetched twice", (8322,), 1, data="bits"),
)
# fmt: on


def make(recipe: Recipe, **rest: Any) -> NamedProblem:
    """The problem of a recipe; the recipe's name is the label of all its random words. ``rest``: further
    fields of the result.
    """
    table = make_table(f"{recipe.name}/table", recipe.lengths, recipe.page, recipe.order, recipe.rest)
    rows = len(recipe.lengths) * recipe.next_n
    data = fill(recipe.data, recipe.name, Sizes(rows, recipe.heads, table.pages * recipe.page))
    k = data.k.reshape(table.pages, recipe.page, DIM).copy()
    scales = data.scales.reshape(table.pages, recipe.page).copy()
    if recipe.poison:
        idle = np.ones((table.pages, recipe.page), np.bool_)
        for b, length in enumerate(recipe.lengths):
            token = np.arange(length)
            idle[table.entries[b, token // recipe.page], token % recipe.page] = False
        k[idle] = 0x7F
        scales[idle] = np.float32(np.nan)
    codes = k.reshape(table.pages, -1)
    kv_fused = np.concatenate([codes, scales.astype("<f4").view(np.uint8)], axis=1)
    lengths = np.array(recipe.lengths, np.int32)
    problem = Problem(
        data.q.reshape(len(recipe.lengths), recipe.next_n, recipe.heads, DIM),
        kv_fused,
        data.weights,
        table.entries,
        lengths,
        page=recipe.page,
        num_sms=recipe.num_sms,
        max_context_len=max(1, *recipe.lengths) + recipe.columns,
        schedule=cut(lengths, recipe.cuts) if recipe.cuts else build(lengths, recipe.num_sms, recipe.form),
    )
    return NamedProblem(recipe.name, problem, recipe.why, **rest)


@cache
def quick() -> tuple[NamedProblem, ...]:
    """The named problems of the level "quick", in the order in which they run."""
    return tuple(make(recipe) for recipe in RECIPES)
