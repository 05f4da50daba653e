"""Context lengths and the line of splits they make: every other module of this package measures schedules on
that line.

One sequence of ``n`` tokens has ``ceil(n / 256)`` splits; the splits of all rows, rows ascending, form one
line of ``total`` positions. A schedule entry ``(row, split)`` is a point on it.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mqa_ref.errors import Fault, InputError

TILE_TOKENS = 128
"""Tokens of one compute tile (``block_kv`` of the kernel)."""
SPLIT_TOKENS = 256
"""Tokens of one split: two tiles, one for each math warp group."""
MAX_CTAS = 4096
"""The most CTAs accepted anywhere. No GPU has more than a few hundred SMs; a larger number is a mistake, not
a machine."""


@dataclass(frozen=True)
class SplitLine:
    """The splits of a batch. ``per_row`` int64 [B]: splits of each row; ``ends`` int64 [B]: their running
    sum."""

    per_row: NDArray[np.int64]
    ends: NDArray[np.int64]

    @property
    def batch(self) -> int:
        """Rows of the batch, those without a token too."""
        return int(self.per_row.size)

    @property
    def total(self) -> int:
        """Splits of all rows together."""
        return int(self.ends[-1])

    def positions(self, entries: NDArray[np.int64]) -> NDArray[np.int64]:
        """Points of ``entries`` int64 [n, 2] on the line. A split past its row's end stands at the next row's
        start."""
        inside = np.clip(entries[:, 0], 0, self.batch - 1)
        own = self.per_row[inside]
        at = self.ends[inside] - own + np.clip(entries[:, 1], 0, own)
        return np.where(entries[:, 0] >= self.batch, self.total, np.where(entries[:, 0] < 0, 0, at))

    def entry(self, position: int) -> tuple[int, int]:
        """The ``(row, split)`` of one position; ``(B, 0)`` for the end of the line. Never a row without
        splits."""
        row = int(np.searchsorted(self.ends, position, side="right"))
        return (
            (row, position - int(self.ends[row] - self.per_row[row])) if row < self.batch else (self.batch, 0)
        )


def read_lengths(context_lens: ArrayLike) -> NDArray[np.int64]:
    """The lengths, in tokens, as int64 [B].

    ``context_lens``: integers [B], or [B, next_n], of which only the last column counts (op.md, known traps).
    Raises InputError naming ``context_lens`` when it is not such an array, is empty, or holds a negative
    length.
    """
    array = np.asarray(context_lens)
    faults = []
    if array.dtype.kind not in "iu" and array.size:
        faults.append(Fault("context_lens", f"dtype {array.dtype}", "integers"))
    if array.ndim not in (1, 2) or array.size == 0:
        faults.append(
            Fault("context_lens", f"shape {list(array.shape)}", "[B] or [B, next_n], B and next_n at least 1")
        )
    if faults:
        raise InputError(faults)
    lengths = (array if array.ndim == 1 else array[:, -1]).astype(np.int64)
    bad = np.flatnonzero((lengths < 0) | (lengths > np.iinfo(np.int32).max))
    if bad.size:
        row = int(bad[0])
        raise InputError([Fault("context_lens", f"{lengths[row]} in row {row}", "lengths in 0..2^31-1")])
    return lengths


def split_line(context_lens: ArrayLike) -> SplitLine:
    """The split line of ``context_lens`` (shapes and errors as in ``read_lengths``)."""
    per_row = -(-read_lengths(context_lens) // SPLIT_TOKENS)
    return SplitLine(per_row, np.cumsum(per_row))


def cta_count_fault(num_sms: object) -> Fault | None:
    """What is wrong with a number of CTAs, or None: it must be an integer in 1..MAX_CTAS."""
    expected = f"an integer in 1..{MAX_CTAS}"
    if isinstance(num_sms, bool | np.bool_):
        return Fault("num_sms", repr(num_sms), expected)
    try:
        count = operator.index(num_sms)  # type: ignore[arg-type]  # what is no integer is the fault this looks for
    except TypeError:
        return Fault("num_sms", repr(num_sms), expected)
    return None if 1 <= count <= MAX_CTAS else Fault("num_sms", str(count), expected)
