"""Integer instructions against Python's own integers: all 32 lanes hold crossed special and random operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

SPECIALS = [
    0,
    1,
    2,
    31,
    32,
    33,
    63,
    64,
    0x7F,
    0x80,
    0xFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    0xFFFFFFFE,
    0x55555555,
]


def signed(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def _s(function: Callable[..., int]) -> Callable[..., int]:
    return lambda a, b: function(signed(a, 32), signed(b, 32))


CASES: dict[str, Callable[[int, int], int]] = {
    "add.s32": lambda a, b: a + b,
    "sub.s32": lambda a, b: a - b,
    "mul.lo.s32": lambda a, b: a * b,
    "min.s32": _s(min),
    "max.s32": _s(max),
    "min.u32": min,
    "max.u32": max,
    "and.b32": lambda a, b: a & b,
    "or.b32": lambda a, b: a | b,
    "xor.b32": lambda a, b: a ^ b,
    "shl.b32": lambda a, b: a << min(b, 32),
    "shr.u32": lambda a, b: a >> min(b, 32),
    "shr.b32": lambda a, b: a >> min(b, 32),
    "shr.s32": lambda a, b: signed(a, 32) >> min(b, 31),
}
COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def operands() -> list[np.ndarray[Any, np.dtype[np.uint32]]]:
    """Pairs [n, 2] in blocks of 32 lanes: specials crossed with specials, then random ones."""
    crossed = [(a, b) for a in SPECIALS for b in SPECIALS]
    random = np.random.default_rng(1).integers(0, 1 << 32, (256, 2))
    pairs = np.array(crossed + [tuple(p) for p in random.tolist()], np.uint32)
    return list(pairs.reshape(-1, 32, 2))


LOAD = "mul.wide.u32 %d1, %r60, 8;\nadd.s64 %d1, %d60, %d1;\nld.global.v2.b32 {%r1, %r2}, [%d1];\n"


@pytest.mark.parametrize("opcode", list(CASES))
def test_two_operands(bench: Any, opcode: str) -> None:
    for block in operands():
        got = bench(f"{LOAD}{opcode} %r3, %r1, %r2;\nst.global.b32 [%d62], %r3;", block).words()
        expected = [CASES[opcode](int(a), int(b)) & 0xFFFFFFFF for a, b in block]
        assert got.tolist() == expected


@pytest.mark.parametrize("name", list(COMPARISONS))
@pytest.mark.parametrize("sign", ["s", "u"])
def test_comparisons_and_select(bench: Any, name: str, sign: str) -> None:
    body = f"{LOAD}setp.{name}.{sign}32 %p1, %r1, %r2;\nselp.b32 %r3, 7, 9, %p1;\nst.global.b32 [%d62], %r3;"
    for block in operands()[:8]:
        got = bench(body, block).words()
        pairs = [
            (signed(int(a), 32), signed(int(b), 32)) if sign == "s" else (int(a), int(b)) for a, b in block
        ]
        assert got.tolist() == [7 if COMPARISONS[name](a, b) else 9 for a, b in pairs]


def test_wide_products_and_64_bit_arithmetic(bench: Any) -> None:
    body = (
        f"{LOAD}mul.wide.s32 %d2, %r1, %r2;\ncvt.s64.s32 %d3, %r1;\ncvt.u64.u32 %d4, %r2;\n"
        "mad.lo.s64 %d5, %d2, %d3, %d4;\nxor.b64 %d5, %d5, %d2;\nshl.b64 %d6, %d5, 3;\nst.global.b64 [%d62], %d6;"
    )
    mask = (1 << 64) - 1
    for block in operands():
        got = bench(body, block).words(np.uint64)
        expected = []
        for first, second in block.tolist():
            a, b = signed(first, 32), signed(second, 32)
            value = (a * b * a + second) & mask
            expected.append(((value ^ (a * b & mask)) << 3) & mask)
        assert got.tolist() == expected


def test_packing_and_unpacking(bench: Any) -> None:
    body = (
        f"{LOAD}mov.b64 %d1, {{%r1, %r2}};\nmov.b64 {{%r3, %r4}}, %d1;\nmov.b32 {{%h1, %h2}}, %r3;\n"
        "mov.b32 %r5, {%h2, %h1};\nmov.b64 %d2, {%r4, %r5};\nst.global.b64 [%d62], %d2;"
    )
    block = operands()[9]
    expected = [(int(b) | ((int(a) >> 16 | (int(a) & 0xFFFF) << 16) << 32)) for a, b in block]
    assert bench(body, block).words(np.uint64).tolist() == expected


def test_predicates(bench: Any) -> None:
    body = (
        "and.b32 %r1, %r60, 1;\nand.b32 %r2, %r60, 2;\nsetp.ne.b32 %p1, %r1, 0;\nsetp.ne.b32 %p2, %r2, 0;\n"
        "and.pred %p3, %p1, %p2;\nor.pred %p4, %p1, %p2;\nxor.pred %p5, %p1, %p2;\nnot.pred %p6, %p1;\n"
        "mov.b32 %r3, 0;\n@%p3 add.s32 %r3, %r3, 1;\n@%p4 add.s32 %r3, %r3, 2;\n@!%p5 add.s32 %r3, %r3, 4;\n"
        "@%p6 add.s32 %r3, %r3, 8;\nst.global.b32 [%d62], %r3;"
    )
    per_lane = {0: 4 + 8, 1: 2, 2: 2 + 8, 3: 1 + 2 + 4}
    assert bench(body).words().tolist() == [per_lane[lane % 4] for lane in range(32)]
