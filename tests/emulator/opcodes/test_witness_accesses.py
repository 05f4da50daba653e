"""Every load and store of every type and space, executed, against plain bytes of Python."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from mqa_ref import emulator
from mqa_ref.golden.silicon.bodies_accesses import LOADS, PARAMETER, SLOT, STORES, THREADS, TYPES
from mqa_ref.golden.silicon.programs import PROGRAMS, Program, output_bytes
from mqa_ref.verification.words import words

PROGRAMS_OF_ACCESSES = [program for program in PROGRAMS if program.name.startswith("accesses-")]
NAMES = frozenset(
    f"{stem}{f'.v{count}' if count > 1 else ''}.{kind}" for count, kind in TYPES for stem in (*LOADS, *STORES)
)
PER_THREAD = 64


def loaded(data: bytes, count: int, kind: str) -> list[int]:
    """What the registers hold: bytes lie in 16 bits, and are extended by the sign of their type."""
    size = int(kind[1:]) // 8
    width = max(16, 8 * size)
    parts = [data[at : at + size] for at in range(0, count * size, size)]
    return [int.from_bytes(part, "little", signed=kind[0] == "s") & (1 << width) - 1 for part in parts]


def expected(program: Program, data: bytes, types: tuple[tuple[int, str], ...]) -> bytes:
    out = bytearray(output_bytes(program))
    for thread in range(THREADS):
        own = data[thread * PER_THREAD : (thread + 1) * PER_THREAD]
        at = thread * program.slot
        for count, kind in types:
            for stem in LOADS:
                registers = loaded((PARAMETER if stem == "ld.param" else own)[16:], count, kind)
                total = 0
                for register in registers:
                    total = (total * 31 + register) & (1 << 64) - 1
                out[at : at + 8] = struct.pack("<Q", total)
                at += 8
            for _ in STORES:  # of what ld.param brought
                size = count * int(kind[1:]) // 8
                out[at : at + size] = PARAMETER[16 : 16 + size]
                at += 16
    return bytes(out)


@pytest.mark.parametrize("program", PROGRAMS_OF_ACCESSES, ids=lambda program: program.name)
def test_accesses(program: Program) -> None:
    data = words(f"silicon/program/{program.name}", program.words).tobytes()
    memory = emulator.GlobalMemory()
    source = memory.add("in", np.frombuffer(data, np.uint8).copy(), writable=False)
    out = np.zeros(output_bytes(program), np.uint8)
    target = memory.add("out", out, writable=True)
    parameters = struct.pack("<QQ", source.address, target.address) + bytes(48) + program.parameter
    call = emulator.LaunchCall((1, 1, 1), (THREADS, 1, 1), program.shared, parameters)
    outcome = emulator.run_grid(emulator.decode(emulator.parse(program.ptx)), call, memory, budget=100_000)
    assert outcome.findings == ()
    first = 10 * PROGRAMS_OF_ACCESSES.index(program)
    types = TYPES[first : first + program.slot // SLOT]
    assert out.tobytes() == expected(program, data, types)


def test_the_programs_have_all_of_them() -> None:
    spelled = {
        instruction.opcode
        for program in PROGRAMS_OF_ACCESSES
        for instruction in emulator.parse(program.ptx).instructions
    }
    assert spelled >= NAMES
    assert len(NAMES) == len(TYPES) * (len(LOADS) + len(STORES))
