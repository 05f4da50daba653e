"""The parsed form of one PTX kernel: instructions, operands, registers, parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePosixPath


@dataclass(frozen=True, slots=True)
class Reg:
    """A register operand; ``index`` is its place in the register file, ``type`` its declared PTX type ("b32",
    "pred", ...).
    """

    index: int
    type: str
    name: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Imm:
    """A literal: an integer, or the bit pattern of a 0f/0d constant (``is_bits``)."""

    value: int
    is_bits: bool = False


@dataclass(frozen=True, slots=True)
class Special:
    """A special register such as %tid.x."""

    name: str


@dataclass(frozen=True, slots=True)
class Symbol:
    """The name of a variable, parameter or label, with a constant number of bytes added to its address."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Vec:
    """A brace-enclosed operand {a, b, ...}."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two destinations written d|p."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Addr:
    """A memory operand [base + offset] or, for tensor copies, [base, {coordinates}]."""

    base: Operand
    offset: int = 0
    coordinates: Vec | None = None


Operand = Reg | Imm | Special | Symbol | Vec | Pair | Addr


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. ``guard`` is its predicate register (``negated`` for @!p); ``target`` the index a
    branch goes to.
    """

    opcode: str
    operands: tuple[Operand, ...]
    guard: Reg | None
    line: int
    text: str
    target: int | None = None
    source: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Parameter:
    """One kernel parameter: its size and its byte offset in the parameter space."""

    name: str
    size: int
    offset: int


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the module in the global or the constant space: its bytes, and whether it may be written."""

    name: str
    data: bytes
    align: int
    writable: bool


@dataclass(frozen=True, eq=False)
class Program:
    """A parsed kernel.

    ``registers``: declared type per register index. ``shared``: statically or dynamically sized shared
    symbols and their byte offset (an extern array has the offset behind all static ones). ``required_threads`` is
    what .reqntid asks for and ``max_threads`` the bound of .maxntid, or None. ``target``: .target, such as "sm_90a".
    """

    name: str
    instructions: tuple[Instruction, ...]
    registers: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    shared: dict[str, int] = field(default_factory=dict)
    shared_static_bytes: int = 0
    required_threads: int | None = None
    files: dict[int, str] = field(default_factory=dict)
    max_threads: int | None = None
    variables: tuple[Variable, ...] = ()
    target: str = ""

    def source_of(self, instruction: Instruction) -> str | None:
        """Where the instruction comes from in the source of the kernel, as "file:line" with the file's bare name, where
        the compiler tells.
        """
        if instruction.source is None:
            return None
        number, line = instruction.source
        return f"{PurePosixPath(self.files.get(number, '?')).name}:{line}"

    @property
    def parameter_bytes(self) -> int:
        """Size of the parameter space in bytes."""
        return max((p.offset + p.size for p in self.parameters), default=0)
