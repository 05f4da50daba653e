"""A CTA whose warps run machine code wherever a program allows it, with the interpreter's operations between.

Each instruction is executed either by ``loop`` or by the interpreter's operation, one after the other, so quanta,
interleavings, instruction counts and findings are those of the interpreter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.emulator.clocks import CLOCK_WORDS, Clock, NoShadow, Shadow, Where
from mqa_ref.emulator.compiled import loop, multiply
from mqa_ref.emulator.compiled.context import SHADOW, Barriers, Context
from mqa_ref.emulator.compiled.layout import RegisterFiles
from mqa_ref.emulator.compiled.shadows import FastShadow, address_of
from mqa_ref.emulator.compiled.table import table_of
from mqa_ref.emulator.compiled.tensor_checks import checks
from mqa_ref.emulator.compiled.tiles import Plan, move_tile, plan_of
from mqa_ref.emulator.compiled.warp import FlatWarp, Place
from mqa_ref.emulator.copies import TileLoad
from mqa_ref.emulator.cta import Cta
from mqa_ref.emulator.descriptors import decode_instruction, decode_matrix
from mqa_ref.emulator.memory import Allocation
from mqa_ref.emulator.opcodes.carry import CARRY
from mqa_ref.emulator.ptx import Instruction
from mqa_ref.emulator.tensormap import TensorMap
from mqa_ref.emulator.tmem import COLUMNS, LANE_COUNT, PARTS, TensorPipe
from mqa_ref.emulator.warp import BLOCKED, EXITED, LANES, Warp
from mqa_ref.errors import EmulatorError
from mqa_ref.numerics.machines import STEP_K, Accumulator

if TYPE_CHECKING:
    from mqa_ref.emulator.machine import Grid
    from mqa_ref.emulator.policy import Policy
    from mqa_ref.emulator.products import Product
    from mqa_ref.emulator.tensor_order import TensorOrder


@dataclass(frozen=True, eq=False)
class Operands:
    """Where the operands of a product lie: arrays of the offsets of their codes, and of their granules, with the
    addresses of both; ``lists`` has address and length of each array of granules."""

    arrays: tuple[NDArray[np.int64], ...]
    addresses: tuple[int, int]
    lists: NDArray[np.int64]
    lists_address: int
    columns: int
    fraction_bits: int
    accumulator: Accumulator

    @classmethod
    def of(
        cls, offsets: Iterable[Any], granules: Iterable[Any], columns: int, bits: int, acc: Accumulator
    ) -> Operands:
        """From arrays."""
        places = [np.ascontiguousarray(one, np.int64) for one in offsets]
        lists = [np.ascontiguousarray(one, np.int64) for one in granules]
        table = np.array([(address_of(one), len(one)) for one in lists], np.int64)
        a, b = map(address_of, places)
        return cls((*places, *lists), (a, b), table, address_of(table), columns, bits, acc)


class Workshop:
    """What the CTAs of one grid share: the table and the register files. ``placed``: the special registers that are not
    the same at the start of each CTA, the carry because the last one wrote it, and where they are kept."""

    def __init__(self, grid: Grid) -> None:
        self.table = table_of(grid.code)
        block = grid.block[0] * grid.block[1] * grid.block[2]
        self.files = RegisterFiles(self.table.layout, block // LANES, grid.parameters)
        self.placed: list[tuple[str, int]] = []
        for name, slot in grid.code.specials.items():
            if name.startswith("%ctaid") or name == CARRY:
                self.placed.append((name, slot))
                continue
            for warp, registers in enumerate(self.files.registers):
                registers[slot] = grid.special(name, (0, 0, 0), warp)
        self.context = Context(
            *(grid.memory, grid.shared_bytes, block, grid.code.granule), sanitize=grid.sanitize
        )
        files = zip(self.files.registers, self.files.memory, self.files.states, strict=True)
        self.warps = [Place(*one, self.table) for one in files]
        self.clocks = np.zeros((len(self.warps), CLOCK_WORDS), np.int32)
        for number, (place, clock) in enumerate(zip(self.warps, self.clocks, strict=True)):
            place.frame[[loop.CONTEXT, loop.CLOCK, loop.INDEX]] = (
                address_of(self.context.array),
                address_of(clock),
                number,
            )
        self.zeros = {"shared": self.context.shared, "barriers": self.context.barrier_bytes}
        self.shared_address = address_of(self.context.shared)
        self.run = loop.entry_point()
        self.check = checks()["product"]
        self.plans: dict[tuple[int, int], Plan | None] = {}
        self.products: dict[tuple[int, int, int], Operands | None] = {}
        self.shadows: dict[str, FastShadow] = {}

    def plan(self, tensor: TensorMap, phase: int) -> Plan | None:
        """See ``plan_of``; each is made once. The tensor maps of a launch live as long as it."""
        key = (id(tensor), phase)
        if key not in self.plans:
            self.plans[key] = plan_of(tensor, phase)
        return self.plans[key]

    def shadow(self, memory: str, granules: int, readers: int) -> FastShadow:
        """The shadow of a memory, knowing nothing; all CTAs of a grid have memories of one size."""
        if memory not in self.shadows:
            self.shadows[memory] = FastShadow(granules, readers)
        self.shadows[memory].clear()
        if memory == "shared":
            self.context.words[SHADOW] = self.shadows[memory].address
        return self.shadows[memory]

    def clear(self, grid: Grid, index: tuple[int, int, int], number: int) -> None:
        """Make the registers and clocks those of the CTA at ``index``."""
        self.files.reset()
        self.context.clear(number)
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
        self.workshop, self.context = workshop, workshop.context
        self.operations = grid.code.operations
        workshop.clear(grid, index, number)
        super().__init__(grid, index, number, policy, budget)
        self.named.update(enumerate(self.context.named))
        self.barriers = Barriers(self.context)
        self.tmem_address = 0
        self.pipe_clocks: dict[int, int] = {}

    def zeros(self, name: str, size: int) -> NDArray[np.uint8]:  # noqa: ARG002 - as Cta has it
        """See ``Cta.zeros``; a CTA has the memories of the one before it."""
        return self.workshop.zeros[name]

    def make_shadow(self, memory: str, granules: int, readers: int) -> Shadow:
        """See ``Cta.make_shadow``."""
        return self.workshop.shadow(memory, granules, readers) if self.grid.sanitize else NoShadow()

    def record_load(
        self, found: Allocation, where: Where, agent: int, clock: Clock, warp: Warp, instruction: Instruction
    ) -> None:
        """See ``GlobalAccess.record_load``."""
        self.context.was_read(found)
        super().record_load(found, where, agent, clock, warp, instruction)

    def complete_tile(self, load: TileLoad) -> None:
        """See ``copies.complete_tile_load``."""
        if not move_tile(self, load):
            super().complete_tile(load)

    def quick_product(self, product: Product, pipe: TensorPipe, order: TensorOrder) -> bool:
        """See ``Cta.quick_product``."""
        workshop = self.workshop
        key = (product.a, product.b, product.shape)
        if key not in workshop.products:
            workshop.products[key] = self._operands(product)
        one = workshop.products[key]
        start = product.d & 0xFFFF
        if one is None or product.d >> 16 or not self.tmem.owns(start, one.columns):
            return False
        shadow, tensor, accumulate = self.shadow, self.tmem.shadow, product.accumulate
        if isinstance(shadow, FastShadow) and isinstance(tensor, FastShadow):
            clock = self.pipe_clocks.get(pipe.agent)
            if clock is None:
                clock = self.pipe_clocks[pipe.agent] = address_of(pipe.clock)
            seen = (pipe.agent, clock, address_of(order.ordered))
            size = (start, one.columns, accumulate)
            if workshop.check(shadow.address, tensor.address, one.lists_address, *seen, *size):
                return False
            tensor.touch(start, (PARTS - 1) * COLUMNS + start + one.columns)
        if not self.tmem_address:
            self.tmem_address = address_of(self.tmem.data)
        where = (workshop.shared_address, *one.addresses, self.tmem_address + 4 * start)
        sizes = (COLUMNS, LANE_COUNT, one.columns)
        multiply.step(where, sizes, one.fraction_bits, one.accumulator, accumulate=accumulate)
        return True

    def _operands(self, product: Product) -> Operands | None:
        """The operands of a product whose descriptors are in order and which ``multiply`` can compute."""
        try:
            shape = decode_instruction(product.shape)
            descriptors = (decode_matrix(bits) for bits in (product.a, product.b))
        except EmulatorError:
            return None
        places = [
            self.operand_place(descriptor, rows, STEP_K)
            for descriptor, rows in zip(descriptors, (shape.m, shape.n), strict=True)
        ]
        acc: Any = shape.accumulator
        fraction_bits = multiply.served(self.machine, acc, shape.n)
        if fraction_bits is None or shape.m != LANE_COUNT or any(place is None for place in places):
            return None
        offsets, granules = zip(*[place for place in places if place is not None], strict=True)
        return Operands.of(offsets, granules, shape.n, fraction_bits, acc)

    def make_warp(self, number: int) -> Warp:
        """See ``Cta.make_warp``."""
        return FlatWarp(self, number, self.workshop.warps[number], self.workshop.clocks[number])

    def run_warp(self, warp: Warp, quantum: int) -> None:
        """See ``Cta.run_warp``."""
        assert isinstance(warp, FlatWarp)
        table, run, operations = self.workshop.table, self.workshop.run, self.operations
        entered, quick, waits = table.entered, table.quick, table.waits
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
                if why == loop.WAITS:
                    then = waits[pc]
                    assert then is not None
                    then(warp)
                    signal = BLOCKED
                elif why == loop.LEAVES:
                    signal = EXITED
                else:
                    short = quick[pc]
                    known = why != loop.UNKNOWN
                    signal = short(warp, why) if short is not None and known else operations[pc](warp)
            else:
                signal = operations[pc](warp)
            executed += 1
            if warp.after(signal):
                break
        warp.instructions += executed
        self.instructions += executed
