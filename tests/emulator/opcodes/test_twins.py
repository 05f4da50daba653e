"""Every instruction on numbers, executed by the emulator, against its scalar twin on special and random operands."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from mqa_ref.emulator import opcodes
from mqa_ref.emulator.opcodes.table import TABLE, Row
from mqa_ref.golden.silicon.values import SPECIALS, Values, programs
from tests.emulator.opcodes.folded import executed, folded, kinds, width
from tests.emulator.opcodes.twins import twin

opcodes.load()
PACKED = [name for name in TABLE if name.endswith(".f32x2")]
"""sm_100 alone has these, so no recorded program does."""


@pytest.mark.parametrize("program", programs(), ids=lambda program: program.keys[0])
def test_what_the_emulator_executes(program: Values) -> None:
    found = executed(program)
    assert [key for key in program.keys if found[key].tolist() != folded(key)] == []


def crossed(row: Row) -> Iterator[list[int]]:
    """Special values crossed with each other, random ones beside them."""
    draw = np.random.default_rng(len(row.name))
    for _ in range(256):
        words = draw.integers(0, 1 << 64, 4, np.uint64)
        special = np.array(SPECIALS, np.uint64)[draw.integers(0, len(SPECIALS), 4)]
        mixed = np.where(draw.random(4) < 0.8, special, words)
        yield [int(word) & ((1 << width(kind)) - 1) for word, kind in zip(mixed, kinds(row), strict=False)]


@pytest.mark.parametrize("name", PACKED)
def test_packed_operations_of_sm_100(name: str) -> None:
    row, function = TABLE[name], twin(name)
    sets = list(crossed(row))
    columns = [np.array(column, np.uint64) for column in zip(*sets, strict=True)]
    assert row.function(*columns).tolist() == [function(*each) for each in sets]
    assert len(PACKED) >= 5


def test_a_wrong_instruction_shows() -> None:
    """The words that the threads fold tell instructions apart that differ for few operands only."""
    names = ("mul.hi.s32", "mul.hi.u32", "min.s32", "min.u32", "add.s32", "add.sat.s32", "shr.s32", "shr.u32")
    assert len({tuple(folded(name)) for name in names}) == len(names)


def test_every_instruction_on_numbers_has_a_twin() -> None:
    names = [name for program in programs() for name in program.instructions]
    assert len(set(names)) > 800
    assert set(names) <= set(TABLE)
    for name in (*names, *PACKED):
        assert callable(twin(name)), name
