"""Instructions in which the lanes of a warp meet: shuffles, votes, matches, reductions, elections, bar.warp.sync.

Source: PTX ISA, "shfl.sync", "vote.sync", "match.sync", "redux.sync", "elect.sync", "activemask", "bar.warp.sync". Each
waits until all lanes of its member mask that have not left the kernel execute it. A lane that its own mask does not
name, and a shuffle from a lane that takes no part, are findings: the ISA leaves both undefined. Standing: doc.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mqa_ref.emulator.decode import Decoder, Operation
from mqa_ref.emulator.opcodes.arith import value
from mqa_ref.emulator.opcodes.table import Row, add, opcode
from mqa_ref.emulator.ptx import Imm, Instruction, Operand, Pair, Reg
from mqa_ref.emulator.sync import converge
from mqa_ref.emulator.warp import LANES, Lanes, Mask, Warp
from mqa_ref.errors import EmulatorError

_SYNC = "Parallel Synchronization and Communication Instructions"
_SHUFFLES = "Data Movement and Conversion Instructions: shfl.sync"
_LANES: NDArray[np.intp] = np.arange(LANES)
Meet = Callable[[Warp], "Mask | int"]
"""The lanes that take part, or the signal to wait for the others."""


def mask_of(bits: int) -> Mask:
    """The lanes of a 32-bit mask."""
    found: Mask = np.array([bits >> lane & 1 for lane in range(LANES)], np.bool_)
    return found


def bits_of(mask: Mask) -> int:
    """The 32-bit mask of lanes."""
    return int(np.packbits(mask, bitorder="little").view("<u4")[0])


def meeting(decoder: Decoder, instruction: Instruction, operand: Operand) -> Meet:
    """Gathers the lanes of a member mask, a constant or a register."""
    constant = mask_of(operand.value) if isinstance(operand, Imm) else None
    slot = decoder.src(instruction, operand, 32)

    def run(warp: Warp) -> Mask | int:
        member = constant
        if member is None:
            given = value(warp, slot, instruction)[warp.mask]
            if (given != given[0]).any():
                raise EmulatorError(
                    f"PTX line {instruction.line}: lanes of one warp pass different member masks"
                )
            member = mask_of(int(given[0]))
        if (warp.mask & ~member).any():
            message = f"a lane that the member mask {bits_of(member):#010x} does not name executes this"
            warp.cta.report("sync_misuse", message, warp, instruction)
        signal = converge(warp, member, instruction)
        return signal if signal is not None else member & warp.mask

    return run


@opcode("bar.warp.sync", sources=("mask",), section=_SYNC)
def _warp_sync(decoder: Decoder, instruction: Instruction) -> Operation:
    meet = meeting(decoder, instruction, instruction.operands[0])

    def run(warp: Warp) -> int | None:
        there = meet(warp)
        if isinstance(there, int):
            return there
        warp.gathered()
        return None

    return run


@opcode("elect.sync", result="b32|pred", sources=("mask",), section=_SYNC)
def _elect(decoder: Decoder, instruction: Instruction) -> Operation:
    d, mask = instruction.operands
    if not isinstance(d, Pair):
        raise decoder.fail(instruction, "expected a destination d|p")
    index = decoder.dst(instruction, d.first, 32)
    predicate = decoder.dst(instruction, d.second, 1)
    meet = meeting(decoder, instruction, mask)

    def run(warp: Warp) -> int | None:
        there = meet(warp)
        if isinstance(there, int):
            return there
        leader = int(np.flatnonzero(there)[0])
        if index >= 0:
            warp.put(index, np.full(LANES, leader, np.uint32))
        warp.put(predicate, np.equal(_LANES, leader))
        return None

    return run


@opcode(
    *(f"shfl.sync.{_mode}.b32" for _mode in ("idx", "up", "down", "bfly")),
    result="b32[|pred]",
    sources=("b32", "u32", "u32", "mask"),
    section=_SHUFFLES,
    family="shfl.sync.mode.b32",
)
def _shuffle(decoder: Decoder, instruction: Instruction) -> Operation:
    mode = instruction.opcode.split(".")[2]
    d, a, b, c, mask = instruction.operands
    predicate = -1
    if isinstance(d, Pair):
        predicate = decoder.dst(instruction, d.second, 1)
        d = d.first
    target = decoder.dst(instruction, d, 32)
    source, lane_slot, clamp_slot = (decoder.src(instruction, o, 32) for o in (a, b, c))
    meet = meeting(decoder, instruction, mask)

    def run(warp: Warp) -> int | None:
        there = meet(warp)
        if isinstance(there, int):
            return there
        data = value(warp, source, instruction)
        by = (value(warp, lane_slot, instruction) & 31).astype(np.intp)
        wanted, inside = shuffled(mode, by, value(warp, clamp_slot, instruction).astype(np.intp))
        asked = warp.mask & inside
        if not there[wanted[asked]].all():
            lane = int(wanted[asked][~there[wanted[asked]]][0])
            message = f"a shuffle reads lane {lane}, which takes no part in it"
            warp.cta.report("sync_misuse", message, warp, instruction)
        if target >= 0:
            warp.put(target, data[np.where(inside, wanted, _LANES)])
        if predicate >= 0:
            warp.put(predicate, inside)
        return None

    return run


def shuffled(
    mode: str, by: NDArray[np.intp], control: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Source lane of each lane, and whether it is in range; a lane out of range keeps its own value.

    ``control``: bits 0-4 the clamp, bits 8-12 the mask of the segment.
    """
    clamp, segment = control & 31, control >> 8 & 31
    high = (_LANES & segment) | (clamp & ~segment)
    if mode == "up":
        wanted = _LANES - by
        return np.maximum(wanted, 0), wanted >= high
    wanted = {"idx": (_LANES & segment) | (by & ~segment), "down": _LANES + by, "bfly": _LANES ^ by}[mode]
    return np.minimum(wanted, LANES - 1), wanted <= high


