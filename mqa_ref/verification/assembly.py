"""What the assembler made of a kernel's arithmetic: did every sum, product and fused multiply-add of the PTX become one
of the same kind in machine code?

A contraction takes a product and a sum away and adds a fused multiply-add, a split does the reverse; either changes
bits, and no emulation of the PTX would show it. Two comparisons, since each sees what the other cannot: with the PTX,
where anything fused, split, repeated or left out shows; and with the same PTX assembled under orders to fuse nothing,
where only a fusion does, which tells it from the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from mqa_ref.emulator import Program, parse
from mqa_ref.errors import NotAvailable
from mqa_ref.kernel.compile import CompiledKernel
from mqa_ref.kernel.sass import ARITHMETIC, arithmetic, assemble_apart

_NAMES = {
    "fma": ("FFMA", "FFMA2", "HFMA2"),
    "mul": ("FMUL", "FMUL2", "HMUL2"),
    "add": ("FADD", "FADD2", "HADD2"),
}
_NAMES["sub"] = _NAMES["add"]
_FORMATS = {"f32": 0, "f32x2": 1, "f16": 2, "f16x2": 2, "bf16": 2, "bf16x2": 2}


@dataclass(frozen=True)
class Row:
    """One opcode of machine code: how often the PTX asks for it, how often it is there, how often when nothing may be
    fused (None where that could not be made)."""

    opcode: str
    ptx: int
    sass: int
    apart: int | None

    @property
    def verdict(self) -> str:
        """ "same", "fused" where the assembler's freedom to fuse makes the difference, else "unexplained"."""
        if self.apart is not None and self.sass != self.apart:
            return "fused"
        return "same" if self.sass == self.ptx else "unexplained"


@dataclass(frozen=True)
class Assembly:
    """The rows of all opcodes that occur, and why nothing could be assembled apart, empty when it could."""

    rows: tuple[Row, ...]
    missing: str = ""

    @property
    def good(self) -> bool:
        """Whether every row is as the PTX says."""
        return all(row.verdict == "same" for row in self.rows)


def asked(program: Program) -> Mapping[str, int]:
    """How many of each of ARITHMETIC a program asks for, an instruction for each of its own."""
    found: Counter[str] = Counter(dict.fromkeys(ARITHMETIC, 0))
    for instruction in program.instructions:
        base, *modifiers = instruction.opcode.split(".")
        if base in _NAMES and modifiers and modifiers[-1] in _FORMATS:
            found[_NAMES[base][_FORMATS[modifiers[-1]]]] += 1
    return found


def check_assembly(kernel: CompiledKernel) -> Assembly:
    """Hold a kernel's cubin against its PTX. Raises NotAvailable without nvdisasm; without ptxas only the comparison
    with the PTX is made."""
    return check_texts(kernel.ptx, arithmetic(kernel.cubin))


def check_texts(ptx: str, sass: Mapping[str, int]) -> Assembly:
    """The same for PTX text and counts of machine code, as ``mqa_ref.kernel.sass.arithmetic`` gives them."""
    wanted, missing = asked(parse(ptx)), ""
    apart: Mapping[str, int] | None = None
    try:
        apart = arithmetic(assemble_apart(ptx))
    except NotAvailable as error:
        missing = str(error)
    rows = (
        Row(opcode, wanted[opcode], sass[opcode], None if apart is None else apart[opcode])
        for opcode in ARITHMETIC
    )
    return Assembly(tuple(row for row in rows if row.ptx or row.sass or row.apart), missing)
