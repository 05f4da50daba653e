"""The emulator as a device to calibrate, with any machine model: what finds the model of real hardware must find this
one."""

from __future__ import annotations

import struct
from functools import lru_cache

import numpy as np

from mqa_ref import emulator
from mqa_ref.calibrate.programs import PROGRAMS, THREADS
from mqa_ref.calibrate.tiles import Device, Tiles, Words, images, results
from mqa_ref.errors import EmulatorError
from mqa_ref.numerics import MachineModel

_BUDGET = 100_000


def emulated(program_of: str, machine: MachineModel) -> Device:
    """The device that executes the program of ``program_of`` ("sm90", "sm100") with the arithmetic of ``machine``.

    The device raises EmulatorError when the program shows a hazard.
    """

    def run(tiles: Tiles, acc: str) -> Words:
        program = PROGRAMS[program_of](acc)
        memory = emulator.GlobalMemory()
        out = np.zeros(tiles.c.size * program.word_bytes, np.uint8)
        given = [
            memory.add(name, raw.copy(), writable=False)
            for name, raw in zip("abc", images(tiles, program), strict=True)
        ]
        addresses = [one.address for one in given] + [memory.add("d", out, writable=True).address]
        call = emulator.LaunchCall(
            (len(tiles.a), 1, 1), (THREADS, 1, 1), program.shared_bytes, struct.pack("<4Q", *addresses)
        )
        outcome = emulator.run_grid(_code(program.ptx), call, memory, machine=machine, budget=_BUDGET)
        bad = [finding for finding in outcome.findings if finding.fails]
        if bad:
            raise EmulatorError(f"the calibration program shows a hazard: {bad[0]}")
        return results(out, tiles, program, acc)

    return run


@lru_cache(maxsize=4)
def _code(ptx: str) -> emulator.Code:
    return emulator.decode(emulator.parse(ptx))
