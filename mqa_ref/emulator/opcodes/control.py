"""Branches, exits, CTA barriers, fences, and instructions that change no value.

Source: PTX ISA, "Control Flow Instructions", "bar", "griddepcontrol", "setmaxnreg", "fence". Standing: doc.
"""

from __future__ import annotations

import numpy as np

from mqa_ref.emulator.decode import Decoder, Operation
from mqa_ref.emulator.opcodes.arith import value
from mqa_ref.emulator.opcodes.table import opcode
from mqa_ref.emulator.ptx import Instruction
from mqa_ref.emulator.sync import whole_warp
from mqa_ref.emulator.tensor_order import AFTER, BEFORE, before
from mqa_ref.emulator.warp import BLOCKED, EXITED, JUMPED, LANES, Wait, Warp

_BARRIERS = "Parallel Synchronization and Communication Instructions"


@opcode("bra", "bra.uni", sources=("label",), section="Control Flow Instructions", family="bra[.uni]")
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


@opcode("trap", section="Miscellaneous Instructions")
@opcode("ret", "exit", section="Control Flow Instructions")
def _leave(decoder: Decoder, instruction: Instruction) -> Operation:
    """The lanes whose guard holds leave, the others go on. After a trap, which is a finding, they leave too: what a GPU
    does then, end the whole grid, is not imitated.
    """
    guard, traps = instruction.guard, instruction.opcode == "trap"

    def run(warp: Warp) -> int | None:
        going = warp.mask
        if guard is not None:
            condition = value(warp, guard.index, instruction)
            going = warp.mask & (~condition if guard.negated else condition)
        if not going.any():
            return None
        if traps:
            warp.cta.report("trap", "the kernel stops itself", warp, instruction)
        if not (warp.mask & ~going).any():
            return EXITED
        warp.alive = warp.alive & ~going
        warp.set_mask(warp.mask & ~going)
        return None

    return run


def meet(warp: Warp, which: int, expected: int, instruction: Instruction) -> int:
    """The whole warp arrives at a named barrier for ``expected`` threads, and goes on when they are there."""
    barrier = warp.cta.named_barrier(which, expected, warp, instruction)
    generation = barrier.generation
    barrier.arrive(LANES, expected, warp.handed())
    warp.released()
    if barrier.generation != generation:
        warp.pc += 1
        warp.acquire(barrier.released)
        return JUMPED
    return await_others(warp, which, expected, instruction)


def await_others(warp: Warp, which: int, expected: int, instruction: Instruction) -> int:
    """The warp, which has arrived at a named barrier, waits there for the rest of the ``expected`` threads."""
    barrier = warp.cta.named[which]
    generation = barrier.generation
    warp.pc += 1
    warp.waiting = Wait(
        lambda: barrier.generation != generation,
        lambda w: w.acquire(barrier.released),
        f"named barrier {which} ({barrier.threads} of {expected} threads have arrived)",
        instruction,
    )
    return BLOCKED


@opcode(
    *("bar.sync", "barrier.sync", "barrier.sync.aligned", "barrier.cta.sync", "barrier.cta.sync.aligned"),
    sources=("barrier", "[threads]"),
    section=_BARRIERS,
    family="bar.sync, barrier[.cta].sync[.aligned]",
)
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
        return meet(warp, which, expected, instruction)

    return run


@opcode(
    *("bar.arrive", "barrier.arrive", "barrier.cta.arrive", "barrier.cta.arrive.aligned"),
    sources=("barrier", "threads"),
    section=_BARRIERS,
    family="bar.arrive, barrier[.cta].arrive[.aligned]",
)
def _bar_arrive(decoder: Decoder, instruction: Instruction) -> Operation:
    number, count = (decoder.src(instruction, o, 32) for o in instruction.operands)

    def run(warp: Warp) -> int | None:
        signal = whole_warp(warp, instruction)
        if signal is not None:
            return signal
        expected = int(value(warp, count, instruction)[0])
        which = int(value(warp, number, instruction)[0])
        warp.cta.named_barrier(which, expected, warp, instruction).arrive(LANES, expected, warp.handed())
        warp.released()
        return None

    return run


@opcode("griddepcontrol.wait", section=_BARRIERS)
def _grid_wait(decoder: Decoder, instruction: Instruction) -> Operation:
    def run(warp: Warp) -> None:
        warp.past_grid_wait = True

    return run


@opcode("fence.mbarrier_init.release.cluster", section=_BARRIERS)
def _init_fence(decoder: Decoder, instruction: Instruction) -> Operation:
    def run(warp: Warp) -> None:
        for barrier in warp.cta.barriers.values():
            if barrier.initialiser == warp.index and barrier.fence_clock is None:
                barrier.fence_clock = int(warp.clock[warp.index])

    return run


PROXY_FENCES = 16
"""Proxy fences of a warp that are remembered; an older one is covered by a newer one as soon as that is known."""


@opcode(
    "fence.proxy.async",
    "fence.proxy.async.shared::cta",
    section=_BARRIERS,
    family="fence.proxy.async[.shared::cta]",
)
def _proxy_fence(decoder: Decoder, instruction: Instruction) -> Operation:
    """What this thread knows to have been stored becomes visible to the async proxy."""

    def run(warp: Warp) -> None:
        warp.proxy_fences.append(warp.clock.copy())
        del warp.proxy_fences[:-PROXY_FENCES]
        warp.released()  # a store after the fence is told apart from one before it

    return run


@opcode(BEFORE, section=_BARRIERS)
def _before_fence(decoder: Decoder, instruction: Instruction) -> Operation:
    """See ``tensor_order``."""

    def run(warp: Warp) -> None:
        before(warp.clock, warp.index)
        warp.released()  # an access after the fence is told apart from one before it

    return run


@opcode(AFTER, section=_BARRIERS)
def _after_fence(decoder: Decoder, instruction: Instruction) -> Operation:
    return lambda warp: warp.order.after(warp.clock)


_NO_VALUE = (
    "setmaxnreg.inc.sync.aligned.u32",
    "setmaxnreg.dec.sync.aligned.u32",
    "griddepcontrol.launch_dependents",
    "prefetch.tensormap",
    "prefetch.param.tensormap",
    "fence.acq_rel.cta",
    "fence.sc.cta",
    "fence.acq_rel.gpu",
    "membar.cta",
    "nanosleep.u32",
)


def no_value(decoder: Decoder, instruction: Instruction) -> Operation:
    """No register or memory changes. Fences of the generic proxy add no edge here: the machine takes an edge
    from each synchronising instruction alone, which is the stricter reading.
    """
    return lambda warp: None


for _name in _NO_VALUE:
    _sources = {"setmaxnreg": ("count",), "prefetch": ("address",), "nanosleep": ("u32",)}.get(
        _name.split(".")[0], ()
    )
    opcode(_name, sources=_sources, section=_BARRIERS if "fence" in _name else "Miscellaneous Instructions")(
        no_value
    )