def _vote(function: Callable[[Lanes], object]) -> Callable[[Lanes, Mask], Lanes]:
    return lambda p, there: np.full(LANES, bool(function(p[there])))


def _ballot(p: Lanes, there: Mask) -> Lanes:
    return np.full(LANES, bits_of(p & there), np.uint32)


def _match_any(a: Lanes, there: Mask) -> Lanes:
    return np.array([bits_of((a == mine) & there) for mine in a], np.uint32)


def _reduce(fold: np.ufunc, kind: type[np.generic]) -> Callable[[Lanes, Mask], Lanes]:
    return lambda a, there: np.full(LANES, fold.reduce(a.view(kind)[there], dtype=kind), kind).view(np.uint32)


def _together(
    name: str, result: str, source: str, function: Callable[[Lanes, Mask], Lanes], family: str
) -> None:
    """Add the row of d = function(a of all lanes, the lanes that take part)."""

    def build(decoder: Decoder, instruction: Instruction) -> Operation:
        d, a, mask = instruction.operands
        target = decoder.dst(instruction, d, result)
        slot = decoder.src(instruction, a, source)
        flip = isinstance(a, Reg) and a.negated
        meet = meeting(decoder, instruction, mask)

        def run(warp: Warp) -> int | None:
            there = meet(warp)
            if isinstance(there, int):
                return there
            given = value(warp, slot, instruction)
            warp.put(target, function(~given if flip else given, there))
            return None

        return run

    add(Row(name, result, (source, "mask"), function, _SYNC, "doc", family), build)


@opcode(
    *("match.all.sync.b32", "match.all.sync.b64"),
    result="b32|pred",
    sources=("b", "mask"),
    section=_SYNC,
    family="match.all.sync.type",
)
def _match_all(decoder: Decoder, instruction: Instruction) -> Operation:
    d, a, mask = instruction.operands
    if not isinstance(d, Pair):
        raise decoder.fail(instruction, "expected a destination d|p")
    target, predicate = decoder.dst(instruction, d.first, 32), decoder.dst(instruction, d.second, 1)
    slot = decoder.src(instruction, a, int(instruction.opcode[-2:]))
    meet = meeting(decoder, instruction, mask)

    def run(warp: Warp) -> int | None:
        there = meet(warp)
        if isinstance(there, int):
            return there
        given = value(warp, slot, instruction)[there]
        same = bool((given == given[0]).all())
        warp.put(target, np.full(LANES, bits_of(there) if same else 0, np.uint32))
        warp.put(predicate, np.full(LANES, same))
        return None

    return run


@opcode("activemask.b32", result="b32", section=_SYNC)
def _active(decoder: Decoder, instruction: Instruction) -> Operation:
    target = decoder.dst(instruction, instruction.operands[0], 32)
    return lambda warp: warp.put(target, np.full(LANES, bits_of(warp.mask), np.uint32))


def _register() -> None:
    votes: dict[str, Callable[[Lanes], object]] = {
        "all": np.all,
        "any": np.any,
        "uni": lambda p: (p == p[0]).all(),
    }
    for name, function in votes.items():
        _together(f"vote.sync.{name}.pred", "pred", "pred", _vote(function), "vote.sync.mode.pred")
    _together("vote.sync.ballot.b32", "b32", "pred", _ballot, "vote.sync.ballot.b32")
    for kind in ("b32", "b64"):
        _together(f"match.any.sync.{kind}", "b32", kind, _match_any, "match.any.sync.type")
    folds: dict[str, np.ufunc] = {"add": np.add, "min": np.minimum, "max": np.maximum}
    for name, fold in folds.items():
        for kind, numbers in (("u32", np.uint32), ("s32", np.int32)):
            _together(f"redux.sync.{name}.{kind}", kind, kind, _reduce(fold, numbers), "redux.sync.op.type")
    bitwise: dict[str, np.ufunc] = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
    for name, fold in bitwise.items():
        _together(f"redux.sync.{name}.b32", "b32", "b32", _reduce(fold, np.uint32), "redux.sync.op.b32")


_register()
