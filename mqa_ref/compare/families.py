"""Families of mistakes that differ only in a number: which two heads were exchanged, whose weights, query, key or scale
was taken. A family can be large, so candidates are tried on one element after the other and most fall at the first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from mqa_ref.compare.bits import Bits
from mqa_ref.compare.gather import Elements, Source
from mqa_ref.compare.place import Index
from mqa_ref.compare.tokens import interleaved, name_of, token_sources

Chosen = NDArray[np.intp]
_MOST_PRODUCTS = 1 << 16
"""Rows of queries that one element is multiplied with."""
_NEIGHBOURS = ("the row before", "the row after", "the sequence before", "the sequence after")


@dataclass(frozen=True)
class Sample:
    """Some elements: ``rows``, ``columns`` [n], ``found`` [n], the patterns to explain, NaN canonical, and ``expected``
    [n]."""

    rows: Index
    columns: Index
    found: Bits
    expected: Bits


@dataclass(frozen=True)
class Family:
    """Candidates by name. ``probe(i, chosen)``: what element i is computed from by each of the ``chosen`` candidates;
    ``possible`` [candidates, n]: whether a candidate says anything about an element, None for always."""

    names: Sequence[str]
    probe: Callable[[int, Chosen], Elements]
    possible: NDArray[np.bool_] | None = None


def families(source: Source, sample: Sample) -> Iterator[Family]:
    """All of them."""
    own = source.elements(sample.rows, sample.columns)
    yield from _exchanged(own)
    yield _turned(own)
    yield from _rows(source, sample, own)
    yield from _tokens(source, sample, own)
    yield from _parts_of_k(source, sample, own)


def _many(array: NDArray[np.generic], count: int) -> NDArray[np.generic]:
    return np.repeat(array[None], count, axis=0)


def _exchanged(own: Elements) -> Iterator[Family]:
    pairs = np.array(list(combinations(range(own.acc.shape[1]), 2)), np.int64)
    turned = pairs[:, ::-1]

    def swap(values: NDArray[np.generic], chosen: Chosen, wanted: bool) -> NDArray[np.generic]:
        out = _many(values, chosen.size)
        if wanted:
            np.put_along_axis(out, pairs[chosen], values[turned[chosen]], axis=1)
        return out

    def family(what: str, weights: bool, queries: bool) -> Family:
        names = [what.format(f"{one} and {other}") for one, other in pairs.tolist()]
        return Family(
            names,
            lambda i, chosen: Elements(
                swap(own.acc[i], chosen, queries),
                swap(own.weights[i], chosen, weights).astype(np.uint32),
                np.repeat(own.scales[i], chosen.size),
            ),
        )

    yield family("the weights of heads {} exchanged", True, False)
    yield family("the queries of heads {} exchanged", False, True)


def _turned(own: Elements) -> Family:
    steps = np.array([-1, 1])
    return Family(
        ("the weights of the next head", "the weights of the head before"),
        lambda i, chosen: Elements(
            np.repeat(own.acc[i][None], chosen.size, axis=0),
            np.stack([np.roll(own.weights[i], step) for step in steps[chosen]]),
            np.repeat(own.scales[i], chosen.size),
        ),
    )


def other_rows(source: Source, rows: Index) -> tuple[list[str], Index, NDArray[np.bool_]]:
    """Rules that take another row than the right one: names, rows [rules, n], and where that row exists."""
    problem = source.problem
    n = problem.next_n
    rules: list[tuple[str, Index]] = []
    if n > 1:
        rules.append(("the next query token", rows - rows % n + (rows + 1) % n))
        rules.append(("query token 0", rows - rows % n))
    rules += [(name, rows + step) for name, step in zip(_NEIGHBOURS, (-1, 1, -n, n), strict=True)]
    rules.append(("the row with the number of the sequence", rows // n))
    near = np.arange(problem.rows)
    most = max(1, _MOST_PRODUCTS // problem.heads)
    if near.size > most:
        near = np.clip(np.arange(most) + int(rows[0]) - most // 2, 0, problem.rows - 1)
    rules += [(f"row {row}", np.full(rows.size, row)) for row in np.unique(near).tolist()]
    return distinct(rules, rows, problem.rows)


def distinct(
    rules: Sequence[tuple[str, Index]], right: Index, limit: int
) -> tuple[list[str], Index, NDArray[np.bool_]]:
    """The rules that give something else than the right numbers and than the rules before them; and where what they
    give is in 0..limit-1."""
    table = np.stack([values for _, values in rules])
    _, first = np.unique(table, axis=0, return_index=True)
    keep = [at for at in sorted(first.tolist()) if not np.array_equal(table[at], right)]
    names = [name_of(at, [name for name, _ in rules], table) for at in keep]
    table = table[keep]
    possible = (table >= 0) & (table < limit)
    return names, np.clip(table, 0, limit - 1), possible


def _rows(source: Source, sample: Sample, own: Elements) -> Iterator[Family]:
    names, rows, possible = other_rows(source, sample.rows)
    if not names:
        return
    keys = source.at(sample.rows, sample.columns)[0]

    def acc(i: int, chosen: Chosen, other: bool) -> NDArray[np.generic]:
        if not other:
            return _many(own.acc[i], chosen.size)
        return source.dots(source.queries(rows[chosen, i]), keys[i : i + 1])

    def family(what: str, queries: bool, weights: bool) -> Family:
        return Family(
            [f"{what} of {name}" for name in names],
            lambda i, chosen: Elements(
                acc(i, chosen, queries),
                source.weights(rows[chosen, i] if weights else np.full(chosen.size, sample.rows[i])),
                np.repeat(own.scales[i], chosen.size),
            ),
            possible,
        )

    yield family("the weights", False, True)
    yield family("the query", True, False)
    yield family("the query and weights", True, True)


def _tokens(source: Source, sample: Sample, own: Elements) -> Iterator[Family]:
    """Another token's key, scale or both."""
    queries = source.queries(sample.rows)
    rules = token_sources(source.problem, sample.rows, sample.columns)
    pages, tokens = rules.pages, rules.tokens

    def family(what: str, key: bool, scale: bool) -> Family:
        def probe(i: int, chosen: Chosen) -> Elements:
            keys, scales = source.keys(pages[chosen, i], tokens[chosen, i])
            return Elements(
                source.dots(queries[i : i + 1], keys) if key else _many(own.acc[i], chosen.size),
                _many(own.weights[i], chosen.size).astype(np.uint32),
                scales if scale else np.repeat(own.scales[i], chosen.size),
            )

        return Family([f"{what} of {name}" for name in rules.names], probe, rules.possible)

    if rules.names:
        yield family("the scale", False, True)
        yield family("the key", True, False)
        yield family("the key and scale", True, True)

    def layout(i: int, chosen: Chosen) -> Elements:
        key, scale = interleaved(source.problem, int(sample.rows[i]), int(sample.columns[i]))
        acc = source.dots(queries[i : i + 1], key[None])[0]
        both = [(acc, own.scales[i]), (own.acc[i], scale), (acc, scale)]
        taken = [both[at] for at in chosen.tolist()]
        return Elements(
            np.stack([one for one, _ in taken]),
            _many(own.weights[i], chosen.size).astype(np.uint32),
            np.array([scale for _, scale in taken], np.uint32),
        )

    where = "where interleaved pages would have them"
    yield Family([f"{what} read {where}" for what in ("keys", "scales", "keys and scales")], layout)


def _parts_of_k(source: Source, sample: Sample, own: Elements) -> Iterator[Family]:
    """Some elements of the heads left out."""
    queries, keys = source.queries(sample.rows), source.at(sample.rows, sample.columns)[0]
    dim, step = keys.shape[1], 32
    ranges = [(first, first + step) for first in range(0, dim, step)] if dim > step else []
    ranges += [(0, dim // 2), (dim // 2, dim)] if dim > 2 * step else []
    if not ranges:
        return

    def probe(i: int, chosen: Chosen) -> Elements:
        cut = np.repeat(keys[i : i + 1], chosen.size, axis=0)
        for row, (first, stop) in zip(cut, [ranges[at] for at in chosen.tolist()], strict=True):
            row[first:stop] = 0
        return Elements(
            source.dots(queries[i : i + 1], cut),
            _many(own.weights[i], chosen.size).astype(np.uint32),
            np.repeat(own.scales[i], chosen.size),
        )

    yield Family([f"dot products without elements {one} to {stop - 1}" for one, stop in ranges], probe)
