"""A program as a table for ``loop``: which kernel each instruction is, and where its operands lie.

Operands are resolved by the decoder, as for the interpreter. What has no kernel, or an operand of an unusual form, is
left to Python.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mqa_ref.emulator.compiled import loop, native
from mqa_ref.emulator.compiled.layout import Layout
from mqa_ref.emulator.compiled.quick import Quick, Run, Waits, builders
from mqa_ref.emulator.compiled.services import Place
from mqa_ref.emulator.compiled.vectors import LANES, Kernel
from mqa_ref.emulator.decode import OPCODES, PARAM_BASE, Code, Decoder
from mqa_ref.emulator.opcodes.control import no_value
from mqa_ref.emulator.ptx import Addr, Imm, Instruction, Operand, Pair, Reg, Symbol, Vec
from mqa_ref.errors import EmulatorError

ALL_LANES = 0xFFFFFFFF
_DESTINATIONS, _SOURCES = 2, 3


@dataclass(frozen=True, eq=False)
class Table:
    """``entries`` has one for each instruction and one past the end, ``operands`` what they look up. ``entered`` marks
    the instructions at which machine code is worth entering, ``quick`` has the short cuts, ``constants`` those of
    services.
    """

    entries: NDArray[np.void]
    operands: NDArray[np.void]
    layout: Layout
    constants: NDArray[np.int64]
    entered: list[bool]
    quick: list[Run | None]
    waits: list[Waits | None]


@dataclass(frozen=True)
class _Chosen:
    """A kernel and its operands as register numbers; -1 for a destination that is not wanted. ``parameter``: the
    offset of the parameter that is read, or -1."""

    name: str
    destinations: tuple[int, ...]
    sources: tuple[int, ...]
    parameter: int = -1


class _Finder(Decoder):
    """Finds operands in the register file of ``code``, to which it adds constants of its own."""

    def __init__(self, code: Code) -> None:
        super().__init__(code.program)
        self.code = Code(code.program, template=list(code.template), specials=dict(code.specials))

    def sources(
        self, instruction: Instruction, operands: tuple[Operand, ...], kernel: Kernel
    ) -> tuple[int, ...]:
        """The sources of an instruction; a negated predicate is no form that a kernel takes."""
        if len(operands) != len(kernel.sources):
            raise self.fail(instruction, "another number of sources is expected")
        if any(isinstance(operand, Reg) and operand.negated for operand in operands):
            raise self.fail(instruction, "no kernel negates a predicate")
        return tuple(
            self.src(instruction, operand, width)
            for operand, width in zip(operands, kernel.sources, strict=True)
        )

    def choose(self, instruction: Instruction) -> _Chosen | None:
        """The kernel for an instruction."""
        name, operands = instruction.opcode, instruction.operands
        if name.startswith("ld.param."):
            return self._parameter(instruction)
        if name == "elect.sync":
            return self._elect(instruction)
        if name.startswith("shfl.sync.") and len(operands) == 5:
            return self._shuffle(instruction)
        targets: tuple[Operand, ...] = operands[:1]
        values = operands[1:]
        if name.startswith("mov.") and len(operands) == 2:
            into, source = operands
            if isinstance(source, Vec):
                name, values = f"pack.{_bits(name)}", source.items
            elif isinstance(into, Vec):
                name, targets = f"unpack.{_bits(name)}", into.items
        kernel = native.kernels().get(name)
        if kernel is None or len(targets) != len(kernel.results) or kernel.exchanges:
            return None
        written = tuple(
            self.dst(instruction, target, width)
            for target, width in zip(targets, kernel.results, strict=True)
        )
        return _Chosen(name, written, self.sources(instruction, values, kernel))

    def _parameter(self, instruction: Instruction) -> _Chosen | None:
        *vector, kind = instruction.opcode.split(".")[2:]
        count = int(vector[0][1:]) if vector else 1
        name = f"param.{count}x{kind[1:]}"
        into, source = instruction.operands
        if (
            name not in native.kernels()
            or not isinstance(source, Addr)
            or not isinstance(source.base, Symbol)
        ):
            return None
        start = self.address_of(instruction, source.base.name) - PARAM_BASE + source.offset
        if start < 0 or start + count * int(kind[1:]) // 8 > self.code.program.parameter_bytes:
            return None
        items = self.items(instruction, into, count)
        return _Chosen(name, tuple(self.dst(instruction, item, int(kind[1:])) for item in items), (), start)

    def _elect(self, instruction: Instruction) -> _Chosen | None:
        pair, member = instruction.operands
        if not isinstance(pair, Pair) or not _whole(member):
            return None
        written = (self.dst(instruction, pair.first, 32), self.dst(instruction, pair.second, 1))
        return _Chosen("elect", written, ())

    def _shuffle(self, instruction: Instruction) -> _Chosen | None:
        target, data, by, control, member = instruction.operands
        if not _whole(member):
            return None
        predicate = -1
        if isinstance(target, Pair):
            predicate = self.dst(instruction, target.second, 1)
            target = target.first
        name = f"shfl.{instruction.opcode.split('.')[2]}"
        kernel = native.kernels()[name]
        read = self.sources(instruction, (data, by, control), kernel)
        return _Chosen(name, (self.dst(instruction, target, 32), predicate), read)


def _whole(member: Operand) -> bool:
    """Does a member mask name every lane?"""
    return isinstance(member, Imm) and member.value & ALL_LANES == ALL_LANES


def _bits(opcode: str) -> int:
    return int(opcode.rsplit(".", 1)[-1][1:])


_lock = threading.Lock()


def table_of(code: Code) -> Table:
    """The table of a program, made once."""
    with _lock:
        if not isinstance(code.table, Table):
            code.table = _build(code)
        return code.table


def _build(code: Code) -> Table:
    finder = _Finder(code)
    chosen: dict[int, _Chosen] = {}
    instructions = code.program.instructions
    for number, instruction in enumerate(instructions):
        try:
            one = finder.choose(instruction)
        except EmulatorError:
            continue
        if one is not None:
            chosen[number] = one
    quick = _short_cuts(finder, code)
    layout = Layout(code.program.registers, finder.code.template, code.program.parameter_bytes)
    wanted = {one.name for one in chosen.values()}
    wanted |= {one.service.name for one in quick.values() if one.service is not None}
    places = native.addresses(wanted)
    entries = np.zeros(len(instructions) + 1, loop.ENTRY)
    for number, instruction in enumerate(instructions):
        entry = entries[number]
        entry["count"] = -1
        _operands(entry, layout, chosen.get(number), instruction)
        if instruction.opcode in ("bra", "bra.uni") and instruction.target is not None:
            entry["kind"], entry["target"] = loop.BRANCH, instruction.target
        elif OPCODES.get(instruction.opcode) is no_value and instruction.guard is None:
            entry["kind"] = loop.NOTHING
        elif number in chosen:
            name = chosen[number].name
            kernel = native.kernels()[name]
            entry["kernel"] = places[name]
            entry["kind"] = loop.MOVE if kernel.moves else loop.EXCHANGE if kernel.exchanges else loop.COMPUTE
    operands = _look_ups(entries, quick, layout)
    constants = _services(entries, quick, layout, places)
    entries[-1]["count"] = -1
    entered = [bool(entry["kind"] != loop.PYTHON or entry["count"] >= 0) for entry in entries]
    runs = [quick[number].run if number in quick else None for number in range(len(entries))]
    waits = [quick[number].waits if number in quick else None for number in range(len(entries))]
    return Table(entries, operands, layout, constants, entered, runs, waits)


def _short_cuts(finder: _Finder, code: Code) -> dict[int, Quick]:
    """Instruction number -> short cut."""
    found: dict[int, Quick] = {}
    for number, instruction in enumerate(code.program.instructions):
        build = builders().get(instruction.opcode)
        if build is None:
            continue
        try:
            one = build(finder, instruction, code.operations[number])
        except EmulatorError:
            continue
        if one is not None and len(one.operands) <= loop.MOST_OPERANDS:
            found[number] = one
    return found


def _look_ups(entries: NDArray[np.void], quick: dict[int, Quick], layout: Layout) -> NDArray[np.void]:
    """The table of operands, whose places go into the entries."""
    rows: list[tuple[int, int, int, int]] = []
    for number, one in quick.items():
        entries[number]["first"], entries[number]["count"] = len(rows), len(one.operands)
        for place, slot in enumerate(one.operands):
            width = max(layout.widths[slot], 8)
            rows.append((layout.offsets[slot], slot, width, 0 if place else one.step))
    return np.array(rows or [(0, 0, 8, 0)], loop.OPERAND)


def _services(
    entries: NDArray[np.void], quick: dict[int, Quick], layout: Layout, places: dict[str, int]
) -> NDArray[np.int64]:
    """The constants of services, whose places go into the entries."""
    rows: list[int] = []
    starts: dict[int, int] = {}
    for number, one in quick.items():
        if one.service is None:
            continue
        starts[number] = len(rows)
        entries[number]["kernel"] = places[one.service.name]
        for constant in one.service.constants:
            if isinstance(constant, int):
                rows.append(constant)
            elif isinstance(constant, Place):
                rows.append(layout.offsets[constant.slot])
            else:
                slot = layout.sink if constant.slot < 0 else constant.slot
                rows += (layout.offsets[slot], slot)
    constants = np.array(rows or [0], np.int64)
    for number, start in starts.items():
        entries[number]["constants"] = constants.ctypes.data + 8 * start
    return constants


def _operands(entry: np.void, layout: Layout, one: _Chosen | None, instruction: Instruction) -> None:
    destinations = [] if one is None else [layout.sink if slot < 0 else slot for slot in one.destinations]
    sources = [] if one is None else list(one.sources)
    slots = [*destinations, layout.sink, layout.sink][:_DESTINATIONS]
    slots += [*sources, layout.source, layout.source, layout.source][:_SOURCES]
    guard = instruction.guard
    places = [layout.offsets[slot] for slot in slots]
    if one is not None and one.parameter >= 0:
        places[_DESTINATIONS] = layout.parameters + one.parameter
    entry["place"] = [*places, 0 if guard is None else layout.offsets[guard.index]]
    entry["register"] = [*slots, -1 if guard is None else guard.index]
    entry["negated"] = -1 if guard is not None and guard.negated else 0


assert LANES == 32  # the loop's masks are 32-bit words
