"""mbarrier objects and named barriers.

mbarrier rules: PTX ISA, "Parallel Synchronization: mbarrier" (phase, pending count, expected count,
tx-count). Standing: doc. A phase completes when its pending arrivals AND its tx-count are zero; the object
then starts the next phase by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mqa_ref.emulator.clocks import NOTHING_SEEN, Clock

MAX_COUNT = (1 << 20) - 1


@dataclass
class MBarrier:
    """One mbarrier. ``phase`` counts completed phases; ``arriving`` gathers the clocks of this phase's arrivals and
    ``released`` is what a thread acquires when it sees the last completed phase."""

    address: int
    count: int
    initialiser: int
    init_clock: int
    pending: int = 0
    tx: int = 0
    phase: int = 0
    fence_clock: int | None = None
    arriving: Clock = field(default_factory=lambda: NOTHING_SEEN)
    released: Clock = field(default_factory=lambda: NOTHING_SEEN)
    arrivals: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pending = self.count

    def arrive(self, clock: Clock, count: int = 1) -> bool:
        """Count arrivals; False (and nothing changed) when more arrive than the phase expects."""
        if count > self.pending:
            return False
        self.arriving = np.maximum(self.arriving, clock)
        self.pending -= count
        self._complete()
        return True

    def expect(self, size: int) -> bool:
        """Raise the tx-count by ``size`` bytes; False when it leaves its range."""
        self.tx += size
        return abs(self.tx) <= MAX_COUNT

    def complete_tx(self, size: int, clock: Clock) -> bool:
        """Lower the tx-count by ``size`` bytes that arrived; False when it leaves its range."""
        self.arriving = np.maximum(self.arriving, clock)
        self.tx -= size
        self._complete()
        return abs(self.tx) <= MAX_COUNT

    def passed(self, parity: int) -> bool:
        """Has the phase of this parity completed? (try_wait.parity: the current or the immediately preceding
        phase)
        """
        return (self.phase & 1) != (parity & 1)

    def _complete(self) -> None:
        if self.pending == 0 and self.tx == 0:
            self.phase += 1
            self.pending = self.count
            self.released = np.maximum(self.released, self.arriving)


@dataclass
class NamedBarrier:
    """One of the 16 CTA barriers: the warps that have arrived so far in this use of it."""

    threads: int = 0
    expected: int = 0
    generation: int = 0
    arriving: Clock = field(default_factory=lambda: NOTHING_SEEN)
    released: Clock = field(default_factory=lambda: NOTHING_SEEN)

    def arrive(self, threads: int, expected: int, clock: Clock) -> None:
        """Count ``threads`` arrivals; the last one releases everybody."""
        self.expected = expected
        self.threads += threads
        self.arriving = np.maximum(self.arriving, clock)
        if self.threads >= expected:
            self.generation += 1
            self.threads = 0
            self.released = np.maximum(self.released, self.arriving)
