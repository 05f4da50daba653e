"""Where a wgmma.mma_async lacks a wgmma.fence: which products can be reached with registers in use.

Source: PTX ISA, "wgmma.fence": needed before the first product, and between any use of a register and a product that
has it as accumulator or fragment; not between products of the same shape. Standing: doc. A register is in use after an
instruction that names it; the analysis follows every path of the control flow from the entry.
"""

from __future__ import annotations

from mqa_ref.emulator.contraction import registers
from mqa_ref.emulator.ptx import Instruction, Program

PRODUCT, FENCE = "wgmma.mma_async.", "wgmma.fence."
_LEAVES = ("ret", "exit", "trap")
State = tuple[int, ...]


def _mask(instruction: Instruction) -> int:
    found = 0
    for operand in instruction.operands:
        for index in registers(operand):
            found |= 1 << index
    return found if instruction.guard is None else found | 1 << instruction.guard.index


def _successors(program: Program, at: int) -> list[int]:
    instruction = program.instructions[at]
    following: list[int] = []
    if instruction.target is not None:
        following.append(instruction.target)
    if instruction.guard is not None or (instruction.target is None and instruction.opcode not in _LEAVES):
        following.append(at + 1)
    return [place for place in following if place < len(program.instructions)]


def unfenced(program: Program) -> frozenset[int]:
    """Indices of the products that some path reaches with one of their registers in use since the last fence."""
    shapes = sorted({i.opcode for i in program.instructions if i.opcode.startswith(PRODUCT)})
    if not shapes:
        return frozenset()
    masks = [_mask(instruction) for instruction in program.instructions]
    fragments = [_fragments(instruction) for instruction in program.instructions]
    everything = (1 << len(program.registers)) - 1
    states: dict[int, State] = {0: (everything,) * len(shapes)}
    work = [0]
    while work:
        at = work.pop()
        instruction, state = program.instructions[at], states[at]
        if instruction.opcode.startswith(FENCE):
            after: State = (0,) * len(shapes)
        elif instruction.opcode.startswith(PRODUCT):
            after = tuple(
                s if o == instruction.opcode else s | fragments[at]
                for s, o in zip(state, shapes, strict=True)
            )
        else:
            after = tuple(s | masks[at] for s in state)
        for place in _successors(program, at):
            old = states.get(place)
            new = after if old is None else tuple(a | b for a, b in zip(after, old, strict=True))
            if new != old:
                states[place] = new
                work.append(place)
    return frozenset(
        at
        for at, state in states.items()
        if program.instructions[at].opcode in shapes
        and state[shapes.index(program.instructions[at].opcode)] & fragments[at]
    )


def _fragments(instruction: Instruction) -> int:
    """The accumulators, and the fragments of A where it comes from registers, of a product; 0 for others."""
    if not instruction.opcode.startswith(PRODUCT):
        return 0
    found = 0
    for index in registers(instruction.operands[0]):
        found |= 1 << index
    return found
