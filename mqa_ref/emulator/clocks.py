"""Happens-before by vector clocks, and the shadow memory that turns an unordered pair of accesses into a
finding.

Every *agent* that can touch shared memory or tensor memory has one component in every vector clock: each
warp, the tensor pipe of each warp that issues tcgen05 operations, and each asynchronous bulk copy in flight.
A copy gets a slot of its own, because two copies of one thread are not ordered with each other (PTX ISA,
"Asynchronous copy: ordering"); a slot is used again only by an issuer that has already seen its last use
complete, so a component never stands for two unordered events.

Behind these a clock carries, and hands on with them, the components of ``lanes_of_warps``, one for each agent from
``GATHERED`` on, and those of ``tensor_order`` from ``FENCED`` on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mqa_ref.errors import EmulatorError

Clock = NDArray[np.int32]
MAX_AGENTS = 256
GATHERED = MAX_AGENTS
FENCED, TENSOR_AGENTS = 2 * MAX_AGENTS, 64
"""Where the third components of warps and tensor pipes begin, and how many there are (32 warps and their pipes)."""
CLOCK_WORDS = FENCED + TENSOR_AGENTS


def new_clock() -> Clock:
    """A vector clock that has seen nothing."""
    return np.zeros(CLOCK_WORDS, np.int32)


def tick(clock: Clock, agent: int, time: int) -> None:
    """Set the time of an agent that is no warp: what it did is done, whoever did it."""
    clock[agent] = clock[GATHERED + agent] = time


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
        seen = issuer[self.first : self.first + len(self.last_use)].tolist()
        for number, last in enumerate(self.last_use):
            if seen[number] >= last:
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
    "read-write" or "uninitialised"; ``agent``, ``where`` and ``clock`` tell the earlier one. "apart": all are ordered,
    but those in ``accesses``, (agent, clock) each, perhaps for some of their lanes only; see ``lanes_of_warps``.
    """

    kind: str
    agent: int
    where: int
    clock: int = 0
    accesses: tuple[tuple[int, int], ...] = ()


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
        if not (self.write_clock[where] > clock[GATHERED:][writer]).any():
            return None
        return self.late(where, clock, "write-read") or self.apart(where, agent, clock, writes=False)

    def late(self, where: Where, clock: Clock, kind: str) -> Conflict | None:
        """Is a last write not ordered before ``clock``? Nothing is recorded."""
        writer, written = self.writer[where], self.write_clock[where]
        late = (written > clock[writer]) & (writer >= 0)
        if late.any():
            return Conflict(kind, int(writer[late][0]), self._place(where, late), int(written[late][0]))
        return None

    def write(self, where: Where, agent: int, clock: Clock) -> Conflict | None:
        """Record a write; a conflict if an earlier write or read is not ordered before it."""
        conflict = self.free(where, agent, clock)
        self.writer[where] = agent
        self.write_clock[where] = clock[agent]
        return conflict

    def free(self, where: Where, agent: int, clock: Clock) -> Conflict | None:
        """The check of a write without its record: is every earlier access ordered before ``clock``?"""
        if self.unordered(where, clock[GATHERED:]) is None:
            return None
        return self.unordered(where, clock) or self.apart(where, agent, clock, writes=True)

    def apart(self, where: Where, agent: int, clock: Clock, *, writes: bool) -> Conflict | None:
        """Accesses of other agents that are ordered before ``clock`` perhaps for some lanes only."""
        gathered = clock[GATHERED : GATHERED + MAX_AGENTS]
        writer, written = self.writer[where], self.write_clock[where]
        late = (written > gathered[writer]) & (writer >= 0) & (writer != agent)
        pairs = set(zip(writer[late].tolist(), written[late].tolist(), strict=True))
        if writes:
            for reader in np.flatnonzero(
                self.reads[:, where].max(axis=1, initial=0) > gathered[: len(self.reads)]
            ):
                if reader != agent:
                    read = self.reads[reader, where]
                    pairs |= {(int(reader), int(time)) for time in np.unique(read[read > gathered[reader]])}
        if not pairs:
            return None
        accesses = tuple(sorted(pairs))
        place = where.start if isinstance(where, slice) else where[0]
        return Conflict("apart", accesses[0][0], int(place), accesses[0][1], accesses)

    def unordered(self, where: Where, clock: Clock) -> Conflict | None:
        """Is an earlier access not ordered before ``clock``?"""
        conflict = self.late(where, clock, "write-write")
        if conflict is not None:
            return conflict
        reads = self.reads[:, where]
        latest = reads.max(axis=1) if reads.shape[1] else np.zeros(len(reads), np.int32)
        unordered = np.flatnonzero(latest > clock[: len(reads)])
        if len(unordered):
            reader = int(unordered[0])
            late = reads[reader] > clock[reader]
            return Conflict("read-write", reader, self._place(where, late), int(reads[reader][late][0]))
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

    def late(self, where: Where, clock: Clock, kind: str) -> Conflict | None:  # noqa: ARG002
        """No conflict."""
        return None

    def write(self, where: Where, agent: int, clock: Clock) -> Conflict | None:  # noqa: ARG002
        """No conflict."""
        return None

    def free(self, where: Where, agent: int, clock: Clock) -> Conflict | None:  # noqa: ARG002
        """No conflict."""
        return None

    def unordered(self, where: Where, clock: Clock) -> Conflict | None:  # noqa: ARG002
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
