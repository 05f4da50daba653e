"""One warp: 32 lanes, a register file, and the fragments into which divergence splits it.

A fragment is a set of lanes with one program counter. The fragment with the lowest program counter that can
run is run first, and fragments meet again where their counters are equal; instructions that need other lanes
(``.sync``) wait for them. This gives the forward progress that independent thread scheduling promises (PTX
ISA, "Independent thread scheduling" of sm_70 and later), whatever the program's shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.emulator.clocks import GATHERED, Clock, new_clock
from mqa_ref.emulator.lanes_of_warps import GATHERING
from mqa_ref.emulator.lanes_of_warps import Lanes as LanesOfWarp
from mqa_ref.emulator.tensor_order import TensorOrder

if TYPE_CHECKING:
    from mqa_ref.emulator.cta import Cta
    from mqa_ref.emulator.ptx import Instruction
    from mqa_ref.emulator.tmem import PendingLoad

LANES = 32
Lanes = NDArray[Any]
Mask = NDArray[np.bool_]
FULL: Mask = np.ones(LANES, np.bool_)
FULL.flags.writeable = False

JUMPED = 1
"""The operation has set the program counter itself."""
BLOCKED = 2
"""The operation cannot go on: ``Warp.waiting`` says for what."""
EXITED = 3
"""The lanes of the running fragment have left the kernel."""


@dataclass
class Wait:
    """Why a fragment stands still. ``ready`` is asked again and again; ``resume`` runs once when it said yes."""

    ready: Callable[[], bool]
    resume: Callable[[Warp], None] | None
    describe: str
    instruction: Instruction


@dataclass
class Fragment:
    """Lanes that are elsewhere in the program."""

    pc: int
    mask: Mask
    waiting: Wait | None = None


class Warp:
    """State of one warp. ``regs[i]`` holds a 32-element array, or None while register i was never written.

    ``watched`` holds the registers whose reads need a look: for one written by some lanes only the mask of
    those lanes, for one that an asynchronous load or product is still filling None. ``owned`` maps the registers that
    are accumulators of a product in flight to that product; their writes need a look too.
    """

    def __init__(self, cta: Cta, index: int, regs: list[Lanes | None], clock: Clock | None = None) -> None:
        self.cta = cta
        self.index = index
        self.regs = regs
        self.pc = 0
        self.mask: Mask = FULL
        self.full = True
        self.alive: Mask = FULL
        self.waiting: Wait | None = None
        self.others: list[Fragment] = []
        self.watched: dict[int, Mask | None] = {}
        self.owned: dict[int, object] = {}
        self.proxy_fences: list[Clock] = []
        self.clock: Clock = new_clock() if clock is None else clock
        self.clock[index] = 1
        self.done = False
        self.past_grid_wait = False
        self.loads: list[PendingLoad] = []
        self.stores: list[tuple[slice, Instruction]] = []
        self.order = TensorOrder(index)
        self.lanes = LanesOfWarp()
        self.stored = 0
        self.flying = False
        self.gave_up = False
        self.instructions = 0

    def gives_up(self) -> bool:
        """Does a wait for an mbarrier end before its phase does? A try_wait may, after a time limit; in the order
        "random" every other one that has to wait does, so that a wait with no loop around it is seen."""
        self.gave_up = self.cta.policy.order == "random" and not self.gave_up
        return self.gave_up

    # registers

    def put(self, index: int, value: Lanes) -> None:
        """Write a register for the active lanes."""
        if self.owned and index in self.owned:
            self.cta.report_owned(self, index)
        if self.full:
            self.regs[index] = value
            if self.watched:
                self.watched.pop(index, None)
            return
        old = self.regs[index]
        if old is None:
            self.watched[index] = self.mask
            self.regs[index] = np.where(self.mask, value, np.zeros(LANES, value.dtype))
            return
        written = self.watched.get(index)
        if written is not None:
            written = written | self.mask
            if written.all():
                del self.watched[index]
            else:
                self.watched[index] = written
        self.regs[index] = np.where(self.mask, value, old)

    def uninitialised(self, index: int) -> bool:
        """Would a read of this register by the active lanes see a value that was never written?"""
        if self.regs[index] is None:
            return True
        written = self.watched.get(index)
        return written is not None and bool((self.mask & ~written).any())

    def unwritten(self, index: int) -> Mask | None:
        """The lanes for which a register was never written; None when there is none, or for one in flight."""
        if self.in_flight(index):
            return None
        if self.regs[index] is None:
            return FULL
        written = self.watched.get(index) if self.watched else None
        return None if written is None else ~written

    def undefine(self, index: int, lanes: Mask) -> None:
        """A register has no value for these lanes any more."""
        written = self.watched.get(index)
        left = (FULL if written is None else written) & ~lanes
        if left.any():
            self.watched[index] = left
        else:
            self.watched.pop(index, None)
            self.regs[index] = None

    def fly(self, indices: Iterable[int]) -> None:
        """These registers are being loaded."""
        self.flying = True
        self.watched.update((index, None) for index in indices if index >= 0)

    def in_flight(self, index: int) -> bool:
        """Is the register the destination of a tcgen05.ld that was not waited for, or an accumulator in flight?"""
        return index in self.watched and self.watched[index] is None

    def landed(self) -> None:
        """Every load that was in flight is complete."""
        self.flying = False
        self.watched = {
            index: mask for index, mask in self.watched.items() if mask is not None or index in self.owned
        }

    # time

    def acquire(self, clock: Clock) -> None:
        """Everything in ``clock`` now happened before what this warp does next."""
        np.maximum(self.clock, clock, out=self.clock)

    def released(self) -> None:
        """Start a new epoch, after this warp's clock was handed to somebody."""
        self.clock[self.index] += 1

    def handed(self) -> Clock:
        """A copy of the clock for somebody else, as far as the active lanes speak for their warp."""
        clock = self.clock.copy()
        self._speak(clock, self.cta.grid.code.program.instructions[self.pc].line)
        return clock

    def gathered(self) -> None:
        """The active lanes have met at a bar.warp.sync."""
        self._speak(self.clock, GATHERING)
        self.released()

    def _speak(self, clock: Clock, line: int) -> None:
        now = int(self.clock[self.index])
        if self.converged(FULL):
            clock[GATHERED + self.index] = now
        else:
            self.lanes.signal(now, self.active(), line)

    def active(self) -> int:
        """The active lanes as an integer, lane 0 its lowest bit."""
        return int.from_bytes(np.packbits(self.mask, bitorder="little").tobytes(), "little")

    # lanes and fragments

    def set_mask(self, mask: Mask) -> None:
        """Make ``mask`` the active lanes."""
        self.mask = mask
        self.full = bool(mask.all())

    def split(self, taken: Mask, target: int, fallthrough: int) -> None:
        """Diverge: lanes of ``taken`` go to ``target``, the others to ``fallthrough``; the lower counter runs on."""
        rest = self.mask & ~taken
        here, there = (target, fallthrough) if target < fallthrough else (fallthrough, target)
        mine, theirs = (taken, rest) if target < fallthrough else (rest, taken)
        self.others.append(Fragment(there, theirs))
        self.pc = here
        self.set_mask(mine)

    def reconverge(self) -> None:
        """Join fragments that have met and run the runnable one with the lowest counter."""
        if self.waiting is None:
            for fragment in [f for f in self.others if f.pc == self.pc and f.waiting is None]:
                self.others.remove(fragment)
                self.set_mask(self.mask | fragment.mask)
        if not self.others:
            return
        lowest = min(self.others, key=lambda f: (f.waiting is not None, f.pc))
        stuck = self.waiting is not None
        if lowest.waiting is None and (stuck or lowest.pc < self.pc):
            self.others.remove(lowest)
            self.others.append(Fragment(self.pc, self.mask, self.waiting))
            self.pc, self.waiting = lowest.pc, None
            self.set_mask(lowest.mask)
            self.reconverge()

    def converged(self, member: Mask) -> bool:
        """Are all living lanes of ``member`` active here?"""
        return self.full or not (member & self.alive & ~self.mask).any()

    def gather_waiting(self) -> bool:
        """Join fragments that all wait at this counter for each other; True when the running fragment grew."""
        grown = False
        for fragment in [f for f in self.others if f.pc == self.pc]:
            self.others.remove(fragment)
            self.set_mask(self.mask | fragment.mask)
            grown = True
        return grown

    def leave(self) -> None:
        """The active lanes exit; another fragment takes over, or the warp is done."""
        self.alive = self.alive & ~self.mask
        if not self.others:
            self.done = True
            return
        lowest = min(self.others, key=lambda f: (f.waiting is not None, f.pc))
        self.others.remove(lowest)
        self.pc, self.waiting = lowest.pc, lowest.waiting
        self.set_mask(lowest.mask)

    def after(self, signal: int | None) -> bool:
        """Go on behind an instruction, where its signal says; True when the warp has to stop there."""
        if signal is None:
            self.pc += 1
        elif signal == EXITED:
            self.leave()
            if self.done:
                return True
        elif signal == BLOCKED:
            if not self.others:
                return True
        else:
            assert signal == JUMPED
        if self.others:
            self.reconverge()
        return self.waiting is not None

    def wake(self) -> bool:
        """Can this warp run? Resumes a fragment whose wait is over."""
        if self.waiting is None:
            return True
        if self._try_resume(self.waiting):
            return True
        for fragment in self.others:
            if fragment.waiting is None or fragment.waiting.ready():
                self.others.remove(fragment)
                self.others.append(Fragment(self.pc, self.mask, self.waiting))
                self.pc, self.waiting = fragment.pc, fragment.waiting
                self.set_mask(fragment.mask)
                return self.waiting is None or self._try_resume(self.waiting)
        return False

    def _try_resume(self, wait: Wait) -> bool:
        if not wait.ready():
            return False
        self.waiting = None
        if wait.resume is not None:
            wait.resume(self)
        return True

    def describe_wait(self) -> str:
        """What each fragment stands at, in words."""
        waits = [self.waiting] + [f.waiting for f in self.others]
        return "; ".join(f"{w.describe} at PTX line {w.instruction.line}" for w in waits if w is not None)
