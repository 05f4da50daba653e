"""The PTX text as statements that can be replaced one line at a time: what the operators look at."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from mqa_ref.emulator import Program, parse
from mqa_ref.emulator.ptx import Instruction

_REGISTER = re.compile(r"%[a-z]+\d+\b")
_NEAR = 8


@dataclass(frozen=True)
class Statement:
    """One instruction that has its line to itself. ``guard``: "@%p1 " or "". ``operands``: as written."""

    line: int
    guard: str
    opcode: str
    operands: tuple[str, ...]
    source: str

    @property
    def base(self) -> str:
        """The opcode without modifiers."""
        return self.opcode.split(".")[0]

    @property
    def text(self) -> str:
        """The statement, in one form whatever the spaces were."""
        told = f"{self.guard}{self.opcode} {', '.join(self.operands)}".rstrip()
        return f"{told};"

    def but(
        self,
        *,
        guard: str | None = None,
        opcode: str | None = None,
        operands: Mapping[int, str] | None = None,
    ) -> str:
        """The text with another guard or opcode, or with some operands replaced."""
        changed = list(self.operands)
        for index, operand in (operands or {}).items():
            changed[index] = operand
        other = Statement(
            self.line,
            self.guard if guard is None else guard,
            opcode or self.opcode,
            tuple(changed),
            self.source,
        )
        return other.text


@dataclass(frozen=True)
class Listing:
    """A PTX text and its statements, in order."""

    ptx: str
    program: Program
    statements: tuple[Statement, ...]

    @cached_property
    def _definitions(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for index, one in enumerate(self.statements):
            if one.operands and one.base not in ("st", "bra", "cp", "prefetch"):
                for name in _REGISTER.findall(one.operands[0]):
                    found.setdefault(name, []).append(index)
        return found

    def definition(self, name: str, before: int) -> int | None:
        """The index of the last statement before index ``before`` that gives register ``name``, None without one."""
        return max((one for one in self._definitions.get(name, ()) if one < before), default=None)

    def near(self, index: int) -> str:
        """The statements around one, which has "> " before it; for ledgers."""
        places = range(max(0, index - _NEAR), min(len(self.statements), index + _NEAR + 1))
        return "\n".join(("> " if at == index else "") + self.statements[at].text for at in places)


def read(ptx: str) -> Listing:
    """The statements of a kernel; those that share a line with others are left out. Raises EmulatorError as ``parse``
    does."""
    program = parse(ptx)
    crowded: dict[int, int] = {}
    for instruction in program.instructions:
        crowded[instruction.line] = crowded.get(instruction.line, 0) + 1
    lines = ptx.split("\n")
    alone = (
        _statement(program, one)
        for one in program.instructions
        if crowded[one.line] == 1
        and not any(mark in lines[one.line - 1].split("//")[0] for mark in (".reg", ":\t"))
    )
    return Listing(ptx, program, tuple(alone))


def replaced(ptx: str, edits: Mapping[int, str]) -> str:
    """The text with some lines (1-based) replaced; the number of lines stays."""
    lines = ptx.split("\n")
    for line, text in edits.items():
        lines[line - 1] = f"\t{text}"
    return "\n".join(lines)


def _statement(program: Program, instruction: Instruction) -> Statement:
    text = instruction.text.rstrip(";").strip()
    guard = ""
    if text.startswith("@"):
        guard, text = text.split(None, 1)
        guard += " "
    _, _, rest = text.partition(" ")
    operands = _operands(rest.strip())
    return Statement(
        instruction.line, guard, instruction.opcode, operands, program.source_of(instruction) or ""
    )


def _operands(text: str) -> tuple[str, ...]:
    """Cut at the commas that are in no bracket."""
    parts, depth, start = [], 0, 0
    for index, letter in enumerate(text):
        depth += (letter in "{[") - (letter in "}]")
        if letter == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    tail = text[start:].strip()
    return (*parts, tail) if tail else tuple(parts)
