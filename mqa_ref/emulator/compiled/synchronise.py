"""Short cuts for mbarriers and the CTA's barriers; see ``opcodes.mbarrier`` and ``opcodes.control``."""

from __future__ import annotations

import numpy as np

from mqa_ref.emulator.barriers import MAX_COUNT, MBarrier
from mqa_ref.emulator.compiled.loop import UNIFORM, VALUES
from mqa_ref.emulator.compiled.quick import Quick, quick
from mqa_ref.emulator.compiled.services import Service, Target
from mqa_ref.emulator.compiled.warp import FlatWarp
from mqa_ref.emulator.decode import Decoder, Operation
from mqa_ref.emulator.lanes_of_warps import ALL
from mqa_ref.emulator.opcodes.control import await_others, meet
from mqa_ref.emulator.opcodes.memory import address_operand
from mqa_ref.emulator.ptx import Imm, Instruction
from mqa_ref.emulator.tensor_order import BEFORE
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

    return Quick((base, parity_slot), run, service=Service("mbarrier.wait", (offset, Target(predicate))))


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
    wanted = [base]
    if len(operands) > 2:
        wanted.append(decoder.src(instruction, operands[2], 32))

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
        barrier.arrive(warp.handed(), count)
        if state >= 0:
            warp.put(state, _NOTHING)
        warp.released()
        return None

    name = f"mbarrier.arrive.{int(expects)}{int(len(wanted) > 1)}"
    return Quick(tuple(wanted), run, service=Service(name, (offset, Target(state), instruction.line)))


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

    return Quick((base, count_slot), run, service=Service("mbarrier.init", (offset,)))


@quick("fence.mbarrier_init.release.cluster")
def _init_fence(decoder: Decoder, instruction: Instruction, slow: Operation) -> Quick:  # noqa: ARG001
    return Quick((), lambda warp, _: slow(warp), service=Service("mbarrier.init_fence"))


@quick("bar.sync", "barrier.sync", "barrier.sync.aligned", "barrier.cta.sync", "barrier.cta.sync.aligned")
def _bar_sync(decoder: Decoder, instruction: Instruction, slow: Operation) -> Quick | None:
    wanted = [decoder.src(instruction, operand, 32) for operand in instruction.operands]

    def arguments(warp: FlatWarp) -> tuple[int, int]:
        words = warp.frame_words
        return words[VALUES], words[VALUES + 1] if len(wanted) > 1 else warp.cta.threads

    def run(warp: FlatWarp, found: int) -> int | None:
        if found != UNIFORM or not warp.full:
            return slow(warp)
        return meet(warp, *arguments(warp), instruction)

    def waits(warp: FlatWarp) -> None:
        which, expected = arguments(warp)
        await_others(warp, which, expected, instruction)

    service = Service(f"bar.sync.{int(len(wanted) > 1)}")
    return Quick(tuple(wanted), run, service=service, waits=waits)


@quick("bar.warp.sync")
def _warp_sync(decoder: Decoder, instruction: Instruction, slow: Operation) -> Quick | None:  # noqa: ARG001
    (member,) = instruction.operands
    if not isinstance(member, Imm) or member.value & ALL != ALL or instruction.guard is not None:
        return None
    return Quick((), lambda warp, _: slow(warp), service=Service("warp.sync"))


@quick(BEFORE)
def _before_fence(decoder: Decoder, instruction: Instruction, slow: Operation) -> Quick | None:  # noqa: ARG001
    if instruction.guard is not None:
        return None
    return Quick((), lambda warp, _: slow(warp), service=Service("tensor.before"))


@quick("griddepcontrol.wait")
def _grid_wait(decoder: Decoder, instruction: Instruction, slow: Operation) -> Quick:  # noqa: ARG001
    return Quick((), lambda warp, _: slow(warp), service=Service("grid.wait"))


@quick("ret", "exit")
def _leave(decoder: Decoder, instruction: Instruction, slow: Operation) -> Quick | None:  # noqa: ARG001
    if instruction.guard is not None:
        return None
    return Quick((), lambda warp, _: slow(warp), service=Service("leave"))
