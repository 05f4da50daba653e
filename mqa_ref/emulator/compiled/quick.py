"""Short cuts for instructions of Python: the usual case of an instruction on operands that ``operands`` has looked up.

A short cut first makes sure that nothing unusual is going on, and otherwise hands the instruction, untouched, to the
interpreter's operation, which makes every finding.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from mqa_ref.emulator.decode import Decoder, Operation
from mqa_ref.emulator.ptx import Instruction

if TYPE_CHECKING:
    from mqa_ref.emulator.compiled.services import Service
    from mqa_ref.emulator.compiled.warp import FlatWarp

Run = Callable[["FlatWarp", int], "int | None"]
"""The warp, whose frame holds the operands, and how they were found (``loop.UNIFORM``, ``VARIED`` or ``IN_A_ROW``)."""

Waits = Callable[["FlatWarp"], None]


@dataclass(frozen=True)
class Quick:
    """A short cut and the registers that it wants looked up. ``step``: the first is an address, and lanes that follow
    each other at this distance are of interest. ``service``: machine code that is asked first; ``waits``: what is
    left to do when it has executed the instruction and the warp waits.
    """

    operands: tuple[int, ...]
    run: Run
    step: int = 0
    service: Service | None = None
    waits: Waits | None = None


Builder = Callable[[Decoder, Instruction, Operation], "Quick | None"]
QUICK: dict[str, Builder] = {}


def quick(*names: str) -> Callable[[Builder], Builder]:
    """Register a builder under full opcode names. It gets the decoder, the instruction and the interpreter's operation,
    and returns None for a form without a short cut."""

    def register(builder: Builder) -> Builder:
        QUICK.update(dict.fromkeys(names, builder))
        return builder

    return register


@cache
def builders() -> dict[str, Builder]:
    """Opcode -> builder."""
    for module in ("synchronise", "accesses", "tensor"):
        importlib.import_module(f"mqa_ref.emulator.compiled.{module}")
    return QUICK
