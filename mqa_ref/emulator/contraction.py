"""Unqualified multiplications whose product goes into an unqualified addition: the assembler may make one fma
of them.

PTX ISA, "mul" and "add": without a rounding modifier such a pair may be contracted. Seen with ptxas at -O1
and above: a product that is read once, by the addition, is contracted; one that is read elsewhere too is not.
In the first case the PTX does not say which bits the hardware gives, so an emulation of it proves nothing: an
error. The second is worth knowing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from mqa_ref.emulator.ptx import Addr, Instruction, Operand, Pair, Program, Reg, Vec

_TYPES = ("f32", "f32x2", "f16", "f16x2", "bf16", "bf16x2", "f64")
_PRODUCTS = {f"mul.{kind}": kind for kind in _TYPES}
_SUMS = {f"{name}.{kind}": kind for name in ("add", "sub") for kind in _TYPES}
_WRITES_NOTHING = (
    "st.",
    "bra",
    "bar",
    "mbarrier.init",
    "mbarrier.inval",
    "cp.",
    "prefetch",
    "tcgen05.mma",
    "ret",
)


@dataclass(frozen=True)
class ExposedPair:
    """A product and the addition that reads it; ``certain`` when nothing else reads the product."""

    product: Instruction
    total: Instruction
    certain: bool


def registers(operand: Operand) -> Iterator[int]:
    """Indices of all registers in an operand."""
    if isinstance(operand, Reg):
        yield operand.index
    elif isinstance(operand, Vec):
        for item in operand.items:
            yield from registers(item)
    elif isinstance(operand, Pair):
        yield from registers(operand.first)
        yield from registers(operand.second)
    elif isinstance(operand, Addr):
        yield from registers(operand.base)
        if operand.coordinates is not None:
            yield from registers(operand.coordinates)


def reads(instruction: Instruction) -> Iterable[int]:
    """Indices of the registers an instruction reads; its first operand counts when the opcode has no destination."""
    first = 0 if instruction.opcode.startswith(_WRITES_NOTHING) else 1
    for operand in instruction.operands[first:]:
        yield from registers(operand)
    for operand in instruction.operands[:first]:
        if isinstance(operand, Addr):
            yield from registers(operand)
    if instruction.guard is not None:
        yield instruction.guard.index


@lru_cache(maxsize=32)
def exposed_pairs(program: Program) -> tuple[ExposedPair, ...]:
    """All such pairs of a program, in its order."""
    readers: dict[int, list[Instruction]] = defaultdict(list)
    for instruction in program.instructions:
        for index in set(reads(instruction)):
            readers[index].append(instruction)
    pairs = []
    for product in program.instructions:
        kind = _PRODUCTS.get(product.opcode)
        if kind is None:
            continue
        (index,) = registers(product.operands[0])
        pairs += [
            ExposedPair(product, reader, len(readers[index]) == 1)
            for reader in readers[index]
            if _SUMS.get(reader.opcode) == kind
        ]
    return tuple(pairs)
