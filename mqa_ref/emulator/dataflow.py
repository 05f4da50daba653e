"""From what one thread executed to the computation of one stored element: a graph of operations on single numbers.

Packed instructions become one operation per number; moves, packing, unpacking and selections leave no trace, since
they compute nothing. The bits of every operand and result are those of the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mqa_ref.emulator.decode import width_of
from mqa_ref.emulator.lane import Accumulated, Executed, KStep, registers, split
from mqa_ref.emulator.ptx import Imm, Instruction, Operand, Program, Reg, Vec

Kind = Literal["operation", "accumulator", "load", "constant", "other"]
_FLOATS = ("add", "sub", "mul", "fma", "max", "min", "abs", "neg", "cvt")
_FORMATS = ("f16", "bf16", "f32", "f64")


@dataclass(frozen=True)
class Piece:
    """``width`` bits of the result of a node, from bit ``shift`` on."""

    node: int
    shift: int
    width: int


@dataclass(frozen=True)
class Operation:
    """One number. ``kind``: "operation" for floating-point arithmetic, "accumulator" for what a tcgen05.ld brings,
    "load" for other memory, "constant", "other" for integer code. ``inputs``: (node, bits) of each operand.
    ``steps``: of an accumulator, the products that made it, and ``column`` its place in them."""

    kind: Kind
    opcode: str
    bits: int
    width: int
    inputs: tuple[tuple[int, int], ...] = ()
    ptx_line: int | None = None
    ptx_text: str | None = None
    source: str | None = None
    column: int | None = None
    steps: tuple[KStep, ...] = ()


@dataclass
class _Graph:
    program: Program
    nodes: list[Operation] = field(default_factory=list)
    held: dict[int, tuple[Piece, ...]] = field(default_factory=dict)
    constants: dict[tuple[int, int], int] = field(default_factory=dict)

    def node(self, kind: Kind, instruction: Instruction, bits: int, width: int, **more: Any) -> Piece:
        self.nodes.append(
            Operation(
                kind,
                instruction.opcode,
                bits,
                width,
                ptx_line=instruction.line,
                ptx_text=instruction.text,
                source=self.program.source_of(instruction),
                **more,
            )
        )
        return Piece(len(self.nodes) - 1, 0, width)

    def constant(self, bits: int, width: int) -> Piece:
        key = (bits & ((1 << width) - 1), width)
        if key not in self.constants:
            self.nodes.append(Operation("constant", "constant", *key))
            self.constants[key] = len(self.nodes) - 1
        return Piece(self.constants[key], 0, width)

    def bits(self, pieces: Iterable[Piece]) -> int:
        total, at = 0, 0
        for piece in pieces:
            total |= (self.nodes[piece.node].bits >> piece.shift & ((1 << piece.width) - 1)) << at
            at += piece.width
        return total


def graph(executed: Sequence[Executed], program: Program, address: int) -> tuple[list[Operation], int]:
    """The operations behind the element at ``address`` that the last of ``executed`` stores, each after its inputs, and
    the number of the stored one."""
    made = _Graph(program)
    for one in executed[:-1]:
        _execute(made, one)
    store = executed[-1]
    target, data = store.instruction.operands
    width = int(store.instruction.opcode.rsplit(".", 1)[-1][1:])
    items = data.items if isinstance(data, Vec) else (data,)
    start = store.sources[registers(target)[0].index] + getattr(target, "offset", 0)
    pieces = _low(_read(made, items[(address - start) * 8 // width], store, width), width)
    if len(pieces) == 1 and pieces[0].shift == 0 and pieces[0].width == made.nodes[pieces[0].node].width:
        root = pieces[0].node
    else:
        root = _combined(made, "other", store.instruction, made.bits(pieces), width, [pieces]).node
    return _reachable(made.nodes, root)


def _execute(made: _Graph, one: Executed) -> None:
    """Update what the registers of the thread hold."""
    instruction = one.instruction
    targets, sources = split(instruction)
    written = [reg for target in targets for reg in registers(target)]
    stem, *modifiers = instruction.opcode.split(".")
    if not written:
        return
    if one.loaded:
        _load_accumulators(made, one, written)
    elif stem == "ld":
        for reg in written:
            made.held[reg.index] = (
                made.node("load", instruction, one.results.get(reg.index, 0), width_of(reg.type)),
            )
    elif stem in ("mov", "selp") and not any(reg.type == "pred" for reg in written):
        _move(made, one, targets[0], sources)
    elif stem in _FLOATS and len(written) == 1 and any(m.removesuffix("x2") in _FORMATS for m in modifiers):
        _arithmetic(made, one, written[0], sources)
    else:
        pieces = [_read(made, source, one, 32) for source in sources]
        for reg in written:
            bits = one.results.get(reg.index, 0)
            made.held[reg.index] = (_combined(made, "other", instruction, bits, width_of(reg.type), pieces),)


def _load_accumulators(made: _Graph, one: Executed, written: list[Reg]) -> None:
    each = len(one.loaded) // len(written)
    for number, reg in enumerate(written):
        pieces = []
        for part, loaded in enumerate(one.loaded[number * each : (number + 1) * each]):
            width = 32 // each
            bits = one.results[reg.index] >> (part * width) & ((1 << width) - 1)
            pieces.append(_accumulator(made, one.instruction, bits, width, loaded))
        made.held[reg.index] = tuple(pieces)


def _accumulator(made: _Graph, instruction: Instruction, bits: int, width: int, loaded: Accumulated) -> Piece:
    return made.node("accumulator", instruction, bits, width, column=loaded.column, steps=loaded.steps)


def _move(made: _Graph, one: Executed, target: Operand, sources: list[Operand]) -> None:
    """mov and selp: the target holds what a source held, a part of it, or several together."""
    if one.instruction.opcode.startswith("selp"):
        condition = sources[2]
        assert isinstance(condition, Reg)
        taken = bool(one.sources.get(condition.index, 0)) != condition.negated
        sources = [sources[0] if taken else sources[1]]
    into = registers(target)
    width = sum(width_of(reg.type) for reg in into)
    if isinstance(target, Vec):
        width = width // len(into) * len(target.items)
    items = sources[0].items if isinstance(sources[0], Vec) else (sources[0],)
    pieces = [piece for item in items for piece in _read(made, item, one, width // len(items))]
    if not isinstance(target, Vec):
        made.held[into[0].index] = tuple(pieces)
        return
    part = width // len(target.items)
    for number, item in enumerate(target.items):
        if isinstance(item, Reg):
            made.held[item.index] = _cut(pieces, number * part, part)


def _arithmetic(made: _Graph, one: Executed, target: Reg, sources: list[Operand]) -> None:
    """One operation, or one for each number of a packed instruction."""
    instruction = one.instruction
    result = one.results.get(target.index, 0)
    width = width_of(target.type)
    modifiers = instruction.opcode.split(".")
    if instruction.opcode.startswith("cvt") and "f16x2" in modifiers:
        # cvt d, a, b: a is the upper half.
        pieces = []
        for part, source in enumerate(reversed(sources)):
            bits = result >> (16 * part) & 0xFFFF
            pieces.append(_combined(made, "operation", instruction, bits, 16, [_read(made, source, one, 32)]))
        made.held[target.index] = tuple(pieces)
        return
    count = 2 if any(m.endswith("x2") for m in modifiers) else 1
    part = width // count
    from_width = _source_width(modifiers, part)
    read = [_read(made, source, one, from_width * count) for source in sources]
    pieces = []
    for number in range(count):
        bits = result >> (part * number) & ((1 << part) - 1)
        taken = [_cut(one_read, number * from_width, from_width) for one_read in read]
        pieces.append(_combined(made, "operation", instruction, bits, part, taken))
    made.held[target.index] = tuple(pieces)


def _source_width(modifiers: list[str], width: int) -> int:
    """Bits of the operands: those of the result, but for conversions, whose last modifier is the source's format."""
    if modifiers[0] != "cvt":
        return width
    return int("".join(c for c in modifiers[-1] if c.isdigit()))


