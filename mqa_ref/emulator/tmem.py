"""Tensor memory of one CTA: 128 lanes of 512 32-bit columns, its allocator, and the tensor pipe that writes
it.

Source: PTX ISA, "Tensor Memory", "tcgen05.alloc". A warp reaches the 32 lanes of its place in its warp group
only; for the race check a granule is one column of those 32 lanes. Standing: doc.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mqa_ref.emulator.clocks import Clock, Shadow, new_clock, tick
from mqa_ref.emulator.ptx import Instruction

LANE_COUNT, COLUMNS, PARTS = 128, 512, 4
MIN_COLUMNS = 32


@dataclass
class TensorMemory:
    """``allocated`` maps a start column to the number of columns it owns, ``freed`` the same for what is
    owned no more.
    """

    shadow: Shadow
    allocated: dict[int, int] = field(default_factory=dict)
    freed: dict[int, int] = field(default_factory=dict)
    relinquished: bool = False

    @cached_property
    def data(self) -> NDArray[np.uint32]:
        """The columns [128, 512]; a CTA that never touches them has none."""
        return np.zeros((LANE_COUNT, COLUMNS), np.uint32)

    def allocate(self, columns: int) -> int | None:
        """First start column with room for ``columns``, or None when tensor memory is full."""
        start = 0
        for begin in sorted(self.allocated):
            if begin - start >= columns:
                break
            start = begin + self.allocated[begin]
        if start + columns > COLUMNS:
            return None
        self.allocated[start] = columns
        return start

    def owns(self, start: int, columns: int) -> bool:
        """Does one allocation hold all of these columns?"""
        return any(a <= start and start + columns <= a + n for a, n in self.allocated.items())

    def free(self, start: int) -> None:
        """Give the allocation at ``start`` back."""
        self.freed[start] = self.allocated.pop(start)

    def was_freed(self, start: int, columns: int) -> bool:
        """Did an allocation that is owned no more hold all of these columns?"""
        return any(a <= start and start + columns <= a + n for a, n in self.freed.items())

    @staticmethod
    def granules(part: int, start: int, columns: int) -> slice:
        """Granules of the columns in one warp's part."""
        return slice(part * COLUMNS + start, part * COLUMNS + start + columns)


@dataclass(frozen=True)
class PendingLoad:
    """A tcgen05.ld that was not waited for: the granules it reads, the clocks of their last writes at the time of the
    load, and that time on the warp's clock.
    """

    where: slice
    instruction: Instruction
    written: NDArray[np.int32]
    clock: int


@dataclass
class TensorPipe:
    """The tcgen05 operations of one warp, which execute in the order of their issue (PTX ISA, "tcgen05:
    pipelined instructions").
    """

    agent: int
    clock: Clock = field(default_factory=new_clock)

    def begin(self, issued: Clock) -> None:
        """The next operation starts; it comes after its issue and after the pipe's earlier operations."""
        np.maximum(self.clock, issued, out=self.clock)
        tick(self.clock, self.agent, int(self.clock[self.agent]) + 1)
