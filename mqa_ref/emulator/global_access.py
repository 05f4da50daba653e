"""Checked accesses of one CTA to global memory, and what every check needs: the CTA's state and its finding log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mqa_ref.emulator.barriers import MBarrier
from mqa_ref.emulator.clocks import Shadow
from mqa_ref.emulator.memory import GlobalMemory, SharedMemory
from mqa_ref.emulator.ptx import Instruction
from mqa_ref.emulator.warp import LANES, Warp

if TYPE_CHECKING:
    from mqa_ref.emulator.findings import FindingLog
    from mqa_ref.emulator.machine import Grid
    from mqa_ref.emulator.tmem import TensorMemory

Addresses = NDArray[np.int64]


class GlobalAccess:
    """The part of a CTA that touches global memory."""

    grid: Grid
    number: int
    granule: int
    log: FindingLog
    memory: GlobalMemory
    shared: SharedMemory
    shadow: Shadow
    tmem: TensorMemory
    barriers: dict[int, MBarrier]
    barrier_bytes: NDArray[np.bool_]
    warps: list[Warp]

    def report(self, kind: str, message: str, warp: Warp, instruction: Instruction) -> None:
        """Record a finding of this CTA."""
        self.log.add(kind, message, cta=self.number, warp=warp.index, instruction=instruction)

    def agent_name(self, agent: int) -> str:
        """An agent of the vector clocks in words."""
        count = len(self.warps)
        if agent < 0:
            return "nobody"
        if agent < count:
            return f"warp {agent}"
        return f"the tensor pipe of warp {agent - count}" if agent < 2 * count else "a tile load"

    def check_grid_wait(self, warp: Warp, instruction: Instruction) -> None:
        """With programmatic dependent launch, global memory must not be read before griddepcontrol.wait."""
        if self.grid.overlaps and not warp.past_grid_wait:
            message = "global memory is read before griddepcontrol.wait: the kernel before may not have written it yet"
            self.report("read_before_griddepcontrol_wait", message, warp, instruction)

    def load_global(
        self, warp: Warp, addresses: Addresses, size: int, instruction: Instruction
    ) -> NDArray[np.uint8]:
        """Bytes [32, size]; lanes that are not active, and accesses out of bounds, give zeros."""
        self.check_grid_wait(warp, instruction)
        out = np.zeros((LANES, size), np.uint8)
        active = addresses if warp.full else addresses[warp.mask]
        low, high = int(active.min()), int(active.max()) + size
        allocation = self.memory.find(low, high - low)
        if allocation is not None:
            offsets = (active - allocation.address)[:, None] + np.arange(size)
            out[warp.mask] = allocation.data[offsets]
            self._check_alignment(active, size, warp, instruction)
            if allocation.share is not None and not allocation.share(self.number)[offsets].all():
                message = f"a load reads a part of {allocation.name} that belongs to rows of other CTAs"
                self.report("global_other_row", message, warp, instruction)
            return out
        for lane in warp.mask.nonzero()[0].tolist():
            address = int(addresses[lane])
            found = self.memory.find(address, size)
            if found is None:
                where = self.memory.nearest(address + size - 1 if address >= 0 else address)
                self.report(
                    "global_out_of_bounds", f"a load of {size} bytes reads {where}", warp, instruction
                )
                continue
            out[lane] = found.data[address - found.address : address - found.address + size]
        return out

    def store_global(
        self, warp: Warp, addresses: Addresses, raw: NDArray[np.uint8], instruction: Instruction
    ) -> None:
        """Store the rows of ``raw`` [32, size] of the active lanes."""
        size = raw.shape[1]
        for lane in warp.mask.nonzero()[0].tolist():
            address = int(addresses[lane])
            found = self.memory.find(address, size)
            if found is None:
                message = f"a store of {size} bytes writes {self.memory.nearest(address + size - 1)}"
                self.report("global_out_of_bounds", message, warp, instruction)
                continue
            if not found.writable:
                self.report("input_written", f"a store goes to the input {found.name}", warp, instruction)
                continue
            at = slice(address - found.address, address - found.address + size)
            others = found.owner[at]
            if (others >= 0).any() and (others != self.number).any():
                message = f"byte {at.start} of {found.name} was also written by CTA {int(others.max())}"
                self.report("global_write_conflict", message, warp, instruction)
            found.data[at] = raw[lane]
            found.owner[at] = self.number
            found.stores[at] += found.stores[at] < 255
        self._check_alignment(addresses[warp.mask], size, warp, instruction)

    def _check_alignment(self, active: Addresses, size: int, warp: Warp, instruction: Instruction) -> None:
        if np.bitwise_or.reduce(active) & (size - 1):
            self.report(
                "misaligned",
                f"an access of {size} bytes at an address that is no multiple",
                warp,
                instruction,
            )
