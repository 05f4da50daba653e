"""Which page holds which tokens: block tables in order, shuffled, descending or with repeated pages, tight or
with garbage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mqa_ref.verification.words import below, permutation

Order = Literal["in_order", "shuffled", "descending", "repeated", "shared_prefix"]
Rest = Literal["tight", "zeros", "garbage"]

SPARES = 3
"""Pages that no table names, on top of those in use."""


@dataclass(frozen=True)
class Table:
    """A block table int32 [B, width], how many pages the cache has, and which of them (bool [pages]) no
    sequence uses."""

    entries: NDArray[np.int32]
    pages: int
    unused: NDArray[np.bool_]


def _pool(label: str, order: Order, needed: int) -> tuple[NDArray[np.int64], int]:
    """The page ids in the order in which sequences take them, and the size of the cache."""
    if order == "repeated":
        distinct = max(1, needed // 3)
        return below(label, needed, distinct) + SPARES, distinct + SPARES
    pages = needed + SPARES
    if order in ("shuffled", "shared_prefix"):
        return permutation(label, pages)[:needed], pages
    # Page 0 belongs to nobody: kernels read it for a tile that does not exist.
    ids = np.arange(SPARES, pages)
    return (ids[::-1] if order == "descending" else ids), pages


def make_table(label: str, lengths: tuple[int, ...], page: int, order: Order, rest: Rest) -> Table:
    """A table for sequences of these lengths.

    ``rest`` says what stands in entries that no token needs, and whether there are any in the longest row:
    "tight" has none there and -1 elsewhere; "zeros" has two more columns than needed and page 0; "garbage"
    has two more columns and numbers that are no page: -1, the greatest and the least int32, and pages that
    nobody uses.
    """
    needed = [-(-length // page) for length in lengths]
    width = max(1, max(needed)) + (0 if rest == "tight" else 2)
    ids, pages = _pool(label, order, sum(needed))
    free = sorted(set(range(pages)) - set(ids.tolist()))
    limits = np.iinfo(np.int32)
    fill = {"tight": [-1], "zeros": [0], "garbage": [-1, limits.max, free[-1], limits.min, pages]}[rest]
    entries = np.array([fill[i % len(fill)] for i in range(len(lengths) * width)], np.int32)
    entries = entries.reshape(len(lengths), width)
    taken = 0
    for row, count in enumerate(needed):
        entries[row, :count] = ids[taken : taken + count]
        taken += count
    if order == "shared_prefix":
        _share_prefix(entries, needed)
    unused = np.ones(pages, np.bool_)
    for row, count in enumerate(needed):
        unused[entries[row, :count]] = False
    return Table(entries, pages, unused)


def _share_prefix(entries: NDArray[np.int32], needed: list[int]) -> None:
    """Every sequence begins with the pages of the longest one, for half of its own: what a prefix cache makes."""
    longest = needed.index(max(needed))
    for row, count in enumerate(needed):
        entries[row, : count // 2] = entries[longest, : count // 2]
