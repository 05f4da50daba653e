"""What machine code knows of a CTA beside registers: global memory's buffers and the barriers, in arrays.

Python's objects for barriers (``FlatBarrier``, ``FlatNamed``) keep their numbers and clocks in these arrays, so either
side sees what the other did. A CTA uses the arrays of the one before it, made new.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.emulator.barriers import MBarrier, NamedBarrier
from mqa_ref.emulator.clocks import CLOCK_WORDS, Clock
from mqa_ref.emulator.memory import FIRST_ADDRESS, SHARED_BASE, SPACING, Allocation, GlobalMemory

(
    BUFFERS,
    BUFFER_COUNT,
    SLOTS,
    SLOT_COUNT,
    MBARRIERS,
    USED,
    NAMED,
    THREADS,
    BARRIER_BYTES,
    UNIT_GRANULES,
    NUMBER,
    CHECKS,
    SHARED,
    SHARED_BYTES,
    GRANULE_BITS,
    SHADOW,
) = range(16)
"""64-bit words of a context: where the records of buffers lie and how many there are; the bytes that tell for each
eight bytes of shared memory which mbarrier lies there (0: none that machine code knows) and how many there are, the
records of mbarriers and how many are used; those of named barriers; the threads of the CTA; where it is noted which
granules of shared memory are barriers, and how many an mbarrier has; the CTA's number, and whether races are looked
for; where shared memory lies, its bytes, the bits of an offset within a granule, and its shadow, 0 without one."""
CONTEXT_WORDS = 16
BUFFER_WORDS = 12
START, END, DATA, WRITABLE, SHARE, READ, STORES, OWNER, WRITER_CTA, WRITER, TIME, LINE = range(BUFFER_WORDS)
"""64-bit words of a buffer: its addresses, where its bytes lie, whether the kernel may write it, and where the bytes
lie that say which of it belongs to the CTA (``EVERYTHING``; ``NOT_KNOWN``: Python has not been asked yet). Of one that
the kernel may write: whether it was read, and where the arrays of ``Allocation`` and ``GlobalShadow`` lie."""
EVERYTHING, NOT_KNOWN = 0, -1
HEAD_WORDS = 8
PENDING, TX, PHASE, COUNT, INITIALISER, INIT_CLOCK, FENCED = range(7)
"""64-bit words of an mbarrier, before the clocks of its arrivals and of its last completed phase. ``FENCED``: the clock
of the fence after its initialisation plus one, 0 before it."""
ARRIVED, EXPECTED, GENERATION = range(3)
"""The same of a named barrier."""
RECORD_WORDS = HEAD_WORDS + CLOCK_WORDS
MOST_MBARRIERS, NAMED_BARRIERS = 128, 16
UNIT = 8
"""Bytes of an mbarrier, to which it is aligned."""


class _Record:
    """Head and clocks of one barrier."""

    def __init__(self, row: NDArray[np.int64]) -> None:
        self.row = row
        self.head = memoryview(row[:HEAD_WORDS])  # type: ignore[arg-type]
        clocks = row[HEAD_WORDS:].view(np.int32)
        self.arriving: Clock = clocks[:CLOCK_WORDS]
        self.released: Clock = clocks[CLOCK_WORDS:]


class _Number:
    """An attribute that is a word of the record."""

    def __init__(self, word: int) -> None:
        self.word = word

    def __get__(self, barrier: FlatBarrier | FlatNamed, kind: object = None) -> int:
        found: int = barrier.record.head[self.word]
        return found

    def __set__(self, barrier: FlatBarrier | FlatNamed, value: int) -> None:
        barrier.record.head[self.word] = value


class _Time:
    """An attribute that is a clock of the record; who sets it changes the record."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, barrier: FlatBarrier | FlatNamed, kind: object = None) -> Clock:
        clock: Clock = getattr(barrier.record, self.name)
        return clock

    def __set__(self, barrier: FlatBarrier | FlatNamed, value: Clock) -> None:
        getattr(barrier.record, self.name)[:] = value


class _Fenced:
    """``MBarrier.fence_clock`` as a word of the record."""

    def __get__(self, barrier: FlatBarrier, kind: object = None) -> int | None:
        found: int = barrier.record.head[FENCED]
        return found - 1 if found else None

    def __set__(self, barrier: FlatBarrier, value: int | None) -> None:
        barrier.record.head[FENCED] = 0 if value is None else value + 1


class FlatBarrier(MBarrier):
    """An mbarrier whose state lies in a record, which is there before it."""

    pending, tx, phase, count = _Number(PENDING), _Number(TX), _Number(PHASE), _Number(COUNT)
    initialiser, init_clock = _Number(INITIALISER), _Number(INIT_CLOCK)
    arriving, released, fence_clock = _Time(), _Time(), _Fenced()

    def __init__(self, address: int, record: _Record) -> None:
        self.record, kept = record, record.row.copy()
        super().__init__(address, self.count, self.initialiser, self.init_clock)
        record.row[:] = kept


class FlatNamed(NamedBarrier):
    """A named barrier whose state lies in a record."""

    threads, expected, generation = _Number(ARRIVED), _Number(EXPECTED), _Number(GENERATION)
    arriving, released = _Time(), _Time()

    def __init__(self, record: _Record) -> None:
        self.record = record
        super().__init__()


