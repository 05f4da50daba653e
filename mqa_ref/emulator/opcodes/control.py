"""Branches, exits, CTA barriers, fences, and instructions that change no value.

Source: PTX ISA, "Control Flow Instructions", "bar", "griddepcontrol", "setmaxnreg", "fence". Standing: doc.
"""

from __future__ import annotations

import numpy as np

from mqa_ref.emulator.decode import Decoder, Operation, opcode
from mqa_ref.emulator.opcodes.arith import value
from mqa_ref.emulator.opcodes.moves import member_mask
from mqa_ref.emulator.ptx import Instruction
from mqa_ref.emulator.sync import converge, whole_warp
from mqa_ref.emulator.warp import BLOCKED, EXITED, JUMPED, LANES, Wait, Warp


@opcode("bra", "bra.uni")
def _branch(decoder: Decoder, instruction: Instruction) -> Operation:
    target = instruction.target
    if target is None:
        raise decoder.fail(instruction, "the branch has no known target")
    goal: int = target
    guard = instruction.guard
    if guard is None:

        def jump(warp: Warp) -> int:
            warp.pc = goal
            return JUMPED

        return jump
    slot, negated = guard.index, guard.negated

    def branch(warp: Warp) -> int | None:
        condition = value(warp, slot, instruction)
        taken = ~condition if negated else condition
        if not warp.full:
            taken = taken & warp.mask
        count = np.count_nonzero(taken)
        if count == 0:
            return None
        if count == (LANES if warp.full else np.count_nonzero(warp.mask)):
            warp.pc = goal
        else:
            warp.split(taken, goal, warp.pc + 1)
        return JUMPED

    return branch


@opcode("ret", "exit")
def _leave(decoder: Decoder, instruction: Instruction) -> Operation:
    return lambda warp: EXITED


@opcode("bar.sync", "barrier.sync", "barrier.sync.aligned", "barrier.cta.sync", "barrier.cta.sync.aligned")
def _bar_sync(decoder: Decoder, instruction: Instruction) -> Operation:
    number = decoder.src(instruction, instruction.operands[0], 32)
    count = decoder.src(instruction, instruction.operands[1], 32) if len(instruction.operands) > 1 else None

    def run(warp: Warp) -> int | None:
        signal = whole_warp(warp, instruction)
        if signal is not None:
            return signal
        cta = warp.cta
        which = int(value(warp, number, instruction)[0])
        expected = int(value(warp, count, instruction)[0]) if count is not None else cta.threads
        barrier = cta.named_barrier(which, expected, warp, instruction)
        generation = barrier.generation
        barrier.arrive(LANES, expected, warp.clock)
        warp.released()
        warp.pc += 1
        if barrier.generation != generation:
            warp.acquire(barrier.released)
            return JUMPED
        warp.waiting = Wait(
            lambda: barrier.generation != generation,
            lambda w: w.acquire(barrier.released),
            f"named barrier {which} ({barrier.threads} of {expected} threads have arrived)",
            instruction,
        )
        return BLOCKED

    return run


@opcode("bar.arrive", "barrier.arrive", "barrier.cta.arrive", "barrier.cta.arrive.aligned")
def _bar_arrive(decoder: Decoder, instruction: Instruction) -> Operation:
    number, count = (decoder.src(instruction, o, 32) for o in instruction.operands)

    def run(warp: Warp) -> int | None:
        signal = whole_warp(warp, instruction)
        if signal is not None:
            return signal
        expected = int(value(warp, count, instruction)[0])
        which = int(value(warp, number, instruction)[0])
        warp.cta.named_barrier(which, expected, warp, instruction).arrive(LANES, expected, warp.clock)
        warp.released()
        return None

    return run


@opcode("bar.warp.sync")
def _warp_sync(decoder: Decoder, instruction: Instruction) -> Operation:
    member = member_mask(decoder, instruction, instruction.operands[0])
    return lambda warp: converge(warp, member, instruction)


@opcode("griddepcontrol.wait")
def _grid_wait(decoder: Decoder, instruction: Instruction) -> Operation:
    def run(warp: Warp) -> None:
        warp.past_grid_wait = True

    return run


@opcode("fence.mbarrier_init.release.cluster")
def _init_fence(decoder: Decoder, instruction: Instruction) -> Operation:
    def run(warp: Warp) -> None:
        for barrier in warp.cta.barriers.values():
            if barrier.initialiser == warp.index and barrier.fence_clock is None:
                barrier.fence_clock = int(warp.clock[warp.index])

    return run


@opcode(
    "setmaxnreg.inc.sync.aligned.u32",
    "setmaxnreg.dec.sync.aligned.u32",
    "griddepcontrol.launch_dependents",
    "prefetch.tensormap",
    "prefetch.param.tensormap",
    "fence.proxy.async",
    "fence.proxy.async.shared::cta",
    "fence.acq_rel.cta",
    "fence.sc.cta",
    "fence.acq_rel.gpu",
    "membar.cta",
    "nanosleep.u32",
    "tcgen05.fence::before_thread_sync",
    "tcgen05.fence::after_thread_sync",
)
def _no_value(decoder: Decoder, instruction: Instruction) -> Operation:
    """No register or memory changes. Fences of the generic proxy add no edge here: the machine takes an edge
    from each synchronising instruction alone, which is the stricter reading.
    """
    return lambda warp: None
