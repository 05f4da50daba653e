"""Where an element of the logits lies: row and column, the tile and split, the page, the CTA and warp group
that own it."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from mqa_ref.problem import Problem
from mqa_ref.schedule import SPLIT_TOKENS, TILE_TOKENS, partition

Index = NDArray[np.int64]


@dataclass(frozen=True)
class Place:
    """One element. ``row`` = b * next_n + t, ``column`` = token. ``page_slot``: entry of the block table's
    row ``b`` that holds the token, ``page_id`` what that entry says, ``page_token`` the token's number within
    the page. ``cta``: who owns the split by the schedule, -1 for nobody. ``warp_group``: 0 for the even
    tiles, 1 for the odd ones."""

    row: int
    column: int
    b: int
    t: int
    tile: int
    split: int
    page_slot: int
    page_id: int
    page_token: int
    cta: int
    warp_group: int

    def as_dict(self) -> dict[str, int]:
        """The coordinates by name."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"row {self.row} column {self.column} (b {self.b}, t {self.t}, tile {self.tile}, split {self.split},"
            f" page slot {self.page_slot} = page {self.page_id} token {self.page_token}, CTA {self.cta},"
            f" warp group {self.warp_group})"
        )


@dataclass(frozen=True)
class Places:
    """Many elements, one array [n] per coordinate of ``Place``, and ``tile_token``, the token's number within
    its tile."""

    row: Index
    column: Index
    b: Index
    t: Index
    tile: Index
    split: Index
    page_slot: Index
    page_id: Index
    page_token: Index
    cta: Index
    warp_group: Index
    tile_token: Index

    def one(self, index: int) -> Place:
        """One of them."""
        return Place(**{name: int(getattr(self, name)[index]) for name in Place.__dataclass_fields__})


def owners(problem: Problem) -> Index:
    """Which CTA executes each split: int64 [B, splits], -1 where no CTA does."""
    lengths = np.asarray(problem.context_lens, np.int64)
    owner = np.full((lengths.size, max(1, -(-int(lengths.max()) // SPLIT_TOKENS))), -1, np.int64)
    for cta, items in partition(problem.schedule, problem.context_lens).items():
        for b, split in items:
            owner[b, split] = cta
    return owner


def locate(rows: Index, columns: Index, problem: Problem) -> Places:
    """The places of elements given by row [n] and column [n]; every column must lie below its row's context
    length."""
    b, t = np.divmod(rows, problem.next_n)
    tile, split = columns // TILE_TOKENS, columns // SPLIT_TOKENS
    slot, token = np.divmod(columns, problem.page)
    page_id = np.asarray(problem.block_table, np.int64)[b, slot]
    cta = owners(problem)[b, split]
    return Places(
        rows, columns, b, t, tile, split, slot, page_id, token, cta, tile % 2, columns % TILE_TOKENS
    )
