"""Unqualified multiplications whose product goes into an unqualified addition: the assembler may make one fma
of them.

PTX ISA, "mul" and "add": without a rounding modifier such a pair may be contracted; with .rn on either it may not.
What ptxas 13.5 did at its default -O3 with pairs written for the purpose (sm_90a and sm_100a; standing: observed):

* contracted: a product that only additions read, one or several of them, also through copies and negations;
* kept apart: a product that anything else reads too (a store, a shuffle, an fma, an abs), that one addition reads
  twice, or whose register several instructions write; packed products that are taken apart again.

In the first case the PTX does not say which bits the hardware gives, so an emulation of it proves nothing: an
error. So is such a pair in two basic blocks, which was kept apart where a branch remained. The second case is worth
knowing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from mqa_ref.emulator.ptx import Addr, Instruction, Operand, Pair, Program, Reg, Vec

_TYPES = ("f32", "f32x2", "f16", "f16x2", "bf16", "bf16x2", "f64")
_PRODUCTS = {f"mul.{kind}": kind for kind in _TYPES}
_SUMS = {f"{name}.{kind}": kind for name in ("add", "sub") for kind in _TYPES}
_COPIES = (
    "mov.b32",
    "mov.f32",
    "mov.u32",
    "mov.s32",
    "mov.b16",
    "mov.b64",
    "mov.f64",
    "neg.f32",
    "neg.f16",
    "neg.f16x2",
)
_ALSO_READ = ("wgmma.mma_async.",)


@dataclass(frozen=True)
class ExposedPair:
    """A product and the addition that reads it; ``certain`` when nothing but additions reads the product."""

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


def has_result(instruction: Instruction) -> bool:
    """Is the first operand a destination? From the opcode table; yes for an opcode that is not there."""
    from mqa_ref.emulator import opcodes
    from mqa_ref.emulator.opcodes.table import TABLE

    opcodes.load()
    row = TABLE.get(instruction.opcode)
    return row is None or row.result != ""


def writes(instruction: Instruction) -> Iterable[int]:
    """Indices of the registers an instruction writes."""
    return registers(instruction.operands[0]) if instruction.operands and has_result(instruction) else ()


def reads(instruction: Instruction) -> Iterable[int]:
    """Indices of the registers an instruction reads; an accumulator is read and written."""
    first = 1 if has_result(instruction) else 0
    for operand in instruction.operands[first:]:
        yield from registers(operand)
    if first and instruction.opcode.startswith(_ALSO_READ):
        yield from registers(instruction.operands[0])
    if instruction.guard is not None:
        yield instruction.guard.index


@lru_cache(maxsize=32)
def exposed_pairs(program: Program) -> tuple[ExposedPair, ...]:
    """All such pairs of a program, in its order."""
    readers: dict[int, list[Instruction]] = defaultdict(list)
    written: Counter[int] = Counter()
    for instruction in program.instructions:
        for index in reads(instruction):
            readers[index].append(instruction)
        written.update(writes(instruction))

    def uses(index: int, seen: frozenset[int]) -> Iterator[Instruction]:
        """What reads a value, copies and negations of it included; a copy that is one of several values is a use."""
        for reader in readers[index]:
            target = next(iter(writes(reader)), -1) if reader.opcode in _COPIES else -1
            plain = (
                target >= 0 and isinstance(reader.operands[0], Reg) and isinstance(reader.operands[1], Reg)
            )
            if plain and written[target] == 1 and target not in seen:
                yield from uses(target, seen | {target})
            else:
                yield reader

    pairs = []
    for product in program.instructions:
        kind = _PRODUCTS.get(product.opcode)
        if kind is None:
            continue
        (index,) = registers(product.operands[0])
        found = list(uses(index, frozenset({index})))
        totals = [reader for reader in found if _SUMS.get(reader.opcode) == kind]
        twice = len({id(total) for total in totals}) < len(totals)
        certain = len(totals) == len(found) and not twice and written[index] == 1
        for total in {id(total): total for total in totals}.values():
            pairs.append(ExposedPair(product, total, certain))
    return tuple(pairs)


_MACHINE = {"mul": "FMUL", "add": "FADD", "sub": "FADD", "fma": "FFMA"}


def expected_counts(program: Program) -> dict[str, int]:
    """How many FFMA, FMUL and FADD (and FFMA2, FMUL2, FADD2 of f32x2) a program must become in SASS, each instruction
    once, with the pairs that are certain contracted. An assembler that removes or repeats code gives other numbers.
    """
    counts: Counter[str] = Counter(
        {name + size: 0 for name in ("FFMA", "FMUL", "FADD") for size in ("", "2")}
    )
    for instruction in program.instructions:
        base, *modifiers = instruction.opcode.split(".")
        if base in _MACHINE and modifiers[-1] in ("f32", "f32x2"):
            counts[_MACHINE[base] + ("2" if modifiers[-1] == "f32x2" else "")] += 1
    fused: set[int] = set()
    left: dict[int, tuple[str, int]] = {}
    for pair in exposed_pairs(program):
        kind = _PRODUCTS[pair.product.opcode]
        if not pair.certain or kind not in ("f32", "f32x2"):
            continue
        size = "2" if kind == "f32x2" else ""
        _, remaining = left.get(id(pair.product), (size, 0))
        if id(pair.total) in fused:  # it has taken its other operand
            remaining += 1
        else:
            fused.add(id(pair.total))
            counts["FADD" + size] -= 1
            counts["FFMA" + size] += 1
        left[id(pair.product)] = (size, remaining)
    for size, remaining in left.values():
        counts["FMUL" + size] -= remaining == 0
    return dict(counts)
