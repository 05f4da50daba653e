"""Happens-before by vector clocks, and the shadow memory that turns an unordered pair of accesses into a
finding.

Every *agent* that can touch shared memory or tensor memory has one component in every vector clock: each
warp, the tensor pipe of each warp that issues tcgen05 operations, and each asynchronous bulk copy in flight.
A copy gets a slot of its own, because two copies of one thread are not ordered with each other (PTX ISA,
"Asynchronous copy: ordering"); a slot is used again only by an issuer that has already seen its last use
complete, so a component never stands for two unordered events.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mqa_ref.errors import EmulatorError

Clock = NDArray[np.int32]
MAX_AGENTS = 256


def new_clock() -> Clock:
    """A vector clock that has seen nothing."""
    return np.zeros(MAX_AGENTS, np.int32)


NOTHING_SEEN = new_clock()
"""Where clocks start that are replaced, not changed."""
NOTHING_SEEN.flags.writeable = False


class CopySlots:
    """Hands out vector-clock components to asynchronous copies, from ``first`` on."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.last_use: list[int] = []

    def take(self, issuer: Clock) -> tuple[int, int]:
        """The (agent, clock) of a new copy issued by a thread whose clock is ``issuer``."""
        for number, last in enumerate(self.last_use):
            if issuer[self.first + number] >= last:
                self.last_use[number] = last + 1
                return self.first + number, last + 1
        if self.first + len(self.last_use) >= MAX_AGENTS:
            raise EmulatorError(
                f"more than {MAX_AGENTS - self.first} asynchronous copies are unordered at once"
            )
        self.last_use.append(1)
        return self.first + len(self.last_use) - 1, 1

    def unseen(self, seen: Clock) -> list[int]:
        """Agents whose last copy is not covered by ``seen``."""
        return [self.first + n for n, last in enumerate(self.last_use) if seen[self.first + n] < last]


@dataclass(frozen=True)
class Conflict:
    """Two unordered accesses: ``kind`` is "write-write", "write-read" (a read not ordered after a write),
    "read-write" or "uninitialised".
    """

    kind: str
    agent: int
    where: int


Where = slice | NDArray[np.intp]


class Shadow:
    """Last writer and last reads of every granule of one memory (a granule is the unit at which accesses are
    told apart).
    """

    def __init__(self, granules: int, readers: int) -> None:
        self.writer = np.full(granules, -1, np.int16)
        self.write_clock = np.zeros(granules, np.int32)
        self.reads = np.zeros((readers, granules), np.int32)

    def read(self, where: Where, agent: int, clock: Clock) -> Conflict | None:
        """Record a read by ``agent`` whose vector clock is ``clock``; a conflict if it is not ordered after
        the last write.
        """
        self.reads[agent, where] = clock[agent]
        writer = self.writer[where]
        if writer.min(initial=0) < 0:
            return Conflict("uninitialised", -1, self._place(where, writer < 0))
        late = self.write_clock[where] > clock[writer]
        if late.any():
            return Conflict("write-read", int(writer[late][0]), self._place(where, late))
        return None

    def write(self, where: Where, agent: int, clock: Clock) -> Conflict | None:
        """Record a write; a conflict if an earlier write or read is not ordered before it."""
        conflict = self.free(where, clock)
        self.writer[where] = agent
        self.write_clock[where] = clock[agent]
        return conflict

    def free(self, where: Where, clock: Clock) -> Conflict | None:
        """The check of a write without its record: is every earlier access ordered before ``clock``?"""
        writer = self.writer[where]
        late = (self.write_clock[where] > clock[writer]) & (writer >= 0)
        if late.any():
            return Conflict("write-write", int(writer[late][0]), self._place(where, late))
        reads = self.reads[:, where]
        latest = reads.max(axis=1) if reads.shape[1] else np.zeros(len(reads), np.int32)
        unordered = np.flatnonzero(latest > clock[: len(reads)])
        if len(unordered):
            reader = int(unordered[0])
            return Conflict("read-write", reader, self._place(where, reads[reader] > clock[reader]))
        return None

    def stamp(self, where: Where) -> NDArray[np.int32]:
        """The clocks of the last writes, for ``changed``."""
        return self.write_clock[where].copy()

    def changed(self, where: Where, stamp: NDArray[np.int32]) -> bool:
        """Was anything written since the stamp was taken?"""
        return bool((self.write_clock[where] != stamp).any())

    def written(self, where: Where) -> bool:
        """Was everything written at some time?"""
        return bool((self.writer[where] >= 0).all())

    def forget(self, where: Where) -> None:
        """Make the granules uninitialised again (memory that was freed)."""
        self.writer[where] = -1
        self.write_clock[where] = 0
        self.reads[:, where] = 0

    def _place(self, where: Where, mask: NDArray[np.bool_]) -> int:
        first = int(np.flatnonzero(mask)[0])
        if isinstance(where, slice):
            return int(where.start or 0) + first
        return int(where[first])


class NoShadow(Shadow):
    """Sees nothing: what a launch without the sanitizer has."""

    def __init__(self) -> None:
        super().__init__(0, 0)

    def read(self, where: Where, agent: int, clock: Clock) -> Conflict | None:  # noqa: ARG002
        """No conflict."""
        return None

    def write(self, where: Where, agent: int, clock: Clock) -> Conflict | None:  # noqa: ARG002
        """No conflict."""
        return None

    def free(self, where: Where, clock: Clock) -> Conflict | None:  # noqa: ARG002
        """No conflict."""
        return None

    def forget(self, where: Where) -> None:
        """Nothing is known."""

    def stamp(self, where: Where) -> NDArray[np.int32]:  # noqa: ARG002
        """Nothing."""
        return self.write_clock

    def changed(self, where: Where, stamp: NDArray[np.int32]) -> bool:  # noqa: ARG002
        """Nothing is known to have changed."""
        return False

    def written(self, where: Where) -> bool:  # noqa: ARG002
        """Nothing is known to be written."""
        return False
