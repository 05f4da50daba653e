"""Instructions to Python operations: the opcode table, operand checks, and the code that a warp runs.

An operation is a function of the warp that returns None (fall through) or one of the signals of ``warp``.
Builders register themselves in ``OPCODES`` by the full opcode, modifiers included, so an unknown modifier is
an unknown opcode and an error that names the instruction and its line: nothing is ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mqa_ref.emulator.memory import SHARED_BASE
from mqa_ref.emulator.ptx import Imm, Instruction, Operand, Program, Reg, Special, Symbol, Vec
from mqa_ref.emulator.warp import LANES, Lanes, Warp
from mqa_ref.errors import EmulatorError

Operation = Callable[[Warp], int | None]
WIDTH_TYPES: dict[int, type[Any]] = {1: np.bool_, 8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
PARAM_BASE = 0x6_0000_0000_0000
"""Where the parameter space lies in the generic address space."""


def width_of(kind: str) -> int:
    """Bits of a PTX register type; predicates count as one."""
    return 1 if kind == "pred" else int(kind[1:])


@dataclass
class Code:
    """A decoded program. ``template`` is a fresh register file: program registers, then constants, then special
    registers. ``granule``: bytes of shared memory that the race check tells apart, those of the smallest store.
    """

    program: Program
    operations: list[Operation] = field(default_factory=list)
    template: list[Lanes | None] = field(default_factory=list)
    specials: dict[str, int] = field(default_factory=dict)
    uses_grid_wait: bool = False
    granule: int = 4


class Decoder:
    """Turns operands into register-file indices while the operations of one program are built."""

    def __init__(self, program: Program) -> None:
        self.code = Code(program, template=[None] * len(program.registers))
        self.constants: dict[tuple[int, int], int] = {}
        self.parameters = {p.name: p.offset for p in program.parameters}

    def fail(self, instruction: Instruction, why: str) -> EmulatorError:
        """An error that names the instruction."""
        return EmulatorError(f"PTX line {instruction.line}: {why}: {instruction.text}")

    def constant(self, value: int, width: int) -> int:
        """Index of a register that always holds ``value``."""
        key = (value & ((1 << width) - 1), width)
        if key not in self.constants:
            array = np.full(LANES, bool(key[0]) if width == 1 else key[0], WIDTH_TYPES[width])
            array.flags.writeable = False
            self.constants[key] = len(self.code.template)
            self.code.template.append(array)
        return self.constants[key]

    def special(self, name: str) -> int:
        """Index of the register that holds a special register's value."""
        if name not in self.code.specials:
            self.code.specials[name] = len(self.code.template)
            self.code.template.append(None)
        return self.code.specials[name]

    def src(self, instruction: Instruction, operand: Operand, width: int) -> int:
        """Index of a source operand of ``width`` bits."""
        if isinstance(operand, Reg):
            if width_of(operand.type) != width:
                raise self.fail(instruction, f"{operand.name} is {operand.type}, expected {width} bits")
            return operand.index
        if isinstance(operand, Imm):
            return self.constant(operand.value, width)
        if isinstance(operand, Special):
            return self.special(operand.name)
        if isinstance(operand, Symbol):
            return self.constant(self.address_of(instruction, operand.name), width)
        raise self.fail(instruction, "this form of operand is not modelled")

    def address_of(self, instruction: Instruction, name: str) -> int:
        """Address of a shared variable (in the shared window) or of a parameter (generic)."""
        if name in self.code.program.shared:
            return self.code.program.shared[name] + SHARED_BASE
        if name in self.parameters:
            return PARAM_BASE + self.parameters[name]
        raise self.fail(instruction, f"{name!r} is not a variable or parameter")

    def dst(self, instruction: Instruction, operand: Operand, width: int) -> int:
        """Index of a destination register of ``width`` bits; -1 for the sink ``_``."""
        if isinstance(operand, Symbol) and operand.name == "_":
            return -1
        if not isinstance(operand, Reg) or width_of(operand.type) != width:
            shown = getattr(operand, "name", operand)
            raise self.fail(instruction, f"{shown} is no {width}-bit register")
        return operand.index

    def items(self, instruction: Instruction, operand: Operand, count: int) -> tuple[Operand, ...]:
        """The elements of a vector operand; a scalar counts as a vector of one."""
        items = operand.items if isinstance(operand, Vec) else (operand,)
        if len(items) != count:
            raise self.fail(instruction, f"a vector of {len(items)} where {count} are expected")
        return items


Builder = Callable[[Decoder, Instruction], Operation]
OPCODES: dict[str, Builder] = {}


def opcode(*names: str) -> Callable[[Builder], Builder]:
    """Register a builder under full opcode names."""

    def register(builder: Builder) -> Builder:
        for name in names:
            if name in OPCODES:
                raise AssertionError(f"opcode {name} is in the table twice")
            OPCODES[name] = builder
        return builder

    return register


def _guarded(operation: Operation, index: int, negated: bool) -> Operation:
    def run(warp: Warp) -> int | None:
        guard = warp.regs[index]
        if guard is None:
            return operation(warp)
        active = warp.mask & (~guard if negated else guard)
        count = np.count_nonzero(active)
        if count == 0:
            return None
        if count == LANES:
            return operation(warp)
        mask, full = warp.mask, warp.full
        warp.mask, warp.full = active, False
        try:
            return operation(warp)
        finally:
            warp.mask, warp.full = mask, full

    return run


def _store_bytes(name: str) -> int:
    """Bytes of one element of a store to shared memory; 4 for every other opcode."""
    return int(name.rsplit(".", 1)[-1][1:]) // 8 if name.startswith("st.shared") else 4


def decode(program: Program) -> Code:
    """Build the operations of a program. Raises EmulatorError for the first instruction that is not modelled."""
    from mqa_ref.emulator import opcodes

    opcodes.load()
    decoder = Decoder(program)
    for instruction in program.instructions:
        builder = OPCODES.get(instruction.opcode)
        if builder is None:
            raise decoder.fail(instruction, f"opcode {instruction.opcode!r} is not modelled")
        operation = builder(decoder, instruction)
        is_branch = instruction.opcode in ("bra", "bra.uni")
        if instruction.guard is not None and not is_branch:
            operation = _guarded(operation, instruction.guard.index, instruction.guard.negated)
        decoder.code.operations.append(operation)
        decoder.code.granule = min(decoder.code.granule, _store_bytes(instruction.opcode))
        decoder.code.uses_grid_wait |= instruction.opcode == "griddepcontrol.wait"
    return decoder.code
