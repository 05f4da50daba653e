"""The two ways to run a CTA: the plain interpreter, and machine code with the interpreter's operations between.

Both give the same logits, findings and instruction counts. The interpreter is the judge of the other; it runs alone
where the CPU lacks what the machine code needs, and where an observer wants to see every instruction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mqa_ref.emulator.cta import Cta
from mqa_ref.emulator.policy import Policy
from mqa_ref.errors import Fault, InputError

if TYPE_CHECKING:
    from mqa_ref.emulator.machine import Grid

ENGINES = ("compiled", "interpreter")


@dataclass(frozen=True)
class Emulation:
    """How launches are emulated. ``sanitize``: look for races, and for reads of what was never written, in shared and
    tensor memory."""

    engine: str = "compiled"
    sanitize: bool = True

    def faults(self) -> list[Fault]:
        """What is wrong with it."""
        if self.engine in ENGINES:
            return []
        return [Fault("engine", repr(self.engine), f"one of {', '.join(ENGINES)}")]


Maker = Callable[[tuple[int, int, int], int, Policy, int], Cta]
"""CTA index, its number, its interleaving, its budget of warp instructions."""


def cta_maker(grid: Grid, engine: str) -> Maker:
    """What makes the CTAs of a grid. Raises InputError for an engine that does not exist."""
    if faults := Emulation(engine).faults():
        raise InputError(faults)
    if engine == "compiled" and grid.observer is None:
        from mqa_ref.emulator.compiled import cta, native

        if native.available():
            workshop = cta.Workshop(grid)
            return lambda index, number, policy, budget: cta.CompiledCta(
                grid, index, number, policy, budget, workshop
            )
    return lambda index, number, policy, budget: Cta(grid, index, number, policy, budget)
