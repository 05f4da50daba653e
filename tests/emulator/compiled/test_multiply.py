"""The tensor-core step in machine code against ``numerics.mma``, which is held against mmasim and exact rationals
elsewhere; and the race check in machine code against the plain one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mqa_ref import numerics
from mqa_ref.emulator.clocks import GATHERED, Shadow, new_clock
from mqa_ref.emulator.compiled import multiply, native
from mqa_ref.emulator.compiled.shadows import FastShadow, address_of

pytestmark = pytest.mark.skipif(not native.available(), reason="the CPU lacks what machine code needs")

ROWS, STRIDE = 128, 512
DRAWS = ("bits", "finite", "below two", "tiny", "sparse", "with NaN")


def codes(draw: np.random.Generator, rows: int, kind: str) -> NDArray[np.uint8]:
    out = draw.integers(0, 256, (rows, 32)).astype(np.uint8)
    if kind == "below two":
        out &= 0xBF
    if kind == "tiny":
        out &= 0x9F
    if kind == "sparse":
        out[draw.random(out.shape) < 0.9] = 0
    if kind != "with NaN":
        out[out & 0x7F == 0x7F] = 0
    return out


def stepped(
    a: NDArray[np.uint8], b: NDArray[np.uint8], acc: Any, c: NDArray[Any] | None
) -> NDArray[np.uint32]:
    data = np.concatenate([b.ravel(), a.ravel()])
    places = [
        np.arange(b.size, b.size + a.size, dtype=np.int64),
        np.arange(b.size, dtype=np.int64),
    ]
    tensor_memory = np.full((ROWS, STRIDE), 0xFFFFFFFF, np.uint32)
    block = tensor_memory[:, 5 : 5 + len(b)]
    if c is not None:
        block[:] = c
    multiply.step(
        (address_of(data), address_of(places[0]), address_of(places[1]), address_of(block)),
        (STRIDE, ROWS, len(b)),
        25,
        acc,
        accumulate=c is not None,
    )
    assert (tensor_memory[:, :5] == 0xFFFFFFFF).all()
    assert (tensor_memory[:, 5 + len(b) :] == 0xFFFFFFFF).all()
    return block.copy()


@pytest.mark.parametrize("acc", ["fp32", "fp16"])
@pytest.mark.parametrize("kind", DRAWS)
def test_step(kind: str, acc: Any) -> None:
    draw = np.random.default_rng(DRAWS.index(kind))
    word: Any = np.uint32 if acc == "fp32" else np.uint16
    for columns in (16, 64, 256):
        a, b = codes(draw, ROWS, kind), codes(draw, columns, kind)
        any_bits = draw.integers(0, 1 << (8 * word().itemsize), (ROWS, columns)).astype(word)
        chained = numerics.mma(a[::-1], b[::-1], machine="sm100", acc=acc)
        for c in (None, any_bits, chained):
            assert multiply.served("sm100", acc, columns) == 25
            expected = numerics.mma(a, b, machine="sm100", acc=acc, c=c)
            assert np.array_equal(stepped(a, b, acc, c), expected)


def test_a_case_on_paper() -> None:
    """448 = 1.75 * 2**8, so the largest exponent is 16 and with F = 25 the unit is 2**-9. 448 * 448 - 448 * 448 + 2**-9
    is 2**-9, and with 2**-10 it is zero.
    """
    a, b = np.zeros((ROWS, 32), np.uint8), np.zeros((16, 32), np.uint8)
    a[:, 0] = b[:, 0] = b[:, 2] = 0x7E  # 448
    a[:, 2] = 0xFE  # -448
    a[:, 1], b[:, 1] = 0x08, 0x20  # 2**-6 and 2**-3
    b[8:, 1] = 0x18  # 2**-4
    found = stepped(a, b, "fp32", None).view(np.float32)
    assert (found[:, :8] == np.float32(2**-9)).all()
    assert (found[:, 8:] == 0).all()


@pytest.mark.parametrize(
    ("machine", "acc", "columns"), [("exact", "fp32", 64), ("sm90", "fp32", 64), ("sm100", "fp32", 8)]
)
def test_other_machines_are_left_to_numerics(machine: str, acc: Any, columns: int) -> None:
    assert multiply.served(machine, acc, columns) is None


def test_shadow() -> None:
    """Random accesses of three agents with clocks that know more or less of each other: the same conflicts, the same
    record, and none of either when it is made new."""
    draw = np.random.default_rng(3)
    plain, fast = Shadow(40, 4), FastShadow(40, 4)
    clocks = [new_clock() for _ in range(3)]
    conflicts = set()
    for _ in range(6000):
        agent = int(draw.integers(3))
        clock = clocks[agent]
        clock[agent] += 1
        if draw.random() < 0.6:
            np.maximum(clock, clocks[int(draw.integers(3))], out=clock)
        if draw.random() < 0.7:
            clock[GATHERED + agent] = clock[agent]
        first = int(draw.integers(38))
        where: Any = slice(first, int(draw.integers(first + 1, 41)))
        if draw.random() < 0.2:
            where = np.arange(where.start, where.stop, 2)
        kind = draw.choice(
            ["read", "write", "free", "unordered", "late", "forget", "clear"],
            p=[0.595, 0.25, 0.05, 0.04, 0.05, 0.01, 0.005],
        )
        if kind == "clear":
            plain = Shadow(40, 4)
            fast.clear()
            kind = "read"
        if kind == "forget":
            plain.forget(where)
            fast.forget(where)
            continue
        arguments: Any = {"late": (where, clock, "write-read"), "unordered": (where, clock)}
        arguments = arguments.get(kind, (where, agent, clock))
        expected, found = getattr(plain, kind)(*arguments), getattr(fast, kind)(*arguments)
        assert found == expected
        conflicts.add(None if expected is None else expected.kind)
        for name in ("writer", "write_clock", "reads"):
            assert np.array_equal(getattr(fast, name), getattr(plain, name))
    assert conflicts == {None, "uninitialised", "write-read", "write-write", "read-write", "apart"}
