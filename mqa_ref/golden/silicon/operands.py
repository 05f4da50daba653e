"""The operands that were given to real hardware, made again from labels: recordings hold results only.

Each operation gets random bits, special values crossed with each other, sums that nearly cancel, and ties.
Everything comes from raw Philox words by integer arithmetic, so the operands are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.verification.words import words

RANDOM = 131_072
NEAR = 73_728
F32_SPECIALS = (
    *(
        0x00000000,
        0x00000001,
        0x00000002,
        0x007FFFFF,
        0x00800000,
        0x00800001,
        0x00FFFFFF,
        0x33000000,
        0x33800000,
    ),
    *(
        0x38800000,
        0x387FC000,
        0x3F000000,
        0x3F7FFFFF,
        0x3F800000,
        0x3F800001,
        0x3FC00000,
        0x40490FDB,
        0x477FE000,
    ),
    *(
        0x477FEFFF,
        0x477FF000,
        0x477FF001,
        0x4B800000,
        0x4B000001,
        0x7F000000,
        0x7F7FFFFF,
        0x7F800000,
        0x7F800001,
    ),
    *(0x7FBFFFFF, 0x7FC00000, 0x7FFFFFFF, 0x437FFFFE, 0x2D800001),
)
F16_SPECIALS = (
    *(
        0x0000,
        0x0001,
        0x0002,
        0x01FF,
        0x03FF,
        0x0400,
        0x0401,
        0x07FF,
        0x1400,
        0x3400,
        0x37FF,
        0x3800,
        0x3BFF,
        0x3C00,
    ),
    *(
        0x3C01,
        0x3E00,
        0x4248,
        0x4C02,
        0x6400,
        0x6401,
        0x7800,
        0x7BFF,
        0x7C00,
        0x7C01,
        0x7DFF,
        0x7E00,
        0x7FFF,
        0x3D35,
    ),
)


@dataclass(frozen=True)
class Operation:
    """One PTX instruction: its operands' and result's bits, and how many operands it takes."""

    ptx: str
    arity: int
    source_bits: int
    result_bits: int


OPERATIONS: dict[str, Operation] = {
    "fma_f32": Operation("fma.rn.f32", 3, 32, 32),
    "add_f32": Operation("add.rn.f32", 2, 32, 32),
    "mul_f32": Operation("mul.rn.f32", 2, 32, 32),
    "max_f32": Operation("max.f32", 2, 32, 32),
    "abs_f32": Operation("abs.f32", 1, 32, 32),
    "fma_f16": Operation("fma.rn.f16", 3, 16, 16),
    "add_f16": Operation("add.rn.f16", 2, 16, 16),
    "mul_f16": Operation("mul.rn.f16", 2, 16, 16),
    "max_f16": Operation("max.f16", 2, 16, 16),
    "cvt_f16_f32": Operation("cvt.rn.f16.f32", 1, 32, 16),
    "cvt_bf16_f32": Operation("cvt.rn.bf16.f32", 1, 32, 16),
    "cvt_f32_f16": Operation("cvt.f32.f16", 1, 16, 32),
}


def operand_sets(name: str) -> tuple[NDArray[Any], ...]:
    """The operands of one operation, one array [count] for each: at least 200,000 sets; for one fp16 operand
    all 65,536.
    """
    operation = OPERATIONS[name]
    kind = np.uint32 if operation.source_bits == 32 else np.uint16
    if operation.arity == 1 and operation.source_bits == 16:
        return (np.arange(65_536, dtype=np.uint32).astype(kind),)
    parts = [_random(name, operation.arity, kind), _crossed(operation), _near(name, operation.arity, kind)]
    if operation.arity == 1:
        parts.append(_ties(name))
    return tuple(np.concatenate([part[place] for part in parts]) for place in range(operation.arity))


def _random(name: str, arity: int, kind: type[Any]) -> list[NDArray[Any]]:
    return [
        (words(f"silicon/{name}/random/{place}", RANDOM) >> np.uint64(20)).astype(kind)
        for place in range(arity)
    ]


def _crossed(operation: Operation) -> list[NDArray[Any]]:
    """Every combination of the special values of both signs; for one operand the specials themselves."""
    kind = np.uint32 if operation.source_bits == 32 else np.uint16
    sign = 1 << (operation.source_bits - 1)
    values: Sequence[int] = F32_SPECIALS if operation.source_bits == 32 else F16_SPECIALS
    both = [*values, *(value | sign for value in values)]
    table = np.array(list(product(both, repeat=min(operation.arity, 2))), np.uint32).astype(kind)
    columns = [table[:, place] for place in range(table.shape[1])]
    if operation.arity < 3:
        return columns
    thirds = np.array(both, np.uint32).astype(kind)
    return [np.repeat(column, len(thirds)) for column in columns] + [np.tile(thirds, len(table))]


def _near(name: str, arity: int, kind: type[Any]) -> list[NDArray[Any]]:
    """Operands of like exponents, so that sums cancel and products meet the addend: the exponent field is
    drawn from a few values around the bias, and the last operand's around twice that.
    """
    bits, fraction, bias = (32, 23, 127) if kind is np.uint32 else (16, 10, 15)
    arrays = []
    for place in range(arity):
        drawn = words(f"silicon/{name}/near/{place}", NEAR)
        mantissa = drawn & np.uint64((1 << fraction) - 1)
        mantissa &= ~((drawn >> np.uint64(40)) & np.uint64((1 << fraction) - 1)) | np.uint64(1)
        exponent = np.uint64(bias - 3) + (drawn >> np.uint64(33)) % np.uint64(6)
        sign = (drawn >> np.uint64(63)) << np.uint64(bits - 1)
        arrays.append((sign | exponent << np.uint64(fraction) | mantissa).astype(kind))
    return arrays


def _ties(name: str) -> list[NDArray[Any]]:
    """fp32 values on or one last place beside the middle of two fp16 or bf16 neighbours, subnormal results
    among them.
    """
    drawn = words(f"silicon/{name}/ties", NEAR).astype(np.uint64)
    kept = 13 if name == "cvt_f16_f32" else 16
    value = (drawn >> np.uint64(32)).astype(np.uint32)
    exponent = np.uint32(100) + (value >> np.uint32(3)) % np.uint32(46)
    body = value & np.uint32(0x007FFFFF) & ~np.uint32((1 << kept) - 1)
    tail = np.uint32(1 << (kept - 1)) + (drawn & np.uint64(3)).astype(np.uint32) - np.uint32(1)
    sign = (drawn >> np.uint64(8) & np.uint64(1)).astype(np.uint32) << np.uint32(31)
    return [sign | exponent << np.uint32(23) | body | tail]
