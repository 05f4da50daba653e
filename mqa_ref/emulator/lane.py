"""What one thread computed on the way to one element of its output: the executed instructions behind a store.

Two passes over the same launch: ``StoreFinder`` tells which thread stores the element, and when last; ``LaneRecorder``
then keeps what that thread executes until there. ``mqa_ref.emulator.dataflow`` makes the slice of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from mqa_ref.emulator.contraction import has_result
from mqa_ref.emulator.observe import Observer
from mqa_ref.emulator.ptx import Addr, Imm, Instruction, Operand, Pair, Reg, Vec
from mqa_ref.emulator.tmem import PARTS
from mqa_ref.emulator.warp import BLOCKED, LANES

if TYPE_CHECKING:
    from mqa_ref.emulator.products import Product
    from mqa_ref.emulator.warp import Warp


@dataclass(frozen=True)
class Store:
    """Who stores an element last: warp, lane, and which of that warp's stores to global memory it is, from 0."""

    warp: int
    lane: int
    ordinal: int


@dataclass(frozen=True)
class Executed:
    """One instruction as one thread executed it: register index -> bits, before (sources) and after (results)."""

    instruction: Instruction
    sources: dict[int, int]
    results: dict[int, int]
    loaded: tuple[Accumulated, ...] = ()


@dataclass(frozen=True)
class KStep:
    """One tensor product as seen by one accumulator: codes of both factors, bits of the accumulator after it."""

    a: tuple[int, ...]
    b: tuple[int, ...]
    bits: int
    accumulates: bool
    instruction: Instruction


@dataclass(frozen=True)
class Accumulated:
    """An accumulator that a thread loads: its column within the product (None when no product left it there), and the
    products that made it."""

    column: int | None
    steps: tuple[KStep, ...]


def registers(operand: Operand) -> list[Reg]:
    """The registers in an operand."""
    if isinstance(operand, Reg):
        return [operand]
    if isinstance(operand, Vec):
        return [one for item in operand.items for one in registers(item)]
    if isinstance(operand, Pair):
        return registers(operand.first) + registers(operand.second)
    return registers(operand.base) if isinstance(operand, Addr) else []


def split(instruction: Instruction) -> tuple[list[Operand], list[Operand]]:
    """Destinations and sources of an instruction."""
    operands = list(instruction.operands)
    if not has_result(instruction):
        return [], operands
    return operands[:1], operands[1:]


class StoreFinder(Observer):
    """Finds the last store to the ``size`` bytes at ``address`` by the CTA."""

    def __init__(self, cta: int, address: int, size: int) -> None:
        super().__init__(cta)
        self.address, self.size = address, size
        self.found: Store | None = None
        self._stores: dict[int, int] = {}

    def before(self, warp: Warp, pc: int) -> None:
        """Look at the addresses of a store."""
        instruction = warp.cta.grid.code.program.instructions[pc]
        if not instruction.opcode.startswith("st.global"):
            return
        ordinal = self._stores.get(warp.index, 0)
        self._stores[warp.index] = ordinal + 1
        lane = self._lane(warp, instruction)
        if lane is not None:
            self.found = Store(warp.index, lane, ordinal)

    def _lane(self, warp: Warp, instruction: Instruction) -> int | None:
        target, data = instruction.operands
        if not isinstance(target, Addr) or not isinstance(target.base, Reg):
            return None
        addresses = warp.regs[target.base.index]
        if addresses is None:
            return None
        count = len(data.items) if isinstance(data, Vec) else 1
        span = count * int(instruction.opcode.rsplit(".", 1)[-1][1:]) // 8
        for lane in range(LANES):
            start = int(addresses[lane]) + target.offset
            if active(warp, instruction, lane) and start <= self.address < start + span:
                return lane
        return None


class LaneRecorder(Observer):
    """Keeps everything that one thread executes until its store, and the products that reach its row of tensor
    memory."""

    def __init__(self, cta: int, store: Store) -> None:
        super().__init__(cta)
        self.store = store
        self.executed: list[Executed] = []
        self._stores = 0
        self._done = self._last = self._active = False
        self._sources: dict[int, int] = {}
        self._columns: dict[int, tuple[int, tuple[KStep, ...]]] = {}
        self._row = (store.warp % PARTS) * LANES + store.lane

    def before(self, warp: Warp, pc: int) -> None:
        """The source registers of the thread."""
        if self._done or warp.index != self.store.warp:
            return
        instruction = warp.cta.grid.code.program.instructions[pc]
        used = [reg for operand in split(instruction)[1] for reg in registers(operand)]
        self._active = active(warp, instruction, self.store.lane)
        if instruction.opcode.startswith("st.global"):
            self._last = self._stores == self.store.ordinal
            self._stores += 1
        self._sources = _values(warp, used, self.store.lane)

    def after(self, warp: Warp, pc: int, signal: int | None) -> None:
        """Its results."""
        if self._done or warp.index != self.store.warp or signal == BLOCKED or not self._active:
            return
        instruction = warp.cta.grid.code.program.instructions[pc]
        written = [reg for operand in split(instruction)[0] for reg in registers(operand)]
        loaded: tuple[Accumulated, ...] = ()
        if instruction.opcode.startswith("tcgen05.ld"):
            loaded = self._accumulators(instruction, len(written))
        results = _values(warp, written, self.store.lane)
        self.executed.append(Executed(instruction, self._sources, results, loaded))
        self._done = self._last

    def product(self, product: Product, start: int, operands: list[Any], block: NDArray[Any]) -> None:
        """The row of the thread's accumulators after one product."""
        a = tuple(operands[0][self._row].tolist())
        for column in range(block.shape[1]):
            step = KStep(
                *(a, tuple(operands[1][column].tolist()), int(block[self._row, column])),
                *(product.accumulate, product.instruction),
            )
            before = self._columns.get(start + column, (0, ()))[1] if product.accumulate else ()
            self._columns[start + column] = (column, (*before, step))

    def _accumulators(self, instruction: Instruction, count: int) -> tuple[Accumulated, ...]:
        """What the registers of a tcgen05.ld hold, in order; two to a register where it packs."""
        target = instruction.operands[1]
        assert isinstance(target, Addr)
        base = self._sources.get(target.base.index, 0) if isinstance(target.base, Reg) else 0
        base = target.base.value if isinstance(target.base, Imm) else base
        start = (base + target.offset) & 0xFFFF
        each = 2 if ".pack::16b" in instruction.opcode else 1
        found = (self._columns.get(start + number) for number in range(count * each))
        return tuple(Accumulated(None, ()) if one is None else Accumulated(*one) for one in found)


def active(warp: Warp, instruction: Instruction, lane: int) -> bool:
    """Does the lane execute the instruction?"""
    if not warp.mask[lane]:
        return False
    guard = instruction.guard
    if guard is None or instruction.opcode.startswith("bra"):
        return True
    condition = warp.regs[guard.index]
    return condition is not None and bool(condition[lane]) != guard.negated


def _values(warp: Warp, used: list[Reg], lane: int) -> dict[int, int]:
    found = {}
    for reg in used:
        array = warp.regs[reg.index]
        if array is not None:
            found[reg.index] = int(array[lane])
    return found
