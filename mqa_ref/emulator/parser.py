"""Tokens to a ``Program``: directives, scopes of registers and labels, instructions and their operands.

Registers and labels of a brace-enclosed block (inline asm) are local to it and may repeat names of the outer
scope (PTX ISA, "Directives: grouping"). Directives that carry no meaning for execution are skipped by name;
an unknown one is an error.
"""

from __future__ import annotations

from dataclasses import replace

from mqa_ref.emulator.operands import OperandParser, Scope
from mqa_ref.emulator.ptx import (
    Instruction,
    Operand,
    Parameter,
    Program,
    Reg,
    Symbol,
)
from mqa_ref.errors import EmulatorError

TYPE_BYTES = {
    "b8": 1,
    "u8": 1,
    "s8": 1,
    "b16": 2,
    "u16": 2,
    "s16": 2,
    "f16": 2,
    "b32": 4,
    "u32": 4,
    "s32": 4,
    "f32": 4,
}
TYPE_BYTES |= {"b64": 8, "u64": 8, "s64": 8, "f64": 8}
_LINE_DIRECTIVES = {".version", ".target", ".address_size"}
_STATEMENT_DIRECTIVES = {".pragma"}
_PARAMETER_PREFIX = ".param"


class _Parser(OperandParser):
    def __init__(self, ptx: str) -> None:
        super().__init__(ptx)
        self.instructions: list[Instruction] = []
        self.registers: list[str] = []
        self.parameters: list[Parameter] = []
        self.shared: dict[str, int] = {}
        self.externs: list[tuple[str, int]] = []
        self.shared_bytes = 0
        self.required_threads: int | None = None
        self.files: dict[int, str] = {}
        self.location: tuple[int, int] | None = None

    # module level

    def parse(self) -> Program:
        programs: list[Program] = []
        while (token := self.peek()) is not None:
            if token.text in _LINE_DIRECTIVES:
                self.skip_line(token.line)
            elif token.text == ".file":
                self.at += 1
                self.file(token.line)
            elif token.text in (".visible", ".weak"):
                self.at += 1
            elif token.text == ".entry":
                programs.append(self.entry())
            elif token.text in (".extern", ".shared"):
                self.shared_variable()
            elif token.text == ".section":
                self.skip_block()
            else:
                raise self.error(token.line, f"directive {token.text!r} is not modelled")
        programs = [replace(program, files=self.files) for program in programs]
        if len(programs) != 1:
            raise EmulatorError(f"the PTX holds {len(programs)} kernels, expected exactly one")
        return programs[0]

    def file(self, line: int) -> None:
        """.file number "path" [, ...]: the number that .loc names."""
        number = self.integer()
        self.files[number] = self.next().text.strip('"')
        self.skip_line(line)

    def skip_block(self) -> None:
        while self.next().text != "{":
            pass
        while self.next().text != "}":
            pass

    def shared_variable(self) -> None:
        extern = self.accept(".extern")
        self.expect(".shared")
        align = 1
        if self.accept(".align"):
            align = int(self.next().text)
        kind = self.next()
        if kind.text.lstrip(".") not in TYPE_BYTES:
            raise self.error(kind.line, f"type {kind.text!r} is not modelled")
        name = self.next().text
        count = 1
        if self.accept("["):
            count = 0 if self.accept("]") else self.integer()
            if count:
                self.expect("]")
        self.expect(";")
        if extern:
            self.externs.append((name, align))
        else:
            self.shared_bytes = -(-self.shared_bytes // align) * align
            self.shared[name] = self.shared_bytes
            self.shared_bytes += count * TYPE_BYTES[kind.text.lstrip(".")]

    def entry(self) -> Program:
        self.expect(".entry")
        name = self.next().text
        self.expect("(")
        offset = 0
        while not self.accept(")"):
            offset = self.parameter(offset)
            self.accept(",")
        while (token := self.next()).text != "{":
            if token.text in (".reqntid", ".maxntid"):
                threads = [self.integer()]
                while self.accept(","):
                    threads.append(self.integer())
                self.required_threads = threads[0] * (threads[1] if len(threads) > 1 else 1)
            elif token.text in (".minnctapersm", ".maxnreg"):
                self.integer()
            elif token.text == ".explicitcluster" or token.text == ".reqnctapercluster":
                self.skip_line(token.line)
            else:
                raise self.error(token.line, f"directive {token.text!r} is not modelled")
        self.block()
        for extern, align in self.externs:
            self.shared_bytes = -(-self.shared_bytes // align) * align
            self.shared[extern] = self.shared_bytes
        return Program(
            name,
            tuple(self.instructions),
            tuple(self.registers),
            tuple(self.parameters),
            self.shared,
            self.shared_bytes,
            self.required_threads,
        )

    def parameter(self, offset: int) -> int:
        self.expect(_PARAMETER_PREFIX)
        align = 0
        if self.accept(".align"):
            align = self.integer()
        kind = self.next().text.lstrip(".")
        size = TYPE_BYTES[kind]
        name = self.next().text
        if self.accept("["):
            size *= self.integer()
            self.expect("]")
        align = align or size
        offset = -(-offset // align) * align
        self.parameters.append(Parameter(name, size, offset))
        return offset + size

    # blocks and statements

    def block(self) -> None:
        scope = Scope()
        self.scopes.append(scope)
        while not self.accept("}"):
            self.statement()
        self.scopes.pop()
        for index, label, line in scope.fixups:
            if label in scope.labels:
                self.instructions[index] = replace(self.instructions[index], target=scope.labels[label])
            elif self.scopes:
                self.scopes[-1].fixups.append((index, label, line))
            else:
                raise self.error(line, f"label {label!r} is not defined")

    def statement(self) -> None:
        token = self.next()
        scope = self.scopes[-1]
        if token.text == "{":
            self.block()
        elif token.text == ";":
            return
        elif token.text == ".loc":
            self.location = (self.integer(), self.integer())
            self.skip_line(token.line)
        elif token.text == ".file":
            self.file(token.line)
        elif token.text in _STATEMENT_DIRECTIVES:
            while self.next().text != ";":
                pass
        elif token.text == ".reg":
            self.declare()
        elif token.kind == "name" and not token.text.startswith(".") and self.accept(":"):
            scope.labels[token.text] = len(self.instructions)
        elif (token.kind == "name" and not token.text.startswith(".")) or token.text == "@":
            self.at -= 1
            self.instruction()
        else:
            raise self.error(token.line, f"{token.text!r} is not modelled here")

    def declare(self) -> None:
        kind = self.next().text.lstrip(".")
        if kind != "pred" and kind not in TYPE_BYTES:
            raise self.error(self.tokens[self.at - 1].line, f"register type {kind!r} is not modelled")
        scope = self.scopes[-1]
        while True:
            name = self.next().text
            if self.accept("<"):
                count = self.integer()
                self.expect(">")
                scope.families[name] = (len(self.registers), count, kind)
                self.registers.extend([kind] * count)
            else:
                scope.registers[name] = Reg(len(self.registers), kind, name)
                self.registers.append(kind)
            if not self.accept(","):
                break
        self.expect(";")

    def instruction(self) -> None:
        guard: Reg | None = None
        start = self.tokens[self.at]
        if self.accept("@"):
            negated = self.accept("!")
            name = self.next()
            found = self.register(name.text)
            if found is None or found.type != "pred":
                raise self.error(name.line, f"{name.text!r} is not a predicate")
            guard = replace(found, negated=negated)
        opcode = self.next()
        operands: list[Operand] = []
        if not self.accept(";"):
            operands.append(self.operand())
            while self.accept(","):
                operands.append(self.operand())
            self.expect(";")
        text = " ".join(part.strip() for part in self.lines[start.line - 1 : self.tokens[self.at - 1].line])
        base = opcode.text.split(".")[0]
        if base in ("bra", "brx") and operands and isinstance(operands[-1], Symbol):
            self.scopes[-1].fixups.append((len(self.instructions), operands[-1].name, start.line))
        self.instructions.append(
            Instruction(opcode.text, tuple(operands), guard, start.line, text, source=self.location)
        )


def parse(ptx: str) -> Program:
    """Parse the text of one kernel. Raises EmulatorError that names the line for anything not understood."""
    return _Parser(ptx).parse()
