"""The timeline of one CTA: when each warp ran, what it waited for, when asynchronous operations were in flight.

Time is counted in warp instructions of the CTA: the emulator has no other clock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mqa_ref.emulator.observe import Observer
from mqa_ref.emulator.warp import BLOCKED

if TYPE_CHECKING:
    from mqa_ref.emulator.cta import Cta
    from mqa_ref.emulator.ptx import Instruction
    from mqa_ref.emulator.warp import Warp

MOST_EVENTS = 20_000
"""Events of each kind that are kept; how many more there were is counted."""
_OPERATIONS = {"cp.async.bulk": "copy", "tcgen05.mma": "product", "tcgen05.commit": "commit"}


class Timeline(Observer):
    """Records one CTA; ``values`` has the result as plain JSON values.

    ``runs``: [warp, first, last], instructions executed one after the other by one warp. ``waits``: [warp, from, until
    (None for ever), what for, PTX line, source]. ``operations``: [kind, warp, issued, completed (None for never), PTX
    line]. ``arrivals``: [warp, when, PTX line]. ``ends``: for each warp where it stands: "ended", or what it waits for.
    """

    def __init__(self, cta: int) -> None:
        super().__init__(cta)
        self.now = 0
        self.runs: list[list[int]] = []
        self.waits: list[list[Any]] = []
        self.operations: list[list[Any]] = []
        self.arrivals: list[list[int]] = []
        self.ends: list[dict[str, Any]] = []
        self.dropped = 0
        self._waiting: dict[int, list[Any]] = {}
        self._current: tuple[Warp, Instruction] | None = None

    def before(self, warp: Warp, pc: int) -> None:
        """A wait of the warp, if there was one, is over."""
        instruction = warp.cta.grid.code.program.instructions[pc]
        self._current = (warp, instruction)
        waited = self._waiting.pop(warp.index, None)
        if waited is not None:
            waited[2] = self.now

    def after(self, warp: Warp, pc: int, signal: int | None) -> None:
        """One more instruction, or the beginning of a wait."""
        if self.runs and self.runs[-1][0] == warp.index and self.runs[-1][2] == self.now:
            self.runs[-1][2] += 1
        else:
            self._keep(self.runs, [warp.index, self.now, self.now + 1])
        self.now += 1
        program = warp.cta.grid.code.program
        instruction = program.instructions[pc]
        wait = warp.waiting
        if signal == BLOCKED and wait is not None:
            line, source = wait.instruction.line, program.source_of(wait.instruction)
            entry = [warp.index, self.now, None, wait.describe, line, source]
            self._keep(self.waits, entry)
            self._waiting[warp.index] = entry
        elif ".arrive" in instruction.opcode and not instruction.opcode.startswith("tcgen05"):
            self._keep(self.arrivals, [warp.index, self.now, instruction.line])

    def started(self, complete: Callable[[], None]) -> Callable[[], None]:
        """An operation is in flight until it completes."""
        assert self._current is not None, "operations are issued by instructions"
        warp, instruction = self._current
        kind = next(
            (kind for stem, kind in _OPERATIONS.items() if instruction.opcode.startswith(stem)), "other"
        )
        entry: list[Any] = [kind, warp.index, self.now, None, instruction.line]
        self._keep(self.operations, entry)

        def done() -> None:
            entry[3] = self.now
            complete()

        return done

    def finished(self, cta: Cta) -> None:
        """Where every warp stands in the end."""
        program = cta.grid.code.program
        for warp in cta.warps:
            instruction = program.instructions[min(warp.pc, len(program.instructions) - 1)]
            state = "ended" if warp.done else warp.describe_wait() or f"at PTX line {instruction.line}"
            place = warp.waiting.instruction if warp.waiting is not None else instruction
            self.ends.append(
                {
                    "warp": warp.index,
                    "state": state,
                    "instructions": warp.instructions,
                    "ptx_line": None if warp.done else place.line,
                    "ptx_text": None if warp.done else place.text,
                    "source": None if warp.done else program.source_of(place),
                }
            )

    def values(self) -> dict[str, Any]:
        """All of it."""
        lists = {name: getattr(self, name) for name in ("runs", "waits", "operations", "arrivals", "ends")}
        return {"cta": self.cta, "end": self.now, **lists, "dropped": self.dropped}

    def _keep(self, where: list[Any], entry: list[Any]) -> None:
        if len(where) < MOST_EVENTS:
            where.append(entry)
        else:
            self.dropped += 1
