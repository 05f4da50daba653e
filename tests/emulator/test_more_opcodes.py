"""The less common opcodes against Python's integers and floats, lane by lane."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    1.5,
    2.0**-149,
    -(2.0**-149),
    3.4e38,
    -3.4e38,
    math.inf,
    -math.inf,
    math.nan,
    65504.0,
]
WORDS = [
    0,
    1,
    2,
    3,
    7,
    31,
    32,
    33,
    0x7FFFFFFF,
    0x80000000,
    0x80000001,
    0xFFFFFFFF,
    0xFFFFFFFE,
    0x12345678,
    0xA5A5C3C3,
]
LOAD = "mul.wide.u32 %d1, %r60, 8;\nadd.s64 %d1, %d60, %d1;\nld.global.v2.b32 {%r1, %r2}, [%d1];\n"


def blocks(values: list[int]) -> list[Any]:
    pairs = [(a, b) for a in values for b in values]
    pairs += [(0, 0)] * (-len(pairs) % 32)
    return list(np.array(pairs, np.uint32).reshape(-1, 32, 2))


def bits(number: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", number))[0])


def number(word: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", word))[0])


def signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def permuted(a: int, b: int, c: int) -> int:
    stored = struct.pack("<II", a, b)
    out = []
    for place in range(4):
        nibble = c >> (4 * place) & 15
        byte = stored[nibble & 7]
        out.append((255 if byte & 128 else 0) if nibble & 8 else byte)
    return int.from_bytes(bytes(out), "little")


def table(a: int, b: int, c: int, rule: int) -> int:
    return sum((rule >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i for i in range(32))


INTEGERS: dict[str, tuple[str, Callable[[int, int], int]]] = {
    "mul.hi.u32": ("%r1, %r2", lambda a, b: a * b >> 32),
    "mul.hi.s32": ("%r1, %r2", lambda a, b: signed(a) * signed(b) >> 32),
    "div.u32": ("%r1, %r2", lambda a, b: a // b if b else 0xFFFFFFFF),
    "rem.u32": ("%r1, %r2", lambda a, b: a % b if b else 0xFFFFFFFF),
    "div.s32": ("%r1, %r2", lambda a, b: truncated(signed(a), signed(b)) if b else -1),
    "rem.s32": (
        "%r1, %r2",
        lambda a, b: signed(a) - truncated(signed(a), signed(b)) * signed(b) if b else -1,
    ),
    "shf.l.wrap.b32": ("%r1, %r2, %r2", lambda a, b: ((b << 32 | a) << (b & 31)) >> 32),
    "shf.r.wrap.b32": ("%r1, %r2, %r1", lambda a, b: (b << 32 | a) >> (a & 31)),
    "prmt.b32": ("%r1, %r2, %r2", lambda a, b: permuted(a, b, b)),
    "lop3.b32": ("%r1, %r2, %r60, 0xE8", lambda a, b: -1),
    "popc.b32": ("%r1", lambda a, b: a.bit_count()),
    "cvt.rn.f32.s32": ("%r1", lambda a, b: int(np.float32(signed(a)).view(np.uint32))),
    "cvt.rn.f32.u32": ("%r1", lambda a, b: int(np.float32(a).view(np.uint32))),
}


@pytest.mark.parametrize("opcode", list(INTEGERS))
def test_integers(bench: Any, opcode: str) -> None:
    sources, rule = INTEGERS[opcode]
    for block in blocks(WORDS):
        got = bench(f"{LOAD}{opcode} %r3, {sources};\nst.global.b32 [%d62], %r3;", block).words().tolist()
        expected = [rule(int(a), int(b)) & 0xFFFFFFFF for a, b in block]
        if opcode == "lop3.b32":
            expected = [table(int(a), int(b), lane, 0xE8) for lane, (a, b) in enumerate(block)]
        assert got == expected


def ordered(name: str, a: float, b: float) -> bool:
    found = {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}
    return found[name] and not (math.isnan(a) or math.isnan(b))


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_float_comparisons(bench: Any, name: str) -> None:
    body = (
        f"{LOAD}setp.{name}.f32 %p1, %r1, %r2;\nsetp.{name}u.f32 %p2, %r1, %r2;\nselp.b32 %r3, 1, 0, %p1;\n"
    )
    body += "selp.b32 %r4, 2, 0, %p2;\nadd.s32 %r3, %r3, %r4;\nst.global.b32 [%d62], %r3;"
    for block in blocks([bits(x) for x in FLOATS]):
        got = bench(body, block).words().tolist()
        for word, (a, b) in zip(got, block.tolist(), strict=True):
            x, y = number(a), number(b)
            nan = math.isnan(x) or math.isnan(y)
            assert word == ordered(name, x, y) + 2 * (nan or ordered(name, x, y)), (x, y)


def least(x: float, y: float) -> float:
    return x if (x, math.copysign(1, x)) <= (y, math.copysign(1, y)) else y


@pytest.mark.parametrize("opcode", ["min.f32", "min.NaN.f32", "max.NaN.f32"])
def test_minimum_and_nan(bench: Any, opcode: str) -> None:
    for block in blocks([bits(x) for x in FLOATS]):
        got = bench(f"{LOAD}{opcode} %r3, %r1, %r2;\nst.global.b32 [%d62], %r3;", block).words().tolist()
        for word, (a, b) in zip(got, block.tolist(), strict=True):
            x, y = number(a), number(b)
            if math.isnan(x) or math.isnan(y):
                other = [v for v in (a, b) if not math.isnan(number(v))]
                assert word == (other[0] if other and opcode == "min.f32" else 0x7FFFFFFF)
            else:
                small = bits(least(x, y))
                large = b if small == a else a
                assert word == (small if opcode.startswith("min") else large), (x, y)


def test_nan_and_num(bench: Any) -> None:
    body = f"{LOAD}setp.nan.f32 %p1, %r1, %r2;\nsetp.num.f32 %p2, %r1, %r2;\nselp.b32 %r3, 1, 0, %p1;\n"
    body += "@%p2 add.s32 %r3, %r3, 2;\nst.global.b32 [%d62], %r3;"
    for block in blocks([bits(x) for x in FLOATS]):
        expected = [1 if math.isnan(number(a)) or math.isnan(number(b)) else 2 for a, b in block.tolist()]
        assert bench(body, block).words().tolist() == expected
