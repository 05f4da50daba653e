"""Who last wrote and who read each byte of a buffer in global memory, to find accesses that nothing orders.

Within a CTA the vector clocks tell; two CTAs of a launch are never ordered, for nothing that is modelled orders them. A
warp is one agent: that lanes of one instruction write different values to one byte is told apart, that lanes of one
warp do so in different instructions is not. Source: PTX ISA, "Memory Consistency Model", data races. Standing: doc.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mqa_ref.emulator.clocks import Clock, Where

SEVERAL = -1


@dataclass(frozen=True)
class Touch:
    """An access: by whom, when, and at which PTX line."""

    cta: int
    agent: int
    clock: Clock
    line: int


@dataclass(frozen=True)
class Clash:
    """An earlier access that is not ordered with a new one. ``line`` is its PTX line, 0 when several made it."""

    kind: str
    cta: int
    line: int
    byte: int


@dataclass
class Readers:
    """The reads of one agent: CTA + 1, time and line of the last read of each byte."""

    cta: NDArray[np.int32]
    clock: NDArray[np.int32]
    line: NDArray[np.int32]


@dataclass
class GlobalShadow:
    """State of one writable buffer of ``size`` bytes. Arrays hold 0 where nothing happened, CTA numbers plus one."""

    size: int
    writer_cta: NDArray[np.int32] = field(init=False)
    writer: NDArray[np.int16] = field(init=False)
    clock: NDArray[np.int32] = field(init=False)
    line: NDArray[np.int32] = field(init=False)
    reading_cta: NDArray[np.int32] | None = None
    readers: dict[int, Readers] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.writer_cta, self.clock, self.line = (np.zeros(self.size, np.int32) for _ in range(3))
        self.writer = np.zeros(self.size, np.int16)

    def write(self, where: Where, access: Touch) -> Clash | None:
        """Record a write; an earlier access that is not ordered before it, of this CTA or of another."""
        clash = self._writer_clash(where, access, "write-write") or self._reader_clash(where, access)
        self.writer_cta[where] = access.cta + 1
        self.writer[where] = access.agent
        self.clock[where] = access.clock[access.agent]
        self.line[where] = access.line
        return clash

    def read(self, where: Where, access: Touch) -> Clash | None:
        """Record a read; an earlier write that is not ordered before it."""
        if self.reading_cta is None:
            self.reading_cta = np.zeros(self.size, np.int32)
        now = self.reading_cta[where]
        self.reading_cta[where] = np.where((now == 0) | (now == access.cta + 1), access.cta + 1, SEVERAL)
        mine = self.readers.get(access.agent)
        if mine is None:
            mine = Readers(*(np.zeros(self.size, np.int32) for _ in range(3)))
            self.readers[access.agent] = mine
        mine.cta[where] = access.cta + 1
        mine.clock[where] = access.clock[access.agent]
        mine.line[where] = access.line
        return self._writer_clash(where, access, "write-read")

    def _writer_clash(self, where: Where, access: Touch, kind: str) -> Clash | None:
        wrote = self.writer_cta[where]
        if not wrote.any():
            return None
        mine = wrote == access.cta + 1
        late = mine & (self.clock[where] > access.clock[self.writer[where]])
        late |= (wrote > 0) & ~mine
        if not late.any():
            return None
        at = int(np.flatnonzero(late)[0])
        return Clash(kind, int(wrote[at]) - 1, int(self.line[where][at]), self._place(where, at))

    def _reader_clash(self, where: Where, access: Touch) -> Clash | None:
        if self.reading_cta is None:
            return None
        seen = self.reading_cta[where]
        other = (seen != 0) & (seen != access.cta + 1)
        if other.any():
            at = int(np.flatnonzero(other)[0])
            lines = [
                int(r.line[where][at])
                for r in self.readers.values()
                if r.cta[where][at] not in (0, access.cta + 1)
            ]
            return Clash("read-write", int(seen[at]) - 1, lines[0] if lines else 0, self._place(where, at))
        for agent, reads in self.readers.items():
            late = (reads.cta[where] == access.cta + 1) & (reads.clock[where] > access.clock[agent])
            if late.any():
                at = int(np.flatnonzero(late)[0])
                return Clash("read-write", access.cta, int(reads.line[where][at]), self._place(where, at))
        return None

    @staticmethod
    def _place(where: Where, at: int) -> int:
        return int(where.start or 0) + at if isinstance(where, slice) else int(where[at])
