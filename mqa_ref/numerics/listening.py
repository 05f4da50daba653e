"""Hearing every operation of ``scalar``: for one that explains a result step by step.

Whoever listens is told the name, the arguments and the result of each operation, and may return an int in its place
that equals the result and remembers where it comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec

Listener = Callable[[str, tuple[Any, ...], dict[str, Any], int], int]
P = ParamSpec("P")
_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


def heard(operation: Callable[P, int]) -> Callable[P, int]:
    """The same operation, told to the listener if there is one."""

    @wraps(operation)
    def run(*arguments: P.args, **named: P.kwargs) -> int:
        result = operation(*arguments, **named)
        listener = _LISTENER.get()
        return result if listener is None else listener(operation.__name__, arguments, named, result)

    return run


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell ``listener`` of every operation in this context."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)
