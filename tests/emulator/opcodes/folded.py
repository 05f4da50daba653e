"""What the programs of ``mqa_ref.golden.silicon.values`` leave: executed by the emulator, and as the twins say."""

from __future__ import annotations

import struct
from functools import cache

import numpy as np
from numpy.typing import NDArray

from mqa_ref import emulator
from mqa_ref.emulator.opcodes.table import TABLE, Row
from mqa_ref.golden.silicon.values import SETS, THREADS, Values, given, split
from tests.emulator.opcodes.twins import both, number, pattern, twin


def kinds(row: Row) -> list[str]:
    """The types of the operands."""
    return [kind.removesuffix(" or {parts}") for kind in row.sources if kind != "constant"]


def width(kind: str) -> int:
    """Bits of a type."""
    return {"pred": 1, "f16x2": 32, "f32x2": 64}.get(kind) or int(kind[1:])


def operands(name: str, row: Row, set_of_three: NDArray[np.uint64]) -> list[int]:
    """What the program's own lines make of three words; see ``values``."""
    words = [*map(int, set_of_three), int(set_of_three[2]) >> 32]
    found = []
    for place, kind in enumerate(kinds(row)):
        value = pattern(words[place], width(kind))
        if name == "fns.b32" and place:
            value = value & 31 if place == 1 else pattern(number(value, "s32") >> 27, 32)
        if name.split(".")[0] in ("bfe", "bfi") and kind == "u32":
            value &= 255
        if name.split(".")[0] in ("div", "rem") and place == 1:
            value = value or 1
        found.append(value)
    return found


def folded(key: str) -> list[int]:
    """The word of each thread for an instruction, under the name that it has in the recording."""
    name, wide = key.removesuffix(" wide"), key.endswith(" wide")
    row, function = TABLE[name], twin(name)
    pair = both(name) if row.base == "setp" and not name.endswith(".f16") else None
    words = []
    for thread in given():
        total = 0
        for each in thread:
            arguments = operands(name, row, each)
            if pair is not None:
                first, second = pair(*arguments)
                result = first + 2 * second
            else:
                result = function(*arguments)
                if row.base == "cvt" and row.result[0] in "su":
                    # An 8-bit result lies in 32 bits, with the sign of its type; a wide one in 64.
                    register = 64 if wide else max(width(row.result), 32 if row.result[1:] == "8" else 16)
                    result = pattern(number(result, row.result), register)
            total = (total * 31 + result) & (1 << 64) - 1
        words.append(total)
    return words


@cache
def executed(program: Values) -> dict[str, NDArray[np.uint64]]:
    """The words of each instruction of a program, run by the emulator without a finding."""
    memory = emulator.GlobalMemory()
    source = memory.add("in", given().view(np.uint8).reshape(-1).copy(), writable=False)
    out = np.zeros(THREADS * program.slot, np.uint8)
    target = memory.add("out", out, writable=True)
    parameters = struct.pack("<QQ", source.address, target.address)
    call = emulator.LaunchCall((1, 1, 1), (THREADS, 1, 1), 0, parameters)
    outcome = emulator.run_grid(
        emulator.decode(emulator.parse(program.ptx)), call, memory, budget=SETS * 100_000
    )
    assert outcome.findings == ()
    return split(program, out.view(np.uint64))
