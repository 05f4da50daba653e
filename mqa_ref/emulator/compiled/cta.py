"""A CTA whose warps run machine code wherever a program allows it, with the interpreter's operations between.

Each instruction is executed either by ``loop`` or by the interpreter's operation, one after the other, so quanta,
interleavings, instruction counts and findings are those of the interpreter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.emulator.clocks import MAX_AGENTS, NoShadow, Shadow, Where
from mqa_ref.emulator.compiled import loop, multiply
from mqa_ref.emulator.compiled.layout import RegisterFiles
from mqa_ref.emulator.compiled.shadows import FastShadow, address_of
from mqa_ref.emulator.compiled.table import table_of
from mqa_ref.emulator.compiled.tiles import move_tile
from mqa_ref.emulator.compiled.warp import FlatWarp, Place
from mqa_ref.emulator.copies import TileLoad
from mqa_ref.emulator.cta import Cta
from mqa_ref.emulator.descriptors import MatrixDescriptor, MmaShape
from mqa_ref.emulator.tmem import COLUMNS, LANE_COUNT
from mqa_ref.emulator.warp import BLOCKED, EXITED, JUMPED, LANES, Warp
from mqa_ref.numerics.machines import STEP_K

if TYPE_CHECKING:
    from mqa_ref.emulator.machine import Grid
    from mqa_ref.emulator.policy import Policy


class Workshop:
    """What the CTAs of one grid share: the table and the register files. ``placed``: the special registers that differ
    from CTA to CTA, and where they are kept."""

    def __init__(self, grid: Grid) -> None:
        self.table = table_of(grid.code)
        block = grid.block[0] * grid.block[1] * grid.block[2]
        self.files = RegisterFiles(self.table.layout, block // LANES, grid.parameters)
        self.placed: list[tuple[str, int]] = []
        for name, slot in grid.code.specials.items():
            if name.startswith("%ctaid"):
                self.placed.append((name, slot))
                continue
            for warp, registers in enumerate(self.files.registers):
                registers[slot] = grid.special(name, (0, 0, 0), warp)
        files = zip(self.files.registers, self.files.memory, self.files.states, strict=True)
        self.warps = [Place(*one, self.table) for one in files]
        self.clocks = np.zeros((len(self.warps), MAX_AGENTS), np.int32)
        self.run = loop.entry_point()
        self.places: dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
        self.addresses: dict[int, int] = {}
        self.shadows: dict[str, FastShadow] = {}

    def shadow(self, memory: str, granules: int, readers: int) -> FastShadow:
        """The shadow of a memory, knowing nothing; all CTAs of a grid have memories of one size."""
        if memory not in self.shadows:
            self.shadows[memory] = FastShadow(granules, readers)
        self.shadows[memory].clear()
        return self.shadows[memory]

    def clear(self, grid: Grid, index: tuple[int, int, int]) -> None:
        """Make the registers and clocks those of the CTA at ``index``."""
        self.files.reset()
        self.clocks[:] = 0
        for name, slot in self.placed:
            value = grid.special(name, index, 0)
            start = self.table.layout.offsets[slot]
            self.files.memory[:, start : start + value.nbytes] = value.view(np.uint8)


class CompiledCta(Cta):
    """Runs one CTA of a grid."""

    def __init__(
        self,
        grid: Grid,
        index: tuple[int, int, int],
        number: int,
        policy: Policy,
        budget: int,
        workshop: Workshop,
    ) -> None:
        self.workshop = workshop
        self.operations = grid.code.operations
        workshop.clear(grid, index)
        super().__init__(grid, index, number, policy, budget)
        self.shared_address, self.tmem_address = address_of(self.shared.data), address_of(self.tmem.data)

    def make_shadow(self, memory: str, granules: int, readers: int) -> Shadow:
        """See ``Cta.make_shadow``."""
        return self.workshop.shadow(memory, granules, readers) if self.grid.sanitize else NoShadow()

    def complete_tile(self, load: TileLoad) -> None:
        """See ``copies.complete_tile_load``."""
        if not move_tile(self, load):
            super().complete_tile(load)

    def operand_place(
        self, descriptor: MatrixDescriptor, rows: int, width: int
    ) -> tuple[NDArray[np.int64], Where] | None:
        """See ``Access.operand_place``; granules that follow each other are a slice."""
        place = super().operand_place(descriptor, rows, width)
        if place is None:
            return None
        granules = place[1]
        if isinstance(granules, slice):
            return place
        first, last = int(granules[0]), int(granules[-1])
        return place[0], slice(first, last + 1) if last - first + 1 == len(granules) else granules

    def multiply(
        self, places: list[NDArray[np.int64]], start: int, shape: MmaShape, *, accumulate: bool
    ) -> list[NDArray[np.uint8]]:
        """See ``Cta.multiply``; the operands are not gathered."""
        acc: Any = shape.accumulator
        fraction_bits = multiply.served(self.machine, acc, shape.n)
        a, b = places
        if fraction_bits is None or a.shape != (LANE_COUNT, STEP_K) or b.shape != (shape.n, STEP_K):
            return super().multiply(places, start, shape, accumulate=accumulate)
        where = (self.shared_address, self._address(a), self._address(b), self.tmem_address + 4 * start)
        multiply.step(where, (COLUMNS, LANE_COUNT, shape.n), fraction_bits, acc, accumulate=accumulate)
        return []

    def _address(self, offsets: NDArray[np.int64]) -> int:
        """Where offsets lie; their array is kept, for the same ones come again and again."""
        known = self.workshop.places.get(id(offsets))
        if known is None:
            known = self.workshop.places[id(offsets)] = (offsets, np.ascontiguousarray(offsets))
            self.workshop.addresses[id(offsets)] = address_of(known[1])
        return self.workshop.addresses[id(offsets)]

    def make_warp(self, number: int) -> Warp:
        """See ``Cta.make_warp``."""
        return FlatWarp(self, number, self.workshop.warps[number], self.workshop.clocks[number])

    def run_warp(self, warp: Warp, quantum: int) -> None:
        """See ``Cta.run_warp``."""
        assert isinstance(warp, FlatWarp)
        table, run, operations = self.workshop.table, self.workshop.run, self.operations
        entered, quick = table.entered, table.quick
        frame, address = warp.frame_words, warp.frame_address
        executed = 0
        while executed < quantum:
            pc = warp.pc
            signal: int | None
            if entered[pc]:
                warp.enter(quantum - executed)
                executed += run(address)
                warp.left()
                why = frame[loop.STATUS]
                if why == loop.STOPPED:
                    if warp.apart():
                        warp.reconverge()
                        if warp.waiting is not None:
                            break
                    continue
                pc = warp.pc
                short = quick[pc]
                signal = (
                    short(warp, why) if short is not None and why != loop.UNKNOWN else operations[pc](warp)
                )
            else:
                signal = operations[pc](warp)
            executed += 1
            if signal is None:
                warp.pc += 1
            elif signal == EXITED:
                warp.leave()
                if warp.done or warp.waiting is not None:
                    break
            elif signal == BLOCKED:
                if not warp.others:
                    break
            else:
                assert signal == JUMPED
            if warp.waiting is not None or warp.apart():
                if warp.others:
                    warp.reconverge()
                if warp.waiting is not None:
                    break
        warp.instructions += executed
        self.instructions += executed
