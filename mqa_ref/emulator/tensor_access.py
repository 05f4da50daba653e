"""Checked accesses of one CTA to its tensor memory, and what is asked of accesses that barriers do order."""

from __future__ import annotations

from mqa_ref.emulator.clocks import Clock, Conflict
from mqa_ref.emulator.global_access import GlobalAccess
from mqa_ref.emulator.ptx import Instruction
from mqa_ref.emulator.tensor_order import TensorOrder
from mqa_ref.emulator.warp import Warp


class TensorAccess(GlobalAccess):
    """The part of a CTA that touches tensor memory."""

    def read_tmem(self, warp: Warp, where: slice, instruction: Instruction) -> None:
        """Record a warp's read of tensor memory and report a conflict, or a fence that is missing."""
        conflict = self.tmem.shadow.read(where, warp.index, warp.clock)
        self.check_tmem(conflict, warp.clock, warp, instruction)
        if conflict is None:
            unfenced = self.tmem.shadow.late(where, warp.order.ordered, "write-read")
            self.check_fenced(unfenced, warp.order, warp.clock, warp, instruction)

    def write_tmem(
        self, where: slice, writer: tuple[int, Clock, TensorOrder], warp: Warp, instruction: Instruction
    ) -> None:
        """Record a write of tensor memory, by an agent with its clock and what it is ordered after, and report a
        conflict, or a fence that is missing.
        """
        agent, clock, order = writer
        unfenced = self.tmem.shadow.unordered(where, order.ordered)
        conflict = self.tmem.shadow.write(where, agent, clock)
        self.check_tmem(conflict, clock, warp, instruction)
        if conflict is None or conflict.kind == "apart":
            self.check_fenced(unfenced, order, clock, warp, instruction)

    def check_fenced(
        self,
        conflict: Conflict | None,
        order: TensorOrder,
        clock: Clock,
        warp: Warp,
        instruction: Instruction,
    ) -> None:
        """Report an access that barriers order after another one, but no fences; see ``tensor_order``."""
        if conflict is not None:
            message = f"tensor memory, last used by {self.agent_name(conflict.agent)}: {order.missing(conflict, clock)}"
            self.report("tmem_not_fenced", message, warp, instruction)

    def check_tmem(
        self, conflict: Conflict | None, clock: Clock, warp: Warp, instruction: Instruction
    ) -> None:
        """Report a conflict in tensor memory with an access at ``clock``."""
        if conflict is None:
            return
        if conflict.kind == "apart":
            self.check_gathered(conflict, clock, "tensor memory", warp, instruction)
            return
        if conflict.kind == "uninitialised":
            message = "tensor memory is read before anything was written there"
            self.report("uninitialised_tmem", message, warp, instruction)
            return
        message = f"{conflict.kind} race in tensor memory with {self.agent_name(conflict.agent)}"
        self.report("race_tmem", message, warp, instruction)

    def check_tmem_owned(self, start: int, columns: int, warp: Warp, instruction: Instruction) -> bool:
        """Report columns that no allocation holds; the access itself goes on, as the hardware's does."""
        if self.tmem.owns(start, columns):
            return True
        if self.tmem.was_freed(start, columns):
            kind, message = "tmem_freed_in_use", "tensor memory is used after it was freed"
        else:
            kind, message = "tmem_misuse", f"columns {start} to {start + columns - 1} are not allocated"
        self.report(kind, message, warp, instruction)
        return False

    def check_gathered(
        self, conflict: Conflict, clock: Clock, memory: str, warp: Warp, instruction: Instruction
    ) -> None:
        """Report an access of other lanes than those whose signal orders it before this one; see ``lanes_of_warps``."""
        for agent, time in conflict.accesses:
            found = self.warps[agent].lanes.left_out(time, int(clock[agent]))
            if found is not None:
                lanes, line = found
                signal = next(i for i in self.grid.code.program.instructions if i.line == line)
                place = self.grid.code.program.source_of(signal)
                message = (
                    f"lanes {lanes:#010x} of warp {agent} used this {memory} before; only others signal that, at PTX"
                    f" line {line}{f' ({place})' if place else ''}, with no bar.warp.sync between"
                )
                self.report("lanes_not_gathered", message, warp, instruction)
                return
