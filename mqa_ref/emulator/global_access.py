"""Checked accesses of one CTA to global memory, and what every check needs: the CTA's state and its finding log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mqa_ref.emulator.barriers import MBarrier
from mqa_ref.emulator.clocks import Clock, Shadow, Where
from mqa_ref.emulator.global_shadow import Clash, Touch
from mqa_ref.emulator.memory import Allocation, GlobalMemory, SharedMemory
from mqa_ref.emulator.ptx import Instruction
from mqa_ref.emulator.warp import LANES, Warp

if TYPE_CHECKING:
    from mqa_ref.emulator.findings import FindingLog
    from mqa_ref.emulator.machine import Grid
    from mqa_ref.emulator.tmem import TensorMemory
    from mqa_ref.emulator.wgmma import WarpGroup

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
    lane_of: NDArray[np.int8]
    warps: list[Warp]
    groups: dict[int, WarpGroup]

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
            if allocation.writable:
                self.record_load(allocation, offsets.ravel(), warp.index, warp.clock, warp, instruction)
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
            at = slice(address - found.address, address - found.address + size)
            out[lane] = found.data[at]
            if found.writable:
                self.record_load(found, at, warp.index, warp.clock, warp, instruction)
        return out

    def store_global(
        self, warp: Warp, addresses: Addresses, raw: NDArray[np.uint8], instruction: Instruction
    ) -> None:
        """Store the rows of ``raw`` [32, size] of the active lanes; of lanes that name one place the last counts."""
        size = raw.shape[1]
        active = addresses if warp.full else addresses[warp.mask]
        rows = raw if warp.full else raw[warp.mask]
        self._check_alignment(active, size, warp, instruction)
        low, high = int(active.min()), int(active.max()) + size
        allocation = self.memory.find(low, high - low)
        if allocation is not None:
            self._store_rows(allocation, active, rows, warp, instruction)
            return
        for address, row in zip(active.tolist(), rows, strict=True):
            found = self.memory.find(address, size)
            if found is None:
                message = f"a store of {size} bytes writes {self.memory.nearest(address + size - 1)}"
                self.report("global_out_of_bounds", message, warp, instruction)
                continue
            self._store_rows(found, np.array([address]), row[None], warp, instruction)

    def _store_rows(
        self,
        found: Allocation,
        active: Addresses,
        rows: NDArray[np.uint8],
        warp: Warp,
        instruction: Instruction,
    ) -> None:
        if not found.writable:
            self.report("input_written", f"a store goes to the input {found.name}", warp, instruction)
            return
        where = ((active - found.address)[:, None] + np.arange(rows.shape[1])).ravel()
        found.data[where] = rows.ravel()
        if (found.data[where] != rows.ravel()).any():
            message = f"lanes of one store write different values to one byte of {found.name}"
            self.report("race_global", message, warp, instruction)
        self.record_store(found, where, warp, instruction)

    def record_store(self, found: Allocation, where: Where, warp: Warp, instruction: Instruction) -> None:
        """Remember a store to bytes of a buffer, and report an earlier access that is not ordered before it."""
        touch = Touch(self.number, warp.index, warp.clock, instruction.line)
        clash = found.shadow.write(where, touch) if self.grid.sanitize else None
        found.owner[where] = self.number
        counts = found.stores[where]
        found.stores[where] = counts + (counts < 255)
        if clash is None:
            return
        if clash.kind == "write-write" and clash.cta != self.number:
            message = (
                f"byte {clash.byte} of {found.name} was also written by CTA {clash.cta}{self._earlier(clash)}"
            )
            self.report("global_write_conflict", message, warp, instruction)
        else:
            self.report("race_global", self._clash_words(clash, found), warp, instruction)

    def record_load(
        self, found: Allocation, where: Where, agent: int, clock: Clock, warp: Warp, instruction: Instruction
    ) -> None:
        """Remember a read of bytes of a buffer that the kernel may write, and report a write that is not ordered."""
        if not self.grid.sanitize:
            return
        clash = found.shadow.read(where, Touch(self.number, agent, clock, instruction.line))
        if clash is not None:
            self.report("race_global", self._clash_words(clash, found), warp, instruction)

    def _earlier(self, clash: Clash) -> str:
        """Where the earlier access stands, in words."""
        program = self.grid.code.program
        found = next((i for i in program.instructions if i.line == clash.line), None)
        if found is None:
            return ""
        source = program.source_of(found)
        return f" at PTX line {clash.line}" + (f" ({source})" if source else "")

    def _clash_words(self, clash: Clash, found: Allocation) -> str:
        who = (
            "this CTA"
            if clash.cta == self.number
            else "several CTAs"
            if clash.cta < 0
            else f"CTA {clash.cta}"
        )
        return f"{clash.kind} race on byte {clash.byte} of {found.name} with an access of {who}{self._earlier(clash)}"

    def _check_alignment(self, active: Addresses, size: int, warp: Warp, instruction: Instruction) -> None:
        if np.bitwise_or.reduce(active) & (size - 1):
            self.report(
                "misaligned",
                f"an access of {size} bytes at an address that is no multiple",
                warp,
                instruction,
            )
