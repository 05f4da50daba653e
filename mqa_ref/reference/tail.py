"""What a kernel stores beside the valid logits: columns of a row's last split that none of its tokens has.

Kernels work in splits of 256 tokens and store whole ones. What they compute for a token that is not there depends on
which page they read for it; a rule says that, and the rest is the arithmetic of any logit. Nobody reads these columns:
a rule only tells what to expect in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.errors import Fault, InputError
from mqa_ref.flow import Flow
from mqa_ref.numerics import MachineModel
from mqa_ref.problem import Problem
from mqa_ref.reference.epilogue import Generation
from mqa_ref.reference.logits import reference_logits
from mqa_ref.reference.orders import SumOrder
from mqa_ref.schedule import SPLIT_TOKENS

_NOTHING = -1
"""In place of a page: zeros, which is what a tile load brings for a page that is not in the pool."""
_UNKNOWN = -2
TILE_TOKENS = SPLIT_TOKENS // 2

Ids = NDArray[np.int64]
Rule = Callable[[Problem, int, Ids], Ids]


def _zeros(_: Problem, __: int, entries: Ids) -> Ids:
    return np.full_like(entries, _NOTHING)


def _page_0(_: Problem, __: int, entries: Ids) -> Ids:
    return np.zeros_like(entries)


def _entries(problem: Problem, sequence: int, entries: Ids) -> Ids:
    """The block table's, in tiles that begin below the length; page 0 in the tile after those. An entry behind the
    row's end belongs to others, and one that is no page brings zeros."""
    table = problem.block_table[sequence].astype(np.int64)
    tiles = -(-int(problem.context_lens[sequence]) // TILE_TOKENS)
    inside = entries < table.size
    ids = np.where(inside, table[np.minimum(entries, table.size - 1)], _UNKNOWN)
    ids = np.where(inside & ((ids < 0) | (ids >= problem.num_pages)), _NOTHING, ids)
    return np.where(entries * problem.page >= tiles * TILE_TOKENS, 0, ids)


TAILS: Mapping[str, Rule] = {"zeros": _zeros, "page_0": _page_0, "entries": _entries}
"""Which page a kernel reads for a page that lies wholly behind the length, by the name of the rule: none, page 0, or
the block table's. The tokens behind the length in a sequence's last page are that page's in all rules."""


def tail_logits(
    problem: Problem,
    flow: Flow,
    rule: str,
    machine: str | MachineModel = "sm100",
    *,
    generation: Generation = "folded",
    order: SumOrder = "four_chains",
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The bits of the columns behind each row's valid ones in the last split of its sequence, and where the rule says
    them.

    Both [rows, row_stride], bits as from ``reference_logits``, which has the other arguments and errors; False, and 0,
    in valid columns, in splits that hold no token of the sequence, and where a page is read that the rule does not
    know. InputError for a rule that is not in TAILS. Standing: observed of the kernels that declare it.
    """
    if rule not in TAILS:
        raise InputError([Fault("tail", repr(rule), "one of " + ", ".join(TAILS))])
    shape = (problem.rows, problem.row_stride)
    bits: NDArray[Any] = np.zeros(shape, flow.bits_dtype)
    known = np.zeros(shape, np.bool_)
    sequences = np.nonzero(problem.context_lens)[0].tolist()
    if not sequences:
        return bits, known
    page, firsts = problem.page, [_last_split(problem, sequence) for sequence in sequences]
    pages = [_pages(problem, *where, TAILS[rule]) for where in zip(sequences, firsts, strict=True)]
    split = _splits(problem, sequences, pages)
    found, _ = reference_logits(split, flow, machine, generation=generation, order=order)
    valid = problem.valid_columns().reshape(problem.batch, problem.next_n)
    columns = np.arange(SPLIT_TOKENS)
    for place, (sequence, first) in enumerate(zip(sequences, firsts, strict=True)):
        read = np.repeat(pages[place] != _UNKNOWN, page)
        for token in range(problem.next_n):
            row, at = sequence * problem.next_n + token, slice(first, first + SPLIT_TOKENS)
            known[row, at] = read & (columns + first >= valid[sequence, token])
            bits[row, at] = found[place * problem.next_n + token, :SPLIT_TOKENS]
    bits[~known] = 0
    return bits, known


def _last_split(problem: Problem, sequence: int) -> int:
    """Its first column."""
    return (int(problem.context_lens[sequence]) - 1) // SPLIT_TOKENS * SPLIT_TOKENS


def _pages(problem: Problem, sequence: int, first: int, rule: Rule) -> Ids:
    """The page that is read for each page of a split."""
    entries = np.arange(first // problem.page, (first + SPLIT_TOKENS) // problem.page)
    own = entries * problem.page < int(problem.context_lens[sequence])
    table = problem.block_table[sequence].astype(np.int64)
    return np.where(own, table[np.minimum(entries, table.size - 1)], rule(problem, sequence, entries))


def _splits(problem: Problem, sequences: list[int], pages: list[Ids]) -> Problem:
    """A launch of one split for each of the sequences, every column of which is valid."""
    count, per = len(sequences), SPLIT_TOKENS // problem.page
    length = SPLIT_TOKENS + problem.next_n - 1
    read = np.concatenate(pages)
    pool = np.zeros((read.size + 1, problem.kv_fused.shape[1]), np.uint8)
    pool[:-1][read >= 0] = problem.kv_fused[read[read >= 0]]
    table = np.full((count, -(-length // problem.page)), read.size, np.int32)
    table[:, :per] = np.arange(read.size).reshape(count, per)
    weights = problem.weights.reshape(problem.batch, problem.next_n, problem.heads)[sequences]
    return Problem(
        problem.q[sequences],
        pool,
        weights.reshape(-1, problem.heads),
        table,
        np.full(count, length, np.int32),
        page=problem.page,
        num_sms=1,
    )
