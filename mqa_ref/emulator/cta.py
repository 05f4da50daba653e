"""One CTA: its warps, memories and barriers, and the loop that runs them to their end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mqa_ref import numerics
from mqa_ref.emulator.access import Access
from mqa_ref.emulator.barriers import NamedBarrier
from mqa_ref.emulator.clocks import CopySlots, NoShadow, Shadow, new_clock
from mqa_ref.emulator.descriptors import MmaShape
from mqa_ref.emulator.memory import SharedMemory
from mqa_ref.emulator.policy import Pending, Policy
from mqa_ref.emulator.ptx import Instruction
from mqa_ref.emulator.tmem import COLUMNS, PARTS, TensorMemory, TensorPipe
from mqa_ref.emulator.warp import LANES, Warp
from mqa_ref.emulator.wgmma import WarpGroup, check_exit
from mqa_ref.errors import EmulatorError

if TYPE_CHECKING:
    from mqa_ref.emulator.machine import Grid
    from mqa_ref.emulator.products import Product
    from mqa_ref.emulator.tensor_order import TensorOrder

NAMED_BARRIERS = 16


class Cta(Access):
    """Runs one CTA of a grid. ``budget`` bounds the warp instructions it may execute."""

    def __init__(
        self, grid: Grid, index: tuple[int, int, int], number: int, policy: Policy, budget: int
    ) -> None:
        self.grid, self.index, self.number, self.policy, self.budget = grid, index, number, policy, budget
        self.memory, self.log, self.machine = grid.memory, grid.log, grid.machine
        self.parameters = grid.parameters
        self.threads = grid.block[0] * grid.block[1] * grid.block[2]
        if self.threads % LANES:
            raise EmulatorError(f"a block of {self.threads} threads is not made of whole warps")
        count = self.threads // LANES
        self.shared = SharedMemory(self.zeros("shared", grid.shared_bytes))
        self.granule = grid.code.granule
        self.shadow = self.make_shadow("shared", -(-grid.shared_bytes // self.granule), 2 * count)
        self.tmem = TensorMemory(self.make_shadow("tensor", PARTS * COLUMNS, 2 * count))
        self.slots = CopySlots(2 * count)
        self.barriers = {}
        self.barrier_bytes = self.zeros("barriers", -(-grid.shared_bytes // self.granule)).view(np.bool_)
        self.lane_of = np.full(self.barrier_bytes.size, -1, np.int8)
        self.named: dict[int, NamedBarrier] = {}
        self.pipes: dict[int, TensorPipe] = {}
        self.groups: dict[int, WarpGroup] = {}
        self.pending: list[Pending] = []
        self.instructions = 0
        self.warps = [self.make_warp(w) for w in range(count)]

    def make_shadow(self, memory: str, granules: int, readers: int) -> Shadow:  # noqa: ARG002 - of use to others
        """What the sanitizer knows of a memory, "shared" or "tensor": nothing yet."""
        return Shadow(granules, readers) if self.grid.sanitize else NoShadow()

    def zeros(self, name: str, size: int) -> NDArray[np.uint8]:  # noqa: ARG002 - of use to others
        """So many bytes for a memory of this CTA."""
        return np.zeros(size, np.uint8)

    def make_warp(self, warp: int) -> Warp:
        """Warp number ``warp`` at the start of the program."""
        registers = self.grid.code.template.copy()
        for name, slot in self.grid.code.specials.items():
            registers[slot] = self.grid.special(name, self.index, warp)
        return Warp(self, warp, registers)

    # asynchronous operations

    def start_async(self, pipe: int | None, complete: Callable[[], None]) -> None:
        """Put an operation in flight; with the eager policy it completes at once."""
        if self.grid.observer is not None:
            complete = self.grid.observer.started(complete)
        if self.policy.order == "eager":
            complete()
        else:
            self.pending.append(Pending(pipe, complete))

    def _completable(self) -> list[Pending]:
        seen: set[int] = set()
        able = []
        for operation in self.pending:
            if operation.pipe is None or operation.pipe not in seen:
                able.append(operation)
            if operation.pipe is not None:
                seen.add(operation.pipe)
        return able

    def pipe(self, warp: Warp) -> TensorPipe:
        """The tensor pipe of a warp."""
        if warp.index not in self.pipes:
            self.pipes[warp.index] = TensorPipe(len(self.warps) + warp.index)
        return self.pipes[warp.index]

    def named_barrier(self, number: int, expected: int, warp: Warp, instruction: Instruction) -> NamedBarrier:
        """Barrier ``number`` of the CTA; a use with another thread count than the arrivals before it is a finding."""
        barrier = self.named.get(number)
        if barrier is None:
            barrier = self.named[number] = NamedBarrier()
        if not 0 <= number < NAMED_BARRIERS or expected % LANES or not 0 < expected <= self.threads:
            message = f"named barrier {number} for {expected} threads of a CTA of {self.threads}"
            self.report("mbarrier_misuse", message, warp, instruction)
        elif barrier.threads and barrier.expected != expected:
            message = (
                f"named barrier {number} is used for {expected} and for {barrier.expected} threads at once"
            )
            self.report("mbarrier_misuse", message, warp, instruction)
        return barrier

    def quick_product(self, product: Product, pipe: TensorPipe, order: TensorOrder) -> bool:  # noqa: ARG002
        """Do all of a product with which all is in order; False, and nothing done, where that is not known."""
        return False

    def multiply(
        self, places: list[NDArray[np.int64]], start: int, shape: MmaShape, *, accumulate: bool
    ) -> list[NDArray[np.uint8]]:
        """One step of the tensor core into the columns of tensor memory from ``start`` on; returns its operands, which
        lie at ``places`` in shared memory."""
        operands = [self.shared.data[offsets] for offsets in places]
        block = self.tmem.data[:, start : start + shape.n]
        acc = shape.accumulator
        before = block.astype(np.uint32 if acc == "fp32" else np.uint16) if accumulate else None
        block[:] = numerics.mma(*operands, machine=self.machine, acc=acc, c=before)  # type: ignore[arg-type]
        return operands

    # the loop

    def run(self) -> int:
        """Run to the end, to a hang or to the instruction budget; returns the warp instructions executed."""
        turn = 0
        while True:
            living = [w for w in self.warps if not w.done]
            if not living:
                break
            ready = [w for w in living if w.wake()]
            able = self._completable()
            if not ready and not able:
                self._hang(living)
                return self.instructions
            choice = self.policy.pick([w.index for w in ready], len(able), turn, len(self.warps))
            if choice.operation >= 0:
                self.pending.remove(able[choice.operation])
                able[choice.operation].complete()
            for number in choice.warps:
                self.run_warp(self.warps[number], choice.quantum)
            turn += 1
            if self.instructions > self.budget:
                where = ", ".join(f"warp {w.index} at PTX line {self._line(w)}" for w in living if not w.done)
                message = f"more than {self.budget} warp instructions: {where}"
                self.log.add("runaway", message, cta=self.number)
                return self.instructions
        self._at_exit()
        return self.instructions

    def _line(self, warp: Warp) -> int:
        instructions = self.grid.code.program.instructions
        return instructions[min(warp.pc, len(instructions) - 1)].line

    def run_warp(self, warp: Warp, quantum: int) -> None:
        """Execute up to ``quantum`` instructions of a warp, or until it must wait."""
        operations = self.grid.code.operations
        executed = 0
        while executed < quantum:
            signal = operations[warp.pc](warp)
            executed += 1
            if warp.after(signal):
                break
        warp.instructions += executed
        self.instructions += executed

    def _hang(self, living: list[Warp]) -> None:
        waits = "; ".join(f"warp {w.index} waits for {w.describe_wait()}" for w in living)
        first = next((w for w in living if w.waiting is not None), None)
        instruction = first.waiting.instruction if first is not None and first.waiting is not None else None
        self.log.add("hang", f"no warp can go on: {waits}", cta=self.number, instruction=instruction)

    def _at_exit(self) -> None:
        for operation in self.pending:
            operation.complete()
        seen = new_clock()
        for warp in self.warps:
            np.maximum(seen, warp.clock, out=seen)
        copies = len(self.slots.unseen(seen))
        if copies:
            self.log.add(
                "async_in_flight_at_exit", f"{copies} tile loads were never waited for", cta=self.number
            )
        check_exit(self)
        for index, pipe in self.pipes.items():
            if pipe.clock[pipe.agent] > seen[pipe.agent]:
                message = f"tensor operations of warp {index} were never waited for"
                self.log.add("async_in_flight_at_exit", message, cta=self.number, warp=index)
        for warp in self.warps:
            if warp.loads:
                message = f"{len(warp.loads)} tcgen05.ld were never waited for"
                load = warp.loads[0].instruction
                self.log.add(
                    "async_in_flight_at_exit", message, cta=self.number, warp=warp.index, instruction=load
                )
        for start, columns in self.tmem.allocated.items():
            message = f"{columns} columns of tensor memory at {start} are never freed"
            self.log.add("tmem_leak", message, cta=self.number)
