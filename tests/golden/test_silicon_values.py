"""Single instructions on numbers as an H200 executed them, against the emulator and against the scalar twins."""

from __future__ import annotations

import sys
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from mqa_ref.emulator import opcodes
from mqa_ref.emulator.opcodes.recorded import takes_numbers
from mqa_ref.emulator.opcodes.table import TABLE
from mqa_ref.golden import silicon
from mqa_ref.golden.silicon.values import SETS, THREADS, Values, programs, tensors_of, words_of
from tests.emulator.opcodes.folded import executed, folded

opcodes.load()


@cache
def recorded() -> dict[str, NDArray[np.uint64]]:
    return words_of(silicon.load("values").tensors)


def test_every_instruction_is_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    keys = {key for program in programs() for key in program.keys}
    assert set(recorded()) == keys
    assert {name for name, row in TABLE.items() if takes_numbers(row)} == {key.split()[0] for key in keys}
    with capsys.disabled():
        sys.stdout.write(f"\n{len(keys)} instructions on an H200, {THREADS * SETS} sets of operands each\n")


@pytest.mark.parametrize("program", programs(), ids=lambda program: program.keys[0])
def test_the_emulator_gives_the_words_of_the_gpu(program: Values) -> None:
    found = executed(program)
    assert [key for key in program.keys if not np.array_equal(found[key], recorded()[key])] == []


@pytest.mark.slow
def test_the_scalar_twins_give_the_words_of_the_gpu() -> None:
    """CI holds the emulator against both; this closes the triangle."""
    wrong = [key for key, words in recorded().items() if words.tolist() != folded(key)]
    assert wrong == []


def test_a_word_that_differs_names_its_instruction() -> None:
    words = {name: recorded()[name].copy() for name in ("add.s32", "sub.s32", "setp.lt.and.s32")}
    words["sub.s32"][5] ^= np.uint64(1)
    again = words_of(tensors_of(words))
    assert [name for name in words if not np.array_equal(again[name], recorded()[name])] == ["sub.s32"]
