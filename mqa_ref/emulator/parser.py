"""Tokens to a ``Program``: kernels, scopes of registers and labels, and instructions.

Registers and labels of a brace-enclosed block (inline asm) are local to it and may repeat names of the outer
scope (PTX ISA, "Directives: grouping"). Statements end where their syntax ends, so a line may hold several.
"""

from __future__ import annotations

from dataclasses import replace

from mqa_ref.emulator.directives import DirectiveParser
from mqa_ref.emulator.lexer import Token
from mqa_ref.emulator.operands import Scope
from mqa_ref.emulator.ptx import Instruction, Operand, Program, Reg, Symbol
from mqa_ref.errors import EmulatorError


class _Parser(DirectiveParser):
    def __init__(self, ptx: str) -> None:
        super().__init__(ptx)
        self.instructions: list[Instruction] = []

    def parse(self) -> Program:
        programs: list[Program] = []
        while (token := self.peek()) is not None:
            if self.header():
                continue
            if token.text in (".visible", ".weak") and self.tokens[self.at + 1 : self.at + 2]:
                following = self.tokens[self.at + 1].text
                if following == ".entry":
                    self.at += 1
                    continue
            if token.text == ".entry":
                programs.append(self.entry())
            elif self.starts_variable():
                self.variable()
            else:
                raise self.error(token.line, f"directive {token.text!r} is not modelled")
        if len(programs) != 1:
            raise EmulatorError(f"the PTX holds {len(programs)} kernels, expected exactly one")
        return replace(programs[0], files=self.files, variables=tuple(self.variables), target=self.target)

    def entry(self) -> Program:
        self.expect(".entry")
        name = self.next().text
        offset = 0
        if self.accept("("):
            while not self.accept(")"):
                offset = self.parameter(offset)
                self.accept(",")
        self.performance()
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
            max_threads=self.max_threads,
        )

    # blocks and statements

    def block(self) -> None:
        scope = Scope()
        self.scopes.append(scope)
        self.meanings.clear()
        while not self.accept("}"):
            self.statement()
        self.scopes.pop()
        self.meanings.clear()
        for index, label, line in scope.fixups:
            if label in scope.labels:
                self.instructions[index] = replace(self.instructions[index], target=scope.labels[label])
            elif self.scopes:
                self.scopes[-1].fixups.append((index, label, line))
            else:
                raise self.error(line, f"label {label!r} is not defined")

    def statement(self) -> None:
        if self.header():
            return
        if self.starts_variable():
            self.variable()
            return
        token = self.next()
        if token.text == "{":
            self.block()
        elif token.text == ";":
            return
        elif token.text == ".pragma":
            self.pragma()
        elif token.text == ".reg":
            self.declare_registers()
        elif token.kind == "name" and not token.text.startswith(".") and self.accept(":"):
            self.label(token)
        elif (token.kind == "name" and not token.text.startswith(".")) or token.text == "@":
            self.at -= 1
            self.instruction()
        else:
            raise self.error(token.line, f"{token.text!r} is not modelled here")

    def label(self, token: Token) -> None:
        labels = self.scopes[-1].labels
        if token.text in labels:
            raise self.error(token.line, f"label {token.text!r} is defined twice")
        labels[token.text] = len(self.instructions)

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
        if opcode.kind != "name":
            raise self.error(opcode.line, f"{opcode.text!r} is not an opcode")
        operands: list[Operand] = []
        if not self.accept(";"):
            operands.append(self.operand())
            while self.accept(","):
                operands.append(self.operand())
            self.expect(";")
        text = " ".join(self.ptx[start.start : self.tokens[self.at - 1].end].split())
        if opcode.text.split(".")[0] == "bra" and operands and isinstance(operands[-1], Symbol):
            self.scopes[-1].fixups.append((len(self.instructions), operands[-1].name, start.line))
        self.instructions.append(
            Instruction(opcode.text, tuple(operands), guard, start.line, text, source=self.location)
        )


def parse(ptx: str) -> Program:
    """Parse the text of one kernel. Raises EmulatorError that names the line for anything not understood."""
    return _Parser(ptx).parse()