def _combined(
    made: _Graph,
    kind: Kind,
    instruction: Instruction,
    bits: int,
    width: int,
    operands: Sequence[Sequence[Piece]],
) -> Piece:
    """A node whose inputs are the nodes that its operands lie in, with the bits of each operand."""
    inputs = [(piece.node, made.bits([piece])) for pieces in operands for piece in pieces]
    return made.node(kind, instruction, bits, width, inputs=tuple(inputs))


def _read(made: _Graph, operand: Operand, one: Executed, width: int) -> tuple[Piece, ...]:
    """What an operand holds; a register that nothing seen has written is a load of its own."""
    if isinstance(operand, Imm):
        return (made.constant(operand.value, width),)
    if not isinstance(operand, Reg):
        return tuple(piece for reg in registers(operand) for piece in _read(made, reg, one, width))
    if operand.index not in made.held:
        bits = one.sources.get(operand.index, 0)
        made.held[operand.index] = (made.node("other", one.instruction, bits, width_of(operand.type)),)
    return made.held[operand.index]


def _cut(pieces: Sequence[Piece], start: int, width: int) -> tuple[Piece, ...]:
    """The bits ``start`` to ``start + width - 1`` of pieces that lie one after the other."""
    out, at = [], 0
    for piece in pieces:
        low, high = max(start, at), min(start + width, at + piece.width)
        if low < high:
            out.append(Piece(piece.node, piece.shift + low - at, high - low))
        at += piece.width
    return tuple(out)


def _low(pieces: Sequence[Piece], width: int) -> tuple[Piece, ...]:
    return _cut(pieces, 0, width)


def _reachable(nodes: list[Operation], root: int) -> tuple[list[Operation], int]:
    """The nodes that the root needs, renumbered in the same order."""
    needed, todo = set(), [root]
    while todo:
        index = todo.pop()
        if index not in needed:
            needed.add(index)
            todo += [node for node, _ in nodes[index].inputs]
    order = sorted(needed)
    number = {old: new for new, old in enumerate(order)}
    kept = []
    for old in order:
        told = {name: getattr(nodes[old], name) for name in Operation.__dataclass_fields__}
        told["inputs"] = tuple((number[node], bits) for node, bits in nodes[old].inputs)
        kept.append(Operation(**told))
    return kept, number[root]


def as_plain(operation: Operation) -> dict[str, Any]:
    """An operation as plain values, for another process."""
    plain = {name: getattr(operation, name) for name in Operation.__dataclass_fields__}
    plain["inputs"] = [list(pair) for pair in operation.inputs]
    plain["steps"] = [
        {
            "a": list(step.a),
            "b": list(step.b),
            "bits": step.bits,
            "accumulates": step.accumulates,
            "ptx_line": step.instruction.line,
            "ptx_text": step.instruction.text,
        }
        for step in operation.steps
    ]
    return plain
