"""Checked accesses of one CTA to its own memories and barriers; a breach is reported and execution goes on."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mqa_ref.emulator.barriers import MBarrier
from mqa_ref.emulator.clocks import GATHERED, Clock, Conflict, Where, new_clock
from mqa_ref.emulator.copies import TileLoad, complete_tile_load, swizzle_order
from mqa_ref.emulator.decode import WIDTH_TYPES, width_of
from mqa_ref.emulator.descriptors import MatrixDescriptor, operand_addresses
from mqa_ref.emulator.global_access import Addresses
from mqa_ref.emulator.products import granules_of
from mqa_ref.emulator.ptx import Instruction
from mqa_ref.emulator.tensor_access import TensorAccess
from mqa_ref.emulator.tensormap import TensorMap
from mqa_ref.emulator.warp import LANES, Lanes, Warp

MBARRIER_BYTES = 8

_swizzle_order = lru_cache(maxsize=256)(swizzle_order)


@lru_cache(maxsize=1024)
def _operand(
    descriptor: MatrixDescriptor, rows: int, width: int, base: int, granule: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    offsets = operand_addresses(descriptor, rows, width) - base
    return offsets, granules_of(offsets, granule)


class Access(TensorAccess):
    """The part of a CTA that touches memory."""

    # registers

    def watched_register(self, warp: Warp, slot: int, instruction: Instruction) -> Lanes:
        """Value of a register that was not written by all lanes, or is still being loaded; moves may read the
        latter.
        """
        if slot in warp.owned:
            self.report_owned(warp, slot, instruction)
        elif warp.uninitialised(slot):
            self.report(
                "uninitialised_register", "a register is read that was never written", warp, instruction
            )
        elif warp.in_flight(slot) and not instruction.opcode.startswith("mov."):
            message = "the result of a tcgen05.ld is used before tcgen05.wait::ld"
            self.report("tmem_load_not_waited", message, warp, instruction)
        found = warp.regs[slot]
        kind = self.grid.code.program.registers[slot]
        return np.zeros(LANES, WIDTH_TYPES[width_of(kind)]) if found is None else found

    def report_owned(self, warp: Warp, slot: int, instruction: Instruction | None = None) -> None:
        """A register is used that is an accumulator of a product in flight; a write takes it from the product."""
        verb = "read"
        if instruction is None:
            verb, instruction = "written", self.grid.code.program.instructions[warp.pc]
            warp.owned.pop(slot)
            warp.watched.pop(slot, None)
            if warp.regs[slot] is None:
                warp.regs[slot] = np.zeros(
                    LANES, WIDTH_TYPES[width_of(self.grid.code.program.registers[slot])]
                )
        message = f"an accumulator of a wgmma.mma_async is {verb} before wgmma.wait_group"
        self.report("wgmma_not_waited", message, warp, instruction)

    # shared memory

    def tensor_map(self, address: int) -> TensorMap:
        """The decoded tensor map at a parameter address."""
        return self.grid.tensor_map(address)

    def swizzle_order(self, destination: int, size: int, mode: int) -> NDArray[np.int64] | None:
        """See ``copies.swizzle_order``."""
        return _swizzle_order(self.shared.base, destination, size, mode)

    def complete_tile(self, load: TileLoad) -> None:
        """See ``copies.complete_tile_load``."""
        complete_tile_load(load)

    def operand_place(
        self, descriptor: MatrixDescriptor, rows: int, width: int
    ) -> tuple[NDArray[np.int64], Where] | None:
        """Byte offsets [rows, width] of a matrix operand and its granules, or None when out of bounds."""
        offsets, granules = _operand(descriptor, rows, width, self.shared.base, self.granule)
        if granules[0] < 0 or (int(granules[-1]) + 1) * self.granule > self.shared.data.size:
            return None
        return offsets, granules

    def load_shared(
        self, warp: Warp, addresses: Addresses, size: int, instruction: Instruction
    ) -> NDArray[np.uint8]:
        """Bytes [32, size]; lanes that are not active give zeros, unless all active lanes read the same place."""
        active = addresses if warp.full else addresses[warp.mask]
        self._check_alignment(active, size, warp, instruction)
        low, high = int(active.min()), int(active.max())
        offset = self.shared.offset(low, high - low + size)
        if offset is None:
            self.report("shared_out_of_bounds", f"a load at {high:#x}", warp, instruction)
            return np.zeros((LANES, size), np.uint8)
        where: Where
        self._check_lanes(warp, active, size, "read", instruction)
        if low == high:
            where = slice(offset // self.granule, -(-(offset + size) // self.granule))
            out = np.repeat(self.shared.data[offset : offset + size][None], LANES, axis=0)
        else:
            offsets = (active - self.shared.base)[:, None] + np.arange(size)
            where = granules_of(offsets, self.granule)
            out = np.zeros((LANES, size), np.uint8)
            out[warp.mask] = self.shared.data[offsets]
        self._check_barrier_bytes(where, warp, instruction)
        self._begin(warp)
        self.read_shared_shadow(where, warp.index, warp.clock, warp, instruction)
        self._end(warp)
        return out

    def store_shared(
        self, warp: Warp, addresses: Addresses, raw: NDArray[np.uint8], instruction: Instruction
    ) -> None:
        """Store the rows of ``raw`` [32, size] of the active lanes."""
        size = raw.shape[1]
        active = addresses[warp.mask]
        self._check_alignment(active, size, warp, instruction)
        if self.shared.offset(int(active.min()), int(active.max()) - int(active.min()) + size) is None:
            self.report("shared_out_of_bounds", f"a store at {int(active.max()):#x}", warp, instruction)
            return
        offsets = (active - self.shared.base)[:, None] + np.arange(size)
        self.shared.data[offsets] = raw[warp.mask]
        granules = granules_of(offsets, self.granule)
        self._check_barrier_bytes(granules, warp, instruction)
        self._check_lanes(warp, active, size, "written", instruction)
        self._begin(warp)
        self.write_shared_shadow(granules, warp.index, warp.clock, warp, instruction)
        self._keep_lanes(warp, offsets // self.granule)
        self._end(warp)

    def _begin(self, warp: Warp) -> None:
        """Before an access by fewer than all lanes, which has a time of its own."""
        if not warp.full:
            warp.released()
            warp.lanes.access(int(warp.clock[warp.index]), warp.active())

    def _end(self, warp: Warp) -> None:
        """After it."""
        if not warp.full:
            warp.released()

    def _keep_lanes(self, warp: Warp, places: NDArray[np.int64]) -> None:
        """Note which lane stored to each granule; none for those that several did."""
        if not self.grid.sanitize:
            return
        lanes = np.broadcast_to(warp.mask.nonzero()[0][:, None], places.shape)
        self.lane_of[places] = lanes
        self.lane_of[places[self.lane_of[places] != lanes]] = -1
        warp.stored = int(warp.clock[warp.index])

    def _check_lanes(
        self, warp: Warp, active: Addresses, size: int, verb: str, instruction: Instruction
    ) -> None:
        """A lane must not read or overwrite what another one of its warp stored since the lanes were gathered."""
        gathered = warp.clock[GATHERED + warp.index]
        if warp.stored <= gathered:
            return
        places = ((active - self.shared.base)[:, None] + np.arange(size)) // self.granule
        other = (self.lane_of[places] >= 0) & (self.lane_of[places] != warp.mask.nonzero()[0][:, None])
        other &= (self.shadow.writer[places] == warp.index) & (self.shadow.write_clock[places] > gathered)
        if other.any():
            place = int(places[other][0])
            at, lane = self.shared.base + place * self.granule, int(self.lane_of[place])
            message = f"shared memory at {at:#x}, stored by lane {lane}, is {verb} by another lane of warp {warp.index}"
            self.report("lanes_not_gathered", f"{message} with no bar.warp.sync between", warp, instruction)

    def _check_barrier_bytes(self, where: Where, warp: Warp, instruction: Instruction) -> None:
        if self.barrier_bytes[where].any():
            self.report("mbarrier_misuse", "an mbarrier object is accessed like data", warp, instruction)

    def read_shared_shadow(
        self, where: Where, agent: int, clock: Clock, warp: Warp, instruction: Instruction
    ) -> None:
        """Record a read of granules and report a conflict."""
        self._shared_conflict(self.shadow.read(where, agent, clock), agent, clock, warp, instruction)

    def write_shared_shadow(
        self, where: Where, agent: int, clock: Clock, warp: Warp, instruction: Instruction
    ) -> None:
        """Record a write of granules and report a conflict."""
        self._shared_conflict(self.shadow.write(where, agent, clock), agent, clock, warp, instruction)

    def _shared_conflict(
        self, conflict: Conflict | None, agent: int, clock: Clock, warp: Warp, instruction: Instruction
    ) -> None:
        if conflict is None:
            return
        if conflict.kind == "apart":
            self.check_gathered(conflict, clock, "shared memory", warp, instruction)
            return
        at = self.shared.base + conflict.where * self.granule
        if conflict.kind == "uninitialised":
            message = f"shared memory at {at:#x} is read before anything was written there"
            self.report("uninitialised_shared", message, warp, instruction)
            return
        one, other = self.agent_name(conflict.agent), self.agent_name(agent)
        message = f"{conflict.kind} race at {at:#x} between {one} and {other}"
        self.report("race_shared", message, warp, instruction)

    def check_proxy(self, granules: Where, seen: Clock, warp: Warp, instruction: Instruction) -> None:
        """An asynchronous operation that knows what ``seen`` says reads granules: what warps stored there must be
        followed by a fence.proxy.async (PTX ISA, "Async Proxy").
        """
        if not self.grid.sanitize:
            return
        writer, written = self.shadow.writer[granules], self.shadow.write_clock[granules]
        stored = (writer >= 0) & (writer < len(self.warps))
        if not stored.any():
            return
        fenced = new_clock()
        for other in self.warps:
            for fence in other.proxy_fences:
                if fence[other.index] <= seen[other.index]:
                    np.maximum(fenced, fence, out=fenced)
        if (written[stored] > fenced[writer[stored]]).any():
            message = "the async proxy reads shared memory that a thread stored to, with no fence.proxy.async between"
            self.report("proxy_not_fenced", message, warp, instruction)

    # mbarriers

    def init_barrier(self, warp: Warp, address: int, count: int, instruction: Instruction) -> None:
        """mbarrier.init at a shared address."""
        if address % MBARRIER_BYTES or self.shared.offset(address, MBARRIER_BYTES) is None:
            self.report("mbarrier_misuse", f"mbarrier.init at {address:#x}", warp, instruction)
            return
        if address in self.barriers:
            self.report(
                "mbarrier_misuse", f"the mbarrier at {address:#x} is initialised twice", warp, instruction
            )
        self._mark_barrier(address, present=True)
        self.barriers[address] = MBarrier(address, count, warp.index, int(warp.clock[warp.index]))

    def drop_barrier(self, address: int) -> None:
        """mbarrier.inval: the bytes are data again."""
        self._mark_barrier(address, present=False)
        del self.barriers[address]

    def _mark_barrier(self, address: int, *, present: bool) -> None:
        first = (address - self.shared.base) // self.granule
        self.barrier_bytes[first : first + MBARRIER_BYTES // self.granule] = present

    def barrier(
        self, warp: Warp, address: int, instruction: Instruction, *, asynchronous: bool = False
    ) -> MBarrier | None:
        """The mbarrier at ``address``, which must have been initialised before the use in the order of
        synchronisation.

        A signal of an ``asynchronous`` operation needs in addition a fence.mbarrier_init between (PTX ISA,
        "fence").
        """
        found = self.barriers.get(address)
        if found is None:
            self.report("mbarrier_misuse", f"no mbarrier was initialised at {address:#x}", warp, instruction)
            return None
        if found.init_clock > warp.clock[found.initialiser]:
            message = f"{self.barrier_name(found)} is used, but warp {found.initialiser} may not have initialised it"
            self.report("mbarrier_misuse", message, warp, instruction)
        elif asynchronous and (
            found.fence_clock is None or found.fence_clock > warp.clock[found.initialiser]
        ):
            message = f"{self.barrier_name(found)} is signalled asynchronously with no fence after its initialisation"
            self.report("mbarrier_misuse", message, warp, instruction)
        return found

    def barrier_name(self, barrier: MBarrier) -> str:
        """An mbarrier in words."""
        return f"the mbarrier at shared offset {barrier.address - self.shared.base}"

    def describe(self, barrier: MBarrier, parity: int) -> str:
        """What a thread that waits for a phase waits for."""
        return (
            f"{self.barrier_name(barrier)}, phase parity {parity} (phase {barrier.phase}: "
            f"{barrier.pending} of {barrier.count} arrivals and {barrier.tx} bytes missing)"
        )
