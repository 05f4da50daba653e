"""wgmma.mma_async of e4m3 operands in shared memory with fp32 or fp16 accumulators, and the instructions around it.

Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions". What they do: ``mqa_ref.emulator.wgmma``.
"""

from __future__ import annotations

from mqa_ref.emulator.decode import Decoder, Operation
from mqa_ref.emulator.fences import unfenced
from mqa_ref.emulator.opcodes.arith import value
from mqa_ref.emulator.opcodes.table import opcode
from mqa_ref.emulator.ptx import Imm, Instruction, Operand, Reg
from mqa_ref.emulator.sync import whole_warp
from mqa_ref.emulator.warp import BLOCKED, Wait, Warp
from mqa_ref.emulator.wgmma import Form, commit, complete, issue, retire

_SECTION = "Asynchronous Warpgroup Level Matrix Instructions"


def _whole(warp: Warp, instruction: Instruction) -> int | None:
    """Waits for the warp; lanes that have left the kernel are a finding."""
    signal = whole_warp(warp, instruction)
    if signal is None and not warp.full:
        warp.cta.report("wgmma_misuse", "not all threads of the warp execute this", warp, instruction)
    return signal


def _sign(decoder: Decoder, instruction: Instruction, operand: Operand) -> bool:
    if not isinstance(operand, Imm) or operand.value not in (1, -1):
        raise decoder.fail(instruction, "a scale is 1 or -1")
    return operand.value == -1


_OPERANDS = ("descriptor", "descriptor", "pred", "scale", "scale")


@opcode(
    *(f"wgmma.mma_async.sync.aligned.m64n{n}k32.f16.e4m3.e4m3" for n in range(8, 257, 8)),
    result="{f16x2, ...}",
    sources=_OPERANDS,
    section=_SECTION,
    family="wgmma.mma_async.sync.aligned.m64nNk32.f16.e4m3.e4m3",
)
@opcode(
    *(f"wgmma.mma_async.sync.aligned.m64n{n}k32.f32.e4m3.e4m3" for n in range(8, 257, 8)),
    result="{f32, ...}",
    sources=_OPERANDS,
    section=_SECTION,
    family="wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e4m3",
)
def _mma(decoder: Decoder, instruction: Instruction) -> Operation:
    n = int(instruction.opcode.split(".m64n")[1].split("k32")[0])
    operands = instruction.operands
    if len(operands) != 6:
        raise decoder.fail(
            instruction, "expected accumulators, two descriptors, scale-d, scale-a and scale-b"
        )
    halves = ".f16.e4m3" in instruction.opcode
    items = decoder.items(instruction, operands[0], n // 4 if halves else n // 2)
    targets = [decoder.dst(instruction, item, 32) for item in items]
    if len(set(targets)) != len(targets) or min(targets) < 0:
        raise decoder.fail(instruction, "an accumulator is named twice, or is the sink")
    a, b = (decoder.src(instruction, operand, 64) for operand in operands[1:3])
    scale = decoder.src(instruction, operands[3], 1)
    flip = isinstance(operands[3], Reg) and operands[3].negated
    program = decoder.code.program
    form = Form(
        instruction,
        n,
        "fp16" if halves else "fp32",
        tuple(targets),
        _sign(decoder, instruction, operands[4]),
        _sign(decoder, instruction, operands[5]),
        any(program.instructions[at] is instruction for at in unfenced(program)),
    )

    def run(warp: Warp) -> int | None:
        signal = _whole(warp, instruction)
        if signal is not None:
            return signal
        values = [value(warp, slot, instruction) for slot in (a, b, scale)]
        if any((lanes != lanes[0]).any() for lanes in values):
            message = "descriptors or scale-d differ between the threads of a warp"
            warp.cta.report("wgmma_misuse", message, warp, instruction)
        issue(warp, form, int(values[0][0]), int(values[1][0]), bool(values[2][0]) != flip)
        return None

    return run


@opcode("wgmma.fence.sync.aligned", section=_SECTION)
def _fence(decoder: Decoder, instruction: Instruction) -> Operation:
    """Orders register accesses; where one is missing is found before the run (``mqa_ref.emulator.fences``)."""
    return lambda warp: _whole(warp, instruction)


@opcode("wgmma.commit_group.sync.aligned", section=_SECTION)
def _commit(decoder: Decoder, instruction: Instruction) -> Operation:
    def run(warp: Warp) -> int | None:
        signal = _whole(warp, instruction)
        if signal is None:
            commit(warp)
        return signal

    return run


@opcode("wgmma.wait_group.sync.aligned", sources=("count",), section=_SECTION)
def _wait(decoder: Decoder, instruction: Instruction) -> Operation:
    (count,) = instruction.operands
    if not isinstance(count, Imm) or count.value < 0:
        raise decoder.fail(instruction, "expected a constant that is not negative")
    pending = count.value

    def run(warp: Warp) -> int | None:
        signal = _whole(warp, instruction)
        if signal is not None:
            return signal
        if not complete(warp, pending):
            describe = f"all but {pending} groups of wgmma products"
            warp.waiting = Wait(lambda: complete(warp, pending), None, describe, instruction)
            return BLOCKED
        retire(warp, pending)
        return None

    return run
