"""The part of the schedule one CTA executes: which rows, and which splits of each row.

Schedule row *c* is where CTA *c* starts and row *c + 1* is where it stops, both as (row, split). Positions are
ordered, and the end is compared with ``<``, never with ``!=``: whatever the schedule holds, every loop here is
bounded by the batch size and by the lengths actually found, so that a stale schedule computes the wrong elements
but always ends. A row of length 0 has no split and is never executed.
"""

from dataclasses import dataclass

import cutlass.cute as cute
from cutlass import Int32

SPLIT_BITS = 8  # a split is 256 tokens


@dataclass(frozen=True)
class Work:
    """What says who computes what: ``schedule`` [CTAs + 1, 2], ``context_lens`` [batch] and the batch size."""

    schedule: cute.Tensor
    context_lens: cute.Tensor
    batch: Int32


@dataclass(frozen=True)
class Walk:
    """Rows ``first_row .. last_row`` (none when the last comes before the first) and the splits at either end."""

    first_row: Int32
    first_split: Int32
    last_row: Int32
    end_row: Int32
    end_split: Int32


@cute.jit
def read_walk(work: Work) -> Walk:
    """Read the two schedule rows of this CTA, and nothing else.

    The end row belongs to the walk only when some of its splits do, so that a CTA without work has no row and reads
    neither a length nor a page id; rows at or past the batch are cut off, since the sentinel names row ``batch``.
    """
    cta = cute.arch.block_idx()[2]
    first_row = work.schedule[(cta, 0)]
    first_split = work.schedule[(cta, 1)]
    end_row = work.schedule[(cta + 1, 0)]
    end_split = work.schedule[(cta + 1, 1)]
    begin = first_split if end_row == first_row else Int32(0)
    last_row = end_row if begin < end_split else end_row - 1
    return Walk(first_row, first_split, min(last_row, work.batch - 1), end_row, end_split)


@cute.jit
def splits_of(walk: Walk, row: Int32, length: Int32) -> tuple[Int32, Int32]:
    """The splits ``first <= split < stop`` of one row of the walk, for the length that row has now."""
    splits = (length + ((1 << SPLIT_BITS) - 1)) >> SPLIT_BITS
    first = walk.first_split if row == walk.first_row else Int32(0)
    stop = min(walk.end_split, splits) if row == walk.end_row else splits
    return first, stop