class Barriers(dict[int, MBarrier]):
    """The mbarriers of a CTA by address. Those of machine code become objects when Python asks for them; the dictionary
    itself holds the others.
    """

    def __init__(self, context: Context) -> None:
        super().__init__()
        self.context = context
        self.made: dict[int, FlatBarrier] = {}

    def get(self, address: int, default: Any = None) -> Any:
        """The mbarrier at an address."""
        place, odd = divmod(address - SHARED_BASE, UNIT)
        context = self.context
        if odd or not 0 <= place < context.places:
            return default
        number = context.slots[place]
        if not number:
            return super().get(address, default)
        found = self.made.get(number)
        if found is None:
            found = self.made[number] = FlatBarrier(address, context.records[number - 1])
        return found

    def __contains__(self, address: object) -> bool:
        return isinstance(address, int) and self.get(address) is not None

    def __getitem__(self, address: int) -> MBarrier:
        found = self.get(address)
        if found is None:
            raise KeyError(address)
        one: MBarrier = found
        return one

    def __setitem__(self, address: int, barrier: MBarrier) -> None:
        if not self.context.take(barrier):
            super().__setitem__(address, barrier)

    def __delitem__(self, address: int) -> None:
        self.context.forget(address)
        super().pop(address, None)

    def values(self) -> Any:
        """All of them."""
        places = [place for place, number in enumerate(self.context.slots) if number]
        return [self[SHARED_BASE + place * UNIT] for place in places] + list(super().values())


class Context:
    """The arrays of one launch. ``words`` tell machine code where they lie."""

    def __init__(
        self, memory: GlobalMemory, shared_bytes: int, threads: int, granule: int, *, sanitize: bool
    ) -> None:
        self.allocations = memory.allocations
        self.buffers = np.zeros((max(len(self.allocations), 1), BUFFER_WORDS), np.int64)
        for row, one in zip(self.buffers, self.allocations, strict=False):
            shadow = one.shadow
            arrays = (one.stores, one.owner, shadow.writer_cta, shadow.writer, shadow.clock, shadow.line)
            row[:READ] = (one.address, one.end, one.data.ctypes.data, one.writable, EVERYTHING)
            row[STORES:] = [array.ctypes.data for array in arrays]
        self.shared_out = [number for number, one in enumerate(self.allocations) if one.share is not None]
        self.places = shared_bytes // UNIT
        self.numbers = np.zeros(max(self.places, 1), np.uint8)
        self.slots = memoryview(self.numbers)  # type: ignore[arg-type]
        self.rows = np.zeros((MOST_MBARRIERS + NAMED_BARRIERS, RECORD_WORDS), np.int64)
        self.records = [_Record(row) for row in self.rows]
        self.named = [FlatNamed(record) for record in self.records[MOST_MBARRIERS:]]
        self.shared = np.zeros(shared_bytes, np.uint8)
        self.barrier_bytes = np.zeros(-(-shared_bytes // granule), np.uint8)
        array = np.zeros(CONTEXT_WORDS, np.int64)
        array[BUFFERS], array[BUFFER_COUNT] = self.buffers.ctypes.data, len(self.allocations)
        array[SLOTS], array[SLOT_COUNT] = self.numbers.ctypes.data, self.places
        array[MBARRIERS], array[NAMED] = self.rows.ctypes.data, self.rows[MOST_MBARRIERS:].ctypes.data
        array[THREADS], array[UNIT_GRANULES] = threads, UNIT // granule
        array[CHECKS] = sanitize
        array[SHARED], array[SHARED_BYTES] = self.shared.ctypes.data, shared_bytes
        array[GRANULE_BITS] = granule.bit_length() - 1
        array[BARRIER_BYTES] = self.barrier_bytes.ctypes.data
        self.array, self.words = array, memoryview(array)  # type: ignore[arg-type]
        self.shares: list[NDArray[np.bool_]] = []
        self.clear()

    def clear(self, number: int = 0) -> None:
        """Make everything that of a new CTA."""
        self.words[NUMBER] = number
        self.buffers[self.shared_out, SHARE] = NOT_KNOWN
        self.shares.clear()
        self.rows[: self.words[USED]] = 0
        self.rows[MOST_MBARRIERS:] = 0
        for array in (self.shared, self.numbers, self.barrier_bytes):
            array[:] = 0
        self.words[USED] = 0

    def share_of(self, allocation: Allocation, share: NDArray[np.bool_]) -> None:
        """Python has asked what of a buffer belongs to the CTA."""
        number = self._number(allocation)
        if number is None:
            return
        if self.buffers[number, SHARE] == NOT_KNOWN and share.flags.c_contiguous:
            self.shares.append(share)
            self.buffers[number, SHARE] = share.ctypes.data

    def was_read(self, allocation: Allocation) -> None:
        """A buffer that the kernel may write was read: from now on its stores are Python's to check."""
        number = self._number(allocation)
        if number is not None:
            self.buffers[number, READ] = 1

    def _number(self, allocation: Allocation) -> int | None:
        """Which record a buffer has; variables of the module have none."""
        number = (allocation.address - FIRST_ADDRESS) // SPACING
        known = 0 <= number < len(self.allocations) and self.allocations[number] is allocation
        return number if known else None

    def take(self, barrier: MBarrier) -> bool:
        """Keep the state of a new mbarrier, while there is room; an address has the newest one."""
        place, used = (barrier.address - SHARED_BASE) // UNIT, self.words[USED]
        if used == MOST_MBARRIERS:
            self.slots[place] = 0
            return False
        head = self.records[used].head
        head[PENDING] = head[COUNT] = barrier.count
        head[INITIALISER], head[INIT_CLOCK] = barrier.initialiser, barrier.init_clock
        self.words[USED] = self.slots[place] = used + 1
        return True

    def forget(self, address: int) -> None:
        """There is no mbarrier any more."""
        self.slots[(address - SHARED_BASE) // UNIT] = 0
