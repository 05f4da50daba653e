"""What the wrong elements have in common, in plain words: one row, one tile, one CTA, one warp group, one
page, one lane."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mqa_ref.compare.bits import Mask
from mqa_ref.compare.place import Index, locate, owners
from mqa_ref.compare.tally import PIECE, Counts, count
from mqa_ref.problem import Problem
from mqa_ref.schedule import SPLIT_TOKENS, TILE_TOKENS

_FEW = 4
_SAID = 8
_PAIR = "tile of one row"
_TILES = 1 << 32


@dataclass(frozen=True)
class _Pieces:
    """Pieces of 32 tokens: ``row`` [n] and ``piece`` [n], the number within the row."""

    problem: Problem
    row: Index
    piece: Index

    @property
    def tile(self) -> Index:
        return self.piece // (TILE_TOKENS // PIECE)

    @property
    def split(self) -> Index:
        return self.piece // (SPLIT_TOKENS // PIECE)

    @property
    def slot(self) -> Index:
        # The last tile may reach beyond the table; nothing is compared there.
        last = self.problem.block_table.shape[1] - 1
        return np.asarray(np.minimum(self.piece * PIECE // self.problem.page, last))

    @property
    def page(self) -> Index:
        table: Index = self.problem.block_table.astype(np.int64)
        return np.asarray(table[self.row // self.problem.next_n, self.slot])

    @property
    def cta(self) -> Index:
        owner = owners(self.problem)
        split = np.minimum(self.split, owner.shape[1] - 1)
        return np.asarray(owner[self.row // self.problem.next_n, split])


@dataclass(frozen=True)
class _Tokens:
    """Tokens of a split: ``token`` [256], of which ``tile_token`` is the number within the tile."""

    problem: Problem
    token: Index

    @property
    def tile_token(self) -> Index:
        return self.token % TILE_TOKENS


_Axis = tuple[str, str, Callable[[Any], Index]]
"""A coordinate: one value of it and several in words, and its values for ``_Pieces`` or ``_Tokens``."""

_PIECE_AXES: tuple[_Axis, ...] = (
    ("sequence {}", "sequences {}", lambda at: at.row // at.problem.next_n),
    ("row {}", "rows {}", lambda at: at.row),
    ("next_n position {}", "next_n positions {}", lambda at: at.row % at.problem.next_n),
    ("tile {}", "tiles {}", lambda at: at.tile),
    (_PAIR, _PAIR, lambda at: at.row * _TILES + at.tile),
    ("split {}", "splits {}", lambda at: at.split),
    ("CTA {}", "CTAs {}", lambda at: at.cta),
    ("warp group {}", "warp groups {}", lambda at: at.tile % 2),
    ("page {}", "pages {}", lambda at: at.page),
    ("page slot {}", "page slots {}", lambda at: at.slot),
)
_TOKEN_AXES: tuple[_Axis, ...] = (
    ("token {} of the split", "tokens {} of the split", lambda at: at.token),
    ("token {} of the page", "tokens {} of the page", lambda at: at.token % at.problem.page),
    ("token {} of the tile", "tokens {} of the tile", lambda at: at.tile_token),
    ("lane {} of the warps", "lanes {} of the warps", lambda at: at.tile_token % 32),
    ("warp {} of the warp group", "warps {} of the warp group", lambda at: at.tile_token // 32),
)
_SPREAD = ("row {}", "tile {}", "CTA {}", "warp group {}")


def where(problem: Problem, compared: Mask, wrong: Mask) -> tuple[str, ...]:
    """Sentences that name what the ``wrong`` ones (bool [rows, columns]) among the ``compared`` elements (bool, same
    shape) share, most telling first.

    Empty when nothing is wrong.
    """
    bad = count(wrong)
    if bad.all == 0:
        return ()
    total = count(compared)
    if bad.all == total.all:
        return ("every compared element",)
    if bad.all == 1:
        row = np.flatnonzero(bad.pieces.any(axis=1))
        return (f"one element: {locate(row, np.flatnonzero(wrong[row[0]]), problem).one(0)}",)
    said: list[tuple[tuple[int, int], str]] = []
    spread: list[str] = []
    for axis, values, ours, theirs in _along(problem, bad, total):
        sentence = _statement(axis, values, ours, theirs)
        if sentence is not None:
            said.append(sentence)
        elif values.size > 1 and axis[0] in _SPREAD:
            spread.append(f"{np.count_nonzero(ours)} of {values.size} {axis[1].removesuffix(' {}')}")
    said.sort(key=lambda item: item[0])
    if said:
        return tuple(sentence for _, sentence in said[:_SAID])
    return (f"spread over {_join(spread)}, no common place",) if spread else ("no common place",)


def _along(problem: Problem, bad: Counts, total: Counts) -> Iterator[tuple[_Axis, Index, Index, Index]]:
    """Every coordinate, its values that occur, and the wrong and the compared elements of each: [k] each."""
    pieces = np.nonzero(total.pieces)
    there = np.flatnonzero(total.tokens)
    for axes, at, ours, theirs in (
        (_PIECE_AXES, _Pieces(problem, *pieces), bad.pieces[pieces], total.pieces[pieces]),
        (_TOKEN_AXES, _Tokens(problem, there), bad.tokens.ravel()[there], total.tokens.ravel()[there]),
    ):
        for axis in axes:
            values, inverse = np.unique(axis[2](at), return_inverse=True)
            # Counts are below 2**53, so float64 weights add without error.
            wrong, compared = (np.bincount(inverse, weights=part) for part in (ours, theirs))
            yield axis, values, wrong.astype(np.int64), compared.astype(np.int64)


def _statement(axis: _Axis, values: Index, wrong: Index, total: Index) -> tuple[tuple[int, int], str] | None:
    """A sentence about one coordinate, with its rank (the lowest is the most telling: complete sets first, and of
    those the ones of fewest values; then the smallest set that holds all), or None when there is nothing to say.

    ``values`` [k]: those that occur among the compared elements; ``wrong``, ``total`` [k]: elements of each.
    """
    hit, spared = np.flatnonzero(wrong), np.flatnonzero(wrong == 0)
    if values.size == 1 or spared.size == 0:
        return None
    complete = bool((wrong[hit] == total[hit]).all())
    subject = _subject(axis, values, hit)
    if complete and subject is not None:
        return (0, hit.size), f"every compared element of {subject} and no other"
    rest = _subject(axis, values, spared)
    if complete and rest is not None:
        return (0, spared.size), f"every compared element except those of {rest}"
    if hit.size == 1:
        share = f"{int(wrong[hit[0]])} of its {int(total[hit[0]])} compared elements"
        return (1, int(total[hit[0]])), f"all in {subject} ({share})"
    if subject is not None and hit.size > _FEW:
        return (2, hit.size), f"all in {subject}"
    return None


def _subject(axis: _Axis, values: Index, chosen: Index) -> str | None:
    """The elements at some values of a coordinate in words: a few of them, or many that follow each other (``chosen``:
    positions in ``values``); None for what is no such thing."""
    picked = values[chosen].tolist()
    if axis[0] == _PAIR:
        told = [f"tile {value % _TILES} of row {value // _TILES}" for value in picked[: _FEW + 1]]
        return _join(told) if len(picked) <= _FEW else None
    if len(picked) <= _FEW:
        return (
            axis[1].format(_join([str(value) for value in picked]))
            if len(picked) > 1
            else (axis[0].format(picked[0]))
        )
    if 2 * len(picked) <= values.size and picked[-1] - picked[0] == len(picked) - 1:
        return axis[1].format(f"{picked[0]} to {picked[-1]}")
    return None


def _join(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
