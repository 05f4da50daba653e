"""Instructions to Python operations: the opcode table, operand checks, and the code that a warp runs.

An operation is a function of the warp that returns None (fall through) or one of the signals of ``warp``.
``OPCODES`` holds a builder for each row of the opcode table (``opcodes.table``), by the full opcode with its modifiers,
so an unknown modifier is an unknown opcode and an error that names the instruction and its line: nothing is ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from mqa_ref.emulator.memory import SHARED_BASE, variable_addresses
from mqa_ref.emulator.ptx import Imm, Instruction, Operand, Program, Reg, Special, Symbol, Vec
from mqa_ref.emulator.warp import LANES, Lanes, Warp
from mqa_ref.errors import EmulatorError

Operation = Callable[[Warp], int | None]
WIDTH_TYPES: dict[int, type[Any]] = {1: np.bool_, 8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
SPECIAL_BITS = 32
"""Of every special register that is modelled (PTX ISA, "Special Registers")."""
_ODD_WIDTHS = {"pred": 1, "f16x2": 32, "bf16x2": 32, "f32x2": 64, "bf16": 16}
_TARGETS = {"wgmma": "sm_90", "tcgen05": "sm_10"}
_TAKE_THEIR_GUARD = ("bra", "ret", "exit", "trap")
"""Instructions that part the lanes of a warp by their guard."""
_GENERATIONS = {"wgmma": "sm_90a", "tcgen05": "sm_100a and its family"}
"""What .target must begin with for instructions of one generation, and that in words."""
SHARED_WINDOW = 0x6_8000_0000_0000
"""What cvta.shared adds to a shared address: where shared memory lies in the generic address space."""
PARAM_BASE = 0x6_0000_0000_0000
"""Where the parameter space lies in the generic address space."""


@cache
def width_of(kind: str) -> int:
    """Bits of a PTX type; predicates count as one."""
    return _ODD_WIDTHS.get(kind) or int(kind[1:])


@cache
def agrees(register: str, kind: str) -> bool:
    """May a register declared as ``register`` stand where an instruction wants ``kind``? Untyped bits agree with all of
    their width, signed with unsigned integers; floats with floats of the same format (PTX ISA, "Operand Type
    Checking"; packed formats live in untyped registers).
    """
    if width_of(register) != width_of(kind):
        return False
    classes = [("u" if each[0] in "su" else each) for each in (register, kind)]
    return classes[0] == classes[1] or register[0] == "b" or kind[0] == "b"


@dataclass
class Code:
    """A decoded program. ``template`` is a fresh register file: program registers, then constants, then special
    registers. ``granule``: bytes of shared memory that the race check tells apart, those of the smallest store.
    ``table``: the program as the compiled engine runs it, once it has done so.
    """

    program: Program
    operations: list[Operation] = field(default_factory=list)
    template: list[Lanes | None] = field(default_factory=list)
    specials: dict[str, int] = field(default_factory=dict)
    uses_grid_wait: bool = False
    granule: int = 4
    table: object = field(default=None, compare=False, repr=False)


class Decoder:
    """Turns operands into register-file indices while the operations of one program are built."""

    def __init__(self, program: Program) -> None:
        self.code = Code(program, template=[None] * len(program.registers))
        self.constants: dict[tuple[int, int], int] = {}
        self.parameters = {p.name: p.offset for p in program.parameters}
        self.variables = variable_addresses(program)

    def fail(self, instruction: Instruction, why: str) -> EmulatorError:
        """An error that names the instruction."""
        return EmulatorError(f"PTX line {instruction.line}: {why}: {instruction.text}")

    def constant(self, value: int, width: int) -> int:
        """Index of a register that always holds ``value``; as a predicate every number but 0 is true (PTX ISA,
        "Predicate Constants")."""
        key = (int(value != 0) if width == 1 else value & ((1 << width) - 1), width)
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

    def src(self, instruction: Instruction, operand: Operand, kind: int | str) -> int:
        """Index of a source operand of a PTX type or, of any type, of so many bits."""
        width = kind if isinstance(kind, int) else width_of(kind)
        if isinstance(operand, Reg):
            if width_of(operand.type) != width:
                raise self.fail(instruction, f"{operand.name} is {operand.type}, expected {width} bits")
            if isinstance(kind, str) and not agrees(operand.type, kind):
                raise self.fail(instruction, f"{operand.name} is {operand.type}, expected {kind}")
            return operand.index
        if isinstance(operand, Imm):
            return self.constant(operand.value, width)
        if isinstance(operand, Special):
            if width != SPECIAL_BITS:
                why = f"{operand.name} has {SPECIAL_BITS} bits, expected {width}"
                raise self.fail(instruction, why)
            return self.special(operand.name)
        if isinstance(operand, Symbol):
            return self.constant(self.address_of(instruction, operand.name) + operand.offset, width)
        raise self.fail(instruction, "this form of operand is not modelled")

    def address_of(self, instruction: Instruction, name: str) -> int:
        """Address of a shared variable (in its space), of a variable of the module, or of a parameter (generic)."""
        if name in self.code.program.shared:
            return self.code.program.shared[name] + SHARED_BASE
        if name in self.variables:
            return self.variables[name]
        if name in self.parameters:
            return PARAM_BASE + self.parameters[name]
        raise self.fail(instruction, f"{name!r} is not a variable or parameter")

    def dst(self, instruction: Instruction, operand: Operand, kind: int | str) -> int:
        """Index of a destination register of a PTX type or of so many bits; -1 for the sink ``_``."""
        width = kind if isinstance(kind, int) else width_of(kind)
        if isinstance(operand, Symbol) and operand.name == "_":
            return -1
        if isinstance(operand, Reg) and isinstance(kind, str) and width_of(operand.type) == width:
            if not agrees(operand.type, kind):
                raise self.fail(instruction, f"{operand.name} is {operand.type}, no {kind} register")
            return operand.index
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


def _guarded(operation: Operation, instruction: Instruction, guard_register: Reg) -> Operation:
    from mqa_ref.emulator.opcodes.arith import value

    index, negated = guard_register.index, guard_register.negated

    def run(warp: Warp) -> int | None:
        guard = value(warp, index, instruction)
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
    """Bytes of one element of a store that may go to shared memory, a generic one too; 4 for every other opcode."""
    base, *modifiers = name.split(".")
    return width_of(modifiers[-1]) // 8 if base == "st" and "global" not in modifiers else 4


_ENDS = ("ret", "ret.uni", "exit", "trap", "bra", "bra.uni")
"""What may stand last in a program: it goes nowhere or elsewhere."""


def decode(program: Program) -> Code:
    """Build the operations of a program. Raises EmulatorError for the first instruction that is not modelled, and
    for a program whose end can be run past."""
    from mqa_ref.emulator import opcodes
    from mqa_ref.emulator.opcodes.table import explain_unknown

    opcodes.load()
    decoder = Decoder(program)
    last = program.instructions[-1] if program.instructions else None
    if last is not None and (last.guard is not None or last.opcode not in _ENDS):
        raise decoder.fail(last, "execution can run past this last instruction")
    for instruction in program.instructions:
        if (instruction.target or 0) >= len(program.instructions):
            raise decoder.fail(instruction, "the branch leads past the last instruction")
        builder = OPCODES.get(instruction.opcode)
        if builder is None:
            raise decoder.fail(instruction, explain_unknown(instruction.opcode))
        family = instruction.opcode.split(".")[0]
        if program.target and not program.target.startswith(_TARGETS.get(family, "")):
            raise decoder.fail(
                instruction, f"{family} exists on {_GENERATIONS[family]} only, not on {program.target}"
            )
        operation = builder(decoder, instruction)
        if instruction.guard is not None and family not in _TAKE_THEIR_GUARD:
            operation = _guarded(operation, instruction, instruction.guard)
        decoder.code.operations.append(operation)
        decoder.code.granule = min(decoder.code.granule, _store_bytes(instruction.opcode))
        decoder.code.uses_grid_wait |= instruction.opcode == "griddepcontrol.wait"
    return decoder.code
