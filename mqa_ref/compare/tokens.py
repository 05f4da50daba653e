"""Where a kernel may take a key or a scale from by mistake: rules that give, for elements, another page and token than
the right ones."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mqa_ref.compare.place import Index
from mqa_ref.problem import Problem

_NUMBERED = re.compile(r"(row|page) \d+")
_SHIFTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_MOST = 4096
"""Sequences, table entries or pages that are tried, each."""


@dataclass(frozen=True)
class TokenSources:
    """Rules by name: ``pages``, ``tokens`` [rules, n], the page id and the number within the page that each takes, and
    ``possible`` [rules, n], whether there is such a token."""

    names: list[str]
    pages: Index
    tokens: Index
    possible: NDArray[np.bool_]


def token_sources(problem: Problem, rows: Index, columns: Index) -> TokenSources:
    """The rules for the elements at row [n], column [n], without those that give the right place; of several that give
    the same places the first."""
    rules = _Rules(problem, rows, columns)
    rules.shifts()
    rules.within_page()
    rules.entries()
    rules.sequences()
    rules.pages()
    return rules.all()


class _Rules:
    """Rules in the making."""

    def __init__(self, problem: Problem, rows: Index, columns: Index) -> None:
        self.problem = problem
        self.b = rows // problem.next_n
        self.columns = columns
        self.slot, self.token = np.divmod(columns, problem.page)
        self.table = problem.block_table.astype(np.int64)
        self.found: list[tuple[str, Index, Index]] = []

    def add(self, name: str, page: Index, token: Index) -> None:
        """A rule; -1 stands for no page."""
        self.found.append((name, page, token))

    def entry(self, b: Index, slot: Index) -> Index:
        """What the table says, -1 where it ends."""
        inside = (b >= 0) & (b < len(self.table)) & (slot >= 0) & (slot < self.table.shape[1])
        pages = self.table[np.where(inside, b, 0), np.where(inside, slot, 0)]
        return np.where(inside, pages, -1)

    def shifts(self) -> None:
        """Tokens of the same sequence some way off."""
        lengths = self.problem.context_lens.astype(np.int64)[self.b]
        # A page's length away is the neighbouring table entry.
        for step in (signed for size in _SHIFTS if size != self.problem.page for signed in (-size, size)):
            column = self.columns + step
            slot, token = np.divmod(np.maximum(column, 0), self.problem.page)
            inside = (column >= 0) & (column < lengths)
            side = "before" if step < 0 else "after"
            name = f"the token {side}" if abs(step) == 1 else f"the token {abs(step)} places {side}"
            self.add(name, np.where(inside, self.entry(self.b, slot), -1), token)

    def within_page(self) -> None:
        """The same token of each page."""
        page = self.entry(self.b, self.slot)
        for number in range(self.problem.page):
            self.add(f"token {number} of the page", page, np.full_like(self.token, number))

    def entries(self) -> None:
        """Other entries of the sequence's own table."""
        for name, slot in (
            ("the table entry before", self.slot - 1),
            ("the next table entry", self.slot + 1),
        ):
            self.add(f"the page of {name}", self.entry(self.b, slot), self.token)
        for number in range(min(self.table.shape[1], _MOST)):
            page = self.entry(self.b, np.full_like(self.b, number))
            self.add(f"the page of table entry {number}", page, self.token)

    def sequences(self) -> None:
        """The same entry of another sequence's table."""
        for name, b in (("the sequence before", self.b - 1), ("the sequence after", self.b + 1)):
            self.add(f"the page of {name}", self.entry(b, self.slot), self.token)
        for other in range(min(len(self.table), _MOST)):
            page = self.entry(np.full_like(self.b, other), self.slot)
            self.add(f"the page of sequence {other}", page, self.token)

    def pages(self) -> None:
        """Pages by number."""
        self.add("the page with the number of the table entry", self.slot, self.token)
        for page in range(min(self.problem.num_pages, _MOST)):
            self.add(f"page {page}", np.full_like(self.b, page), self.token)

    def all(self) -> TokenSources:
        """What is different and exists for at least one element."""
        right = self.entry(self.b, self.slot) * self.problem.page + self.token
        pages, tokens = (np.stack([rule[at] for rule in self.found]) for at in (1, 2))
        possible = (pages >= 0) & (pages < self.problem.num_pages)
        flat = np.where(possible, pages * self.problem.page + tokens, -1)
        _, first = np.unique(flat, axis=0, return_index=True)
        keep = [
            at for at in sorted(first.tolist()) if possible[at].any() and not np.array_equal(flat[at], right)
        ]
        there = possible[keep]
        names = [rule[0] for rule in self.found]
        return TokenSources(
            [name_of(at, names, flat) for at in keep], np.where(there, pages[keep], 0), tokens[keep], there
        )


def name_of(at: int, names: list[str], table: Index) -> str:
    """The name of a rule, and with it the plain number of the row or page, where another rule with the same places
    (``table`` [rules, n]) has that for a name."""
    same = np.flatnonzero((table == table[at]).all(axis=1)).tolist()
    numbers = (names[other] for other in same if other != at and _NUMBERED.fullmatch(names[other]))
    number = next(numbers, None)
    return names[at] if number is None else f"{names[at]} ({number})"


def interleaved(problem: Problem, row: int, column: int) -> tuple[NDArray[np.uint8], int]:
    """Key codes [D] and scale pattern of an element, had each token's scale followed its codes within the page."""
    slot, token = divmod(column, problem.page)
    page = problem.kv_fused[problem.block_table[row // problem.next_n, slot]]
    size = problem.head_dim + 4
    whole = page[token * size : (token + 1) * size]
    return whole[: problem.head_dim], int.from_bytes(whole[problem.head_dim :].tobytes(), "little")
