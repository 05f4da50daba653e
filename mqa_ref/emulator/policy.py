"""In which order warps run and asynchronous operations complete.

* ``eager``: an asynchronous operation completes at its issue; warps take turns, each until it must wait.
* ``lazy``: an asynchronous operation completes only when no warp can run, oldest first.
* ``random``: any warp that can run, for a random number of instructions, or any operation that may complete
  next; from a seed. Every other wait for an mbarrier that would block gives up first, as try_wait may.
* ``systematic``: one warp is held back as long as another can run; operations complete as late as possible,
  the newest first, or (second half) before any warp runs. Seeds 0 to 2 * (warps + 1) - 1 name all of them,
  ``warps`` standing for no warp held back; greater seeds repeat.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mqa_ref.errors import Fault, InputError

ORDERS = ("eager", "lazy", "random", "systematic")
QUANTUM = 4096
_RANDOM_QUANTUM = 64


@dataclass
class Pending:
    """An asynchronous operation in flight; operations of one ``pipe`` complete in order, those without one in
    any order.
    """

    pipe: int | None
    complete: Callable[[], None]


@dataclass(frozen=True)
class Choice:
    """Either the number of an operation that completes, or warps that run one after the other for ``quantum``
    instructions each, or until they wait.
    """

    warps: tuple[int, ...] = ()
    quantum: int = 0
    operation: int = -1


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

    def pick(self, ready: Sequence[int], pending: int, turn: int, warps: int) -> Choice:
        """What runs next. ``ready``: numbers of the warps that can run; ``pending``: how many operations may
        complete, oldest first; at least one of the two is not empty. ``turn`` counts the calls, ``warps`` is
        the CTA's count.
        """
        if self.order == "random":
            number = self.generator.randrange(len(ready) + pending)
            if number >= len(ready):
                return Choice(operation=number - len(ready))
            return Choice(warps=(ready[number],), quantum=self.generator.randint(1, _RANDOM_QUANTUM))
        if self.order == "systematic":
            half, held = divmod(self.seed % (2 * (warps + 1)), warps + 1)
            if pending and (half or not ready):
                return Choice(operation=0 if half else pending - 1)
            first = [warp for warp in ready if warp != held] or list(ready)
            return Choice(warps=(first[turn % len(first)],), quantum=QUANTUM)
        if ready:
            return Choice(warps=tuple(ready), quantum=QUANTUM)
        return Choice(operation=0)
