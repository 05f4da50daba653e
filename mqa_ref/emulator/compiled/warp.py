"""A warp whose registers lie in one flat file, with the state of each kept beside it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mqa_ref.emulator.clocks import Clock
from mqa_ref.emulator.compiled import loop
from mqa_ref.emulator.compiled.layout import IN_FLIGHT, NEVER_WRITTEN, Registers
from mqa_ref.emulator.lanes_of_warps import Lanes as LanesOfWarp
from mqa_ref.emulator.warp import FULL, LANES, Fragment, Lanes, Mask, Warp

if TYPE_CHECKING:
    from mqa_ref.emulator.compiled.table import Table
    from mqa_ref.emulator.cta import Cta


MOST_SIGNALS, SIGNAL_WORDS = 64, 3
"""How many signals of parts of a warp services note before Python must look, and the words of each: time, lanes, PTX
line. Before them stands their number."""


class Watched:
    """The registers that are not there for every lane, as the interpreter's operations ask for them.

    ``update`` and ``pop`` give registers to a product in flight, and back: their states are all ones, so machine code
    neither reads nor writes nor copies them.
    """

    def __init__(self, states: memoryview) -> None:
        self.states = states

    def __contains__(self, index: int) -> bool:
        return bool(self.states[index])

    def update(self, indices: Iterable[int]) -> None:
        """These registers belong to an operation in flight."""
        for index in indices:
            self.states[index] = IN_FLIGHT | NEVER_WRITTEN

    def pop(self, index: int, default: None = None) -> None:  # noqa: ARG002 - as of a dict
        """A register can be read again."""
        self.states[index] = 0


class Place:
    """Where the warps of one number work, one CTA after the other: registers, their states, and the frame that tells
    ``loop`` where they lie."""

    def __init__(
        self, registers: Registers, file: NDArray[np.uint8], states: NDArray[np.uint64], table: Table
    ) -> None:
        self.registers, self.file, self.layout, self.words = registers, file, table.layout, states
        self.states = memoryview(states)  # type: ignore[arg-type]
        self.watched = Watched(self.states)
        self.frame = np.zeros(loop.FRAME_WORDS, np.int64)
        addresses = (
            file.ctypes.data,
            states.ctypes.data,
            table.entries.ctypes.data,
            table.operands.ctypes.data,
        )
        self.frame[[loop.REGISTERS, loop.STATES, loop.TABLE, loop.OPERANDS]] = addresses
        self.frame[loop.SINK] = table.layout.sink
        self.frame[[loop.STOP, loop.OTHER_COUNTER]] = loop.NOWHERE
        self.frame_words = memoryview(self.frame)  # type: ignore[arg-type]
        signals = np.zeros(1 + SIGNAL_WORDS * MOST_SIGNALS, np.int64)
        self.frame[loop.SIGNALS] = signals.ctypes.data
        self.signals = memoryview(signals)  # type: ignore[arg-type]
        self.frame_address = self.frame.ctypes.data


@lru_cache(maxsize=4096)
def mask_of(bits: int) -> Mask:
    """An integer as a mask that nobody may change."""
    mask: Mask = np.array([bits >> lane & 1 for lane in range(LANES)], np.bool_)
    mask.flags.writeable = False
    return mask


def bits_of(mask: Mask) -> int:
    """A mask as an integer, lane 0 its lowest bit."""
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")


@dataclass
class FlatFragment(Fragment):
    """A fragment whose lanes are known as an integer, too."""

    bits: int = 0


def known_bits(fragment: Fragment) -> int:
    """The lanes of a fragment as an integer."""
    return fragment.bits if isinstance(fragment, FlatFragment) else bits_of(fragment.mask)


class FlatWarp(Warp):
    """``states`` and the frame are what ``loop`` works with; ``regs`` are views of the file."""

    def __init__(self, cta: Cta, index: int, place: Place, clock: Clock) -> None:
        self.file, self.layout = place.file, place.layout
        self.words, self.states = place.words, place.states
        self.frame_words, self.frame_address = place.frame_words, place.frame_address
        self.active_bits = NEVER_WRITTEN
        self.frame_words[loop.OPEN] = not cta.grid.overlaps
        self.signals = place.signals
        self.clock_address = self.frame_words[loop.CLOCK]
        super().__init__(cta, index, place.registers, clock)  # type: ignore[arg-type]
        self.watched = place.watched  # type: ignore[assignment]

    @property
    def past_grid_wait(self) -> bool:
        """May the warp read global memory? Known to services, too."""
        return bool(self.frame_words[loop.OPEN])

    @past_grid_wait.setter
    def past_grid_wait(self, past: bool) -> None:
        self.frame_words[loop.OPEN] = past or not self.cta.grid.overlaps

    @property
    def lanes(self) -> LanesOfWarp:
        """Signals and accesses of parts of the warp; what services have noted is taken over first."""
        count = self.signals[0]
        if count:
            noted = self.signals[1 : 1 + SIGNAL_WORDS * count].tolist()
            self.signals[0] = 0
            for at in range(0, len(noted), SIGNAL_WORDS):
                self.kept_lanes.signal(*noted[at : at + SIGNAL_WORDS])
        return self.kept_lanes

    @lanes.setter
    def lanes(self, lanes: LanesOfWarp) -> None:
        self.kept_lanes, self.signals[0] = lanes, 0

    @property
    def alive(self) -> Mask:
        """The lanes that have not left. Services know whether these are all."""
        return self.living

    @alive.setter
    def alive(self, lanes: Mask) -> None:
        self.living = lanes
        self.frame_words[loop.ALL_ALIVE] = lanes is FULL

    @property
    def stored(self) -> int:
        """The time of the warp's last store to shared memory, or 0. Known to services, too."""
        return int(self.frame_words[loop.STORED])

    @stored.setter
    def stored(self, time: int) -> None:
        self.frame_words[loop.STORED] = time

    def put(self, index: int, value: Lanes) -> None:
        """Write a register for the active lanes."""
        if self.owned and index in self.owned:
            self.cta.report_owned(self, index)
        if self.full:
            self.regs[index] = value
            self.states[index] = 0
            return
        np.copyto(self.regs[index], value, where=self.mask)  # type: ignore[arg-type]
        state = self.states[index]
        if state:
            self.states[index] = state & ~self._bits()

    def _bits(self) -> int:
        """The active lanes; fewer than ``active_bits`` under a guard."""
        return self.active_bits if self.mask is mask_of(self.active_bits) else bits_of(self.mask)

    def active(self) -> int:
        """See ``Warp.active``."""
        return self._bits()

    def uninitialised(self, index: int) -> bool:
        """Would a read of this register by the active lanes see a value that was never written?"""
        state = self.states[index]
        return bool(state and not state & IN_FLIGHT and state & self._bits())

    def unwritten(self, index: int) -> Mask | None:
        """The lanes for which a register was never written; None when there is none, or for one in flight."""
        state = self.states[index]
        if not state or state & IN_FLIGHT:
            return None
        return np.array([state >> lane & 1 for lane in range(LANES)], np.bool_)

    def undefine(self, index: int, lanes: Mask) -> None:
        """A register has no value for these lanes any more; it is as at the start when no lane has one."""
        state = self.states[index] | bits_of(lanes)
        self.states[index] = state
        if state == NEVER_WRITTEN:
            self.regs[index] = 0  # type: ignore[call-overload]

    def fly(self, indices: Iterable[int]) -> None:
        """These registers are being loaded."""
        self.flying = True
        for index in indices:
            if index >= 0:
                self.states[index] = IN_FLIGHT

    def in_flight(self, index: int) -> bool:
        """See ``Warp.in_flight``."""
        return bool(self.states[index] & IN_FLIGHT)

    def landed(self) -> None:
        """Every load that was in flight is complete."""
        self.flying = False
        self.words[self.words == np.uint64(IN_FLIGHT)] = 0

    def set_mask(self, mask: Mask) -> None:
        """Make ``mask`` the active lanes."""
        self.set_bits(bits_of(mask))

    def set_bits(self, bits: int) -> None:
        """Make the lanes of ``bits`` the active ones."""
        self.mask = mask_of(bits)
        self.active_bits = bits
        self.full = bits == NEVER_WRITTEN

    def split(self, taken: Mask, target: int, fallthrough: int) -> None:
        """Diverge, see ``Warp.split``; the mask must not be a register that changes."""
        super().split(mask_of(bits_of(taken)), target, fallthrough)

    def enter(self, limit: int) -> None:
        """Tell the frame where the warp stands. One other fragment that can run is left to machine code."""
        frame, others = self.frame_words, self.others
        frame[loop.COUNTER], frame[loop.LIMIT], frame[loop.ACTIVE] = self.pc, limit, self.active_bits
        if not others:
            return
        if len(others) == 1 and others[0].waiting is None:
            (other,) = others
            frame[loop.OTHER_COUNTER], frame[loop.OTHER_ACTIVE] = other.pc, known_bits(other)
            others.clear()
        else:
            # Of those that wait nothing is known here, but none may be run into by a split.
            frame[loop.STOP] = min((f.pc for f in others if f.waiting is None), default=loop.NOWHERE - 1)

    def left(self) -> None:
        """Learn from the frame where the warp stands."""
        frame = self.frame_words
        self.pc = frame[loop.COUNTER]
        if frame[loop.ACTIVE] != self.active_bits:
            self.set_bits(frame[loop.ACTIVE])
        frame[loop.STOP] = loop.NOWHERE
        if frame[loop.OTHER_COUNTER] < loop.NOWHERE:
            bits = frame[loop.OTHER_ACTIVE]
            self.others.append(FlatFragment(frame[loop.OTHER_COUNTER], mask_of(bits), bits=bits))
            frame[loop.OTHER_COUNTER] = loop.NOWHERE

    def reconverge(self) -> None:
        """See ``Warp.reconverge``."""
        if self.waiting is None and not self.apart():
            return
        if (
            len(self.others) == 1
            and self.others[0].pc == self.pc
            and self.waiting is self.others[0].waiting is None
        ):
            self.set_bits(self.active_bits | known_bits(self.others.pop()))
        else:
            super().reconverge()

    def apart(self) -> bool:
        """Is there another fragment that must be looked at before the next instruction?"""
        others = self.others
        return bool(others) and (len(others) > 1 or others[0].waiting is not None or others[0].pc <= self.pc)

    def block(self, first: int, count: int) -> NDArray[np.uint32]:
        """Consecutive 32-bit registers [count, 32]."""
        start = self.layout.offsets[first]
        return self.file[start : start + 4 * LANES * count].view(np.uint32).reshape(count, LANES)
