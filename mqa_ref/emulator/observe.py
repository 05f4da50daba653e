"""Watching one CTA while it runs: every instruction before and after, asynchronous operations, tensor products.

The instructions of the program are wrapped, so a launch that nobody watches pays nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from mqa_ref.emulator.cta import Cta
    from mqa_ref.emulator.decode import Code, Operation
    from mqa_ref.emulator.products import Product
    from mqa_ref.emulator.warp import Warp


class Observer:
    """Sees what the CTA with the number ``cta`` does; the other CTAs of the launch are not run. Every method may be
    overridden, none changes anything."""

    def __init__(self, cta: int) -> None:
        self.cta = cta

    def before(self, warp: Warp, pc: int) -> None:
        """The active lanes of ``warp`` are about to execute instruction number ``pc``."""

    def after(self, warp: Warp, pc: int, signal: int | None) -> None:
        """They have; ``signal`` is what the operation returned (``BLOCKED`` when it could not go on)."""

    def started(self, complete: Callable[[], None]) -> Callable[[], None]:
        """An asynchronous operation was issued; returns what is to be called when it completes."""
        return complete

    def product(self, product: Product, start: int, operands: list[Any], block: NDArray[Any]) -> None:
        """A tensor product was computed. ``operands``: the codes of A [M, 32] and B [N, 32]; ``block`` [M, N]: the
        accumulators it left, which lie in tensor memory from column ``start`` on."""

    def finished(self, cta: Cta) -> None:
        """The CTA has ended, or can not go on."""


def observed(code: Code, observer: Observer) -> Code:
    """The same program with every operation told to ``observer``."""
    return replace(code, operations=[_told(pc, one, observer) for pc, one in enumerate(code.operations)])


def _told(pc: int, operation: Operation, observer: Observer) -> Operation:
    def run(warp: Warp) -> int | None:
        observer.before(warp, pc)
        signal = operation(warp)
        observer.after(warp, pc, signal)
        return signal

    return run
