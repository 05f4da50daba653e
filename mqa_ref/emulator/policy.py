"""In which order warps run and asynchronous operations complete.

* ``eager``: an asynchronous operation completes at its issue; warps take turns, each until it must wait.
* ``lazy``: an asynchronous operation completes only when no warp can run, oldest first.
* ``random``: any warp that can run, for a random number of instructions, or any operation that may complete
  next; from a seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from mqa_ref.errors import Fault, InputError

ORDERS = ("eager", "lazy", "random")
QUANTUM = 4096
_RANDOM_QUANTUM = 64


@dataclass
class Pending:
    """An asynchronous operation in flight; operations of one ``pipe`` complete in order, those without one in
    any order.
    """

    pipe: int | None
    complete: Callable[[], None]


@dataclass
class Policy:
    """One interleaving. ``order`` is one of ``ORDERS``; ``seed`` matters for "random" only."""

    order: str = "eager"
    seed: int = 0
    generator: random.Random = field(init=False)

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise InputError([Fault("order", repr(self.order), f"one of {', '.join(ORDERS)}")])
        self.generator = random.Random(self.seed)

    def pick(self, ready: int, pending: int, turn: int) -> tuple[str, int, int]:
        """What runs next among ``ready`` warps and ``pending`` operations: ("warp" | "async", its number,
        instructions).
        """
        if self.order == "random":
            number = self.generator.randrange(ready + pending)
            if number >= ready:
                return "async", number - ready, 0
            return "warp", number, self.generator.randint(1, _RANDOM_QUANTUM)
        if ready:
            return "warp", turn % ready, QUANTUM
        return "async", 0, 0
