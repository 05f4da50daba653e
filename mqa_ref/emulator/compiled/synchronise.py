"""Short cuts for mbarriers and the CTA's barriers; see ``opcodes.mbarrier`` and ``opcodes.control``."""

from __future__ import annotations

import numpy as np

from mqa_ref.emulator.barriers import MAX_COUNT, MBarrier
from mqa_ref.emulator.compiled.loop import UNIFORM, VALUES
from mqa_ref.emulator.compiled.quick import Quick, quick
from mqa_ref.emulator.compiled.warp import FlatWarp
from mqa_ref.emulator.decode import Decoder, Operation
from mqa_ref.emulator.opcodes.control import meet
from mqa_ref.emulator.opcodes.memory import address_operand
from mqa_ref.emulator.ptx import Instruction
from mqa_ref.emulator.warp import BLOCKED, LANES, Wait

_SPACES = ("shared", "shared::cta")
_TRUE = np.ones(LANES, np.bool_)
_FALSE = np.zeros(LANES, np.bool_)
_NOTHING = np.zeros(LANES, np.uint64)


def usable(warp: FlatWarp, address: int) -> MBarrier | None:
    """The mbarrier at an address, if its use by this warp is in order."""
    barrier = warp.cta.barriers.get(address)
    if barrier is None or barrier.init_clock > warp.clock[barrier.initialiser]:
        return None
    return barrier


@quick(
    *(
        f"mbarrier.try_wait.parity{semantics}.{space}.b64"
        for semantics in ("", ".acquire.cta")
        for space in _SPACES
    )
)
def _wait(decoder: Decoder, instruction: Instruction, slow: Operation) -> Quick | None:
    predicate = decoder.dst(instruction, instruction.operands[0], 1)
    base, offset = address_operand(decoder, instruction, instruction.operands[1], 32)
    parity_slot = decoder.src(instruction, instruction.operands[2], 32)

    def run(warp: FlatWarp, found: int) -> int | None:
        barrier = usable(warp, warp.frame_words[VALUES] + offset) if found == UNIFORM else None
        if barrier is None:
            return slow(warp)
        parity = warp.frame_words[VALUES + 1] & 1
        if barrier.phase & 1 != parity:
            np.maximum(warp.clock, barrier.released, out=warp.clock)
            warp.put(predicate, _TRUE)
            return None
        if warp.gives_up():
            warp.put(predicate, _FALSE)
            return None
        warp.waiting = Wait(
            lambda: barrier.phase & 1 != parity, None, warp.cta.describe(barrier, parity), instruction
        )
        return BLOCKED

    return Quick(((base, 32), (parity_slot, 32)), run)


@quick(
    *(
        f"mbarrier.arrive{kind}{semantics}.{space}.b64"
        for kind in ("", ".expect_tx")
        for semantics in ("", ".release.cta")
        for space in _SPACES
    )
)
def _arrive(decoder: Decoder, instruction: Instruction, slow: Operation) -> Quick | None:
    operands = instruction.operands
    expects = ".expect_tx" in instruction.opcode
    state = decoder.dst(instruction, operands[0], 64)
    base, offset = address_operand(decoder, instruction, operands[1], 32)
    wanted = [(base, 32)]
    if len(operands) > 2:
        wanted.append((decoder.src(instruction, operands[2], 32), 32))

    def run(warp: FlatWarp, found: int) -> int | None:
        words = warp.frame_words
        barrier = usable(warp, words[VALUES] + offset) if found == UNIFORM else None
        if barrier is None:
            return slow(warp)
        lanes = warp.active_bits.bit_count()
        argument = words[VALUES + 1] if len(wanted) > 1 else 1
        count = lanes if expects else lanes * argument
        expected = argument * lanes if expects else 0
        if count > barrier.pending or abs(barrier.tx + expected) > MAX_COUNT:
            return slow(warp)
        barrier.tx += expected
        barrier.arrive(warp.clock, count)
        if state >= 0:
            warp.put(state, _NOTHING)
        warp.released()
        return None

    return Quick(tuple(wanted), run)


@quick(*(f"mbarrier.init.{space}.b64" for space in _SPACES))
def _init(decoder: Decoder, instruction: Instruction, slow: Operation) -> Quick | None:
    base, offset = address_operand(decoder, instruction, instruction.operands[0], 32)
    count_slot = decoder.src(instruction, instruction.operands[1], 32)

    def run(warp: FlatWarp, found: int) -> int | None:
        count = warp.frame_words[VALUES + 1]
        if found != UNIFORM or not 1 <= count <= MAX_COUNT:
            return slow(warp)
        warp.cta.init_barrier(warp, warp.frame_words[VALUES] + offset, count, instruction)
        return None

    return Quick(((base, 32), (count_slot, 32)), run)


@quick("bar.sync", "barrier.sync", "barrier.sync.aligned", "barrier.cta.sync", "barrier.cta.sync.aligned")
def _bar_sync(decoder: Decoder, instruction: Instruction, slow: Operation) -> Quick | None:
    wanted = [(decoder.src(instruction, operand, 32), 32) for operand in instruction.operands]

    def run(warp: FlatWarp, found: int) -> int | None:
        if found != UNIFORM or not warp.full:
            return slow(warp)
        words = warp.frame_words
        which = words[VALUES]
        expected = words[VALUES + 1] if len(wanted) > 1 else warp.cta.threads
        return meet(warp, which, expected, instruction)

    return Quick(tuple(wanted), run)
