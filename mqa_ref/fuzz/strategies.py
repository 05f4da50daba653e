"""Hypothesis strategies for launches of the kernel, after the manner of Hypothesis's own: plural names, keyword-only
bounds, arguments checked when the strategy is made. Needs the extra ``fuzz``.

Everything shrinks toward the smallest launch: one token, page 64, two CTAs, counting data. Lengths are drawn at and
around the places where kernels change their ways: pages, tiles of 128, splits of 256, the window of 64 tiles for which
table entries are fetched at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from numpy.typing import NDArray

from mqa_ref.emulator.policy import ORDERS
from mqa_ref.errors import Fault, InputError
from mqa_ref.flow import FLOWS, Flow
from mqa_ref.fuzz.description import ROLES, SPECIAL_CODES, SPECIAL_WORDS, Description, Override, expand
from mqa_ref.fuzz.lengths import boundaries, context_lengths, launch_lengths, long_lengths, refuse, subset
from mqa_ref.fuzz.shapes import FEW_SMS, HEADS, SUBTILES, WEIGHTS_IN_REGISTERS, Options, Shape, option_faults
from mqa_ref.problem import Problem
from mqa_ref.problem_rules import PAGES
from mqa_ref.schedule import FORMS, MAX_CTAS, SPLIT_TOKENS, build, cut
from mqa_ref.verification.data import KINDS
from mqa_ref.verification.full import SWITCHES
from mqa_ref.verification.pages import Order, Rest, Table, make_table

__all__ = [
    "block_tables",
    "boundaries",
    "context_lengths",
    "cuts",
    "data_patterns",
    "descriptions",
    "flows",
    "launch_lengths",
    "long_lengths",
    "options",
    "overrides",
    "problems",
    "schedules",
    "seeds",
    "shapes",
]

PAGE_ORDERS: tuple[Order, ...] = get_args(Order)
RESTS: tuple[Rest, ...] = ("tight", "zeros", "garbage")


def schedules(context_lens: Sequence[int], *, num_sms: int) -> SearchStrategy[NDArray[np.int32]]:
    """Schedules int32 [num_sms + 1, 2] that fit the lengths: the two published forms, and any other cutting."""
    total, faults = _splits(context_lens, num_sms)
    refuse(faults)
    cuttings = cuts(context_lens, num_sms=num_sms).map(lambda places: cut(context_lens, places))
    formed = st.sampled_from(FORMS).map(lambda form: build(context_lens, num_sms, form))
    return st.one_of(formed, cuttings) if total and num_sms > 1 else formed


def cuts(context_lens: Sequence[int], *, num_sms: int) -> SearchStrategy[tuple[int, ...]]:
    """Where CTAs 1 to num_sms - 1 start on the line of splits: some anywhere, the others without work, at the front or
    at the end."""
    total, faults = _splits(context_lens, num_sms)
    refuse(faults)
    places = st.lists(st.integers(0, total), max_size=min(num_sms - 1, 6)).map(sorted)

    def padded(inner: list[int], front: bool) -> tuple[int, ...]:
        idle = num_sms - 1 - len(inner)
        return (*[0] * idle, *inner) if front else (*inner, *[total] * idle)

    return st.builds(padded, places, st.booleans())


def block_tables(
    context_lens: Sequence[int],
    *,
    page: int = 64,
    orders: Sequence[Order] = PAGE_ORDERS,
    rests: Sequence[Rest] = RESTS,
) -> SearchStrategy[Table]:
    """Block tables for the lengths: see ``mqa_ref.verification.pages``."""
    _, faults = _splits(context_lens, 1)
    faults += [] if page in PAGES else [Fault("page", repr(page), f"one of {PAGES}")]
    refuse(faults + subset("orders", orders, PAGE_ORDERS) + subset("rests", rests, RESTS))
    lengths = tuple(int(length) for length in context_lens)
    return st.builds(
        lambda seed, order, rest: make_table(f"fuzz/{seed}/table", lengths, page, order, rest),
        seeds(),
        st.sampled_from(orders),
        st.sampled_from(rests),
    )


def seeds() -> SearchStrategy[int]:
    """Seeds of patterns."""
    return st.integers(0, 2**32 - 1)


def data_patterns(*, kinds: Sequence[str] = ()) -> SearchStrategy[str]:
    """Names of data patterns, the plainest first: see ``mqa_ref.verification.data``."""
    chosen = tuple(kinds) or ("counting", *(kind for kind in KINDS if kind != "counting"))
    refuse(subset("kinds", chosen, tuple(KINDS)))
    return st.sampled_from(chosen)


def flows(*, names: Sequence[str] = FLOWS) -> SearchStrategy[Flow]:
    """Dtype flows."""
    refuse(subset("names", names, FLOWS))
    return st.sampled_from(tuple(names)).map(Flow.parse)


def options(*, heads: int = 64) -> SearchStrategy[Options]:
    """Constructor arguments of the kernel that are legal for ``heads``, sorted by name; none is the default."""
    faults = [] if type(heads) is int and heads > 0 and heads % 4 == 0 else [_bad_heads(heads)]
    refuse(faults)
    parts = [count for count in SUBTILES if not option_faults({"num_epi_subtiles": count}, heads)]
    values: dict[str, SearchStrategy[Any]] = {name: st.booleans() for name in SWITCHES}
    values |= {
        "num_epi_subtiles": st.sampled_from(parts),
        "max_w_in_reg": st.sampled_from(WEIGHTS_IN_REGISTERS),
    }
    return st.fixed_dictionaries({}, optional=values).map(lambda chosen: tuple(sorted(chosen.items())))


def shapes(
    *,
    pages: Sequence[int] = (64, 32, 128),
    heads: Sequence[tuple[int, int]] = HEADS,
    num_sms: Sequence[int] = FEW_SMS,
    names: Sequence[str] = FLOWS,
    plain: bool = False,
) -> SearchStrategy[Shape]:
    """Static shapes. ``heads``: pairs (heads, next_n); ``names``: flows; ``plain``: without options."""
    faults = subset("pages", pages, PAGES) + subset("names", names, FLOWS) + subset("heads", heads, HEADS)
    if not num_sms or any(type(count) is not int or not 1 <= count <= MAX_CTAS for count in num_sms):
        faults.append(Fault("num_sms", repr(num_sms), f"integers in 1..{MAX_CTAS}, at least one"))
    refuse(faults)

    def of(pair: tuple[int, int]) -> SearchStrategy[Shape]:
        return st.builds(
            Shape,
            page=st.sampled_from(tuple(pages)),
            heads=st.just(pair[0]),
            next_n=st.just(pair[1]),
            num_sms=st.sampled_from(tuple(num_sms)),
            flow=st.sampled_from(tuple(names)),
            options=st.just(()) if plain else options(heads=pair[0]),
        )

    return st.sampled_from(tuple(heads)).flatmap(of)


def overrides() -> SearchStrategy[Override]:
    """One special value in one place that is used."""

    return _OVERRIDES


def _override(role: Any) -> SearchStrategy[Override]:
    values = SPECIAL_CODES if role in ("query", "key") else SPECIAL_WORDS
    places = {"at": st.integers(0, 7), "which": st.integers(0, 511), "element": st.integers(0, 127)}
    return st.builds(Override, role=st.just(role), value=st.sampled_from(tuple(values)), **places)


# A strategy that is made again for every draw is checked again for every draw.
_BY_ROLE = {role: _override(role) for role in ROLES}
_OVERRIDES = st.sampled_from(ROLES).flatmap(_BY_ROLE.__getitem__)
_PARTS: Mapping[str, SearchStrategy[Any]] = {
    "seed": st.integers(0, 2**32 - 1),
    "order": st.sampled_from(PAGE_ORDERS),
    "rest": st.sampled_from(RESTS),
    "form": st.sampled_from(FORMS),
    "columns": st.sampled_from((0, 1, 255, 256, 300)),
    "poison": st.booleans(),
    "overrides": st.lists(_OVERRIDES, max_size=3).map(tuple),
}
"""What every description draws, in this order."""
_CUTTING, _ORDER_SEEDS, _CHECK_SEEDS = st.integers(0, 2), st.integers(0, 51), st.integers(0, 255)


@st.composite
def _descriptions(
    draw: st.DrawFn,
    shape: SearchStrategy[Shape],
    lengths: Mapping[int, SearchStrategy[tuple[int, ...]]],
    kinds: SearchStrategy[str],
    interleavings: SearchStrategy[str],
    checks: SearchStrategy[str],
) -> Description:
    chosen = draw(shape)
    tokens = draw(lengths[chosen.page])
    cutting: tuple[int, ...] = ()
    if chosen.num_sms > 1 and draw(_CUTTING) == 2:
        cutting = draw(cuts(tokens, num_sms=chosen.num_sms))
    return Description(
        lengths=tokens,
        shape=chosen,
        data=draw(kinds),
        **{name: draw(part) for name, part in _PARTS.items()},
        cuts=cutting,
        interleaving=draw(interleavings),
        interleaving_seed=draw(_ORDER_SEEDS),
        check=draw(checks),
        check_seed=draw(_CHECK_SEEDS),
    )


def descriptions(
    *,
    shape: SearchStrategy[Shape] | None = None,
    lengths: SearchStrategy[tuple[int, ...]] | None = None,
    kinds: Sequence[str] = (),
    interleavings: Sequence[str] = ORDERS,
    checks: Sequence[str] = ("",),
) -> SearchStrategy[Description]:
    """Descriptions of launches. ``lengths``: ``launch_lengths`` of the shape's page if not given; ``checks``: names of
    properties, "" for none."""
    refuse(subset("interleavings", interleavings, ORDERS) + subset("checks", checks, None))
    return _descriptions(
        shapes() if shape is None else shape,
        {page: launch_lengths(page=page) if lengths is None else lengths for page in PAGES},
        data_patterns(kinds=kinds),
        st.sampled_from(tuple(interleavings)),
        st.sampled_from(tuple(checks)),
    )


def problems(
    *,
    shape: SearchStrategy[Shape] | None = None,
    lengths: SearchStrategy[tuple[int, ...]] | None = None,
    kinds: Sequence[str] = (),
) -> SearchStrategy[Problem]:
    """Problems, for tests of kernels that have no use for the rest of a description."""
    return descriptions(shape=shape, lengths=lengths, kinds=kinds).map(expand)


def _bad_heads(heads: object) -> Fault:
    return Fault("heads", repr(heads), "a multiple of 4")


def _splits(context_lens: Sequence[int], num_sms: int) -> tuple[int, list[Fault]]:
    """Splits of all rows, and what is wrong with lengths and CTAs."""
    try:
        build(context_lens, num_sms)
    except InputError as error:
        return 0, list(error.faults)
    return sum(-(-int(length) // SPLIT_TOKENS) for length in context_lens), []
