"""Hypothesis as an engine: the same seed draws the same examples in every process and on every machine.

Three habits of Hypothesis stand in the way. With ``CI`` set its settings are other ones, so the default profile is
named. Its random draws favour constants of the modules that happen to be loaded, so none are offered. A failure ends a
test, so bodies that only look do not raise. Needs the extra ``fuzz``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis.strategies import SearchStrategy

Drawn = TypeVar("Drawn")

_NO_CONSTANTS = "_get_local_constants"


def drive(
    strategy: SearchStrategy[Drawn],
    body: Callable[[Drawn], None],
    *,
    seed: int,
    examples: int,
    target: bool = False,
    shrink: bool = False,
) -> None:
    """Call ``body`` with up to ``examples`` drawn values. What it raises ends the drawing, and with ``shrink`` it is
    called with ever smaller values that still make it raise; the last call is the smallest one.

    ``target``: whether ``hypothesis.target`` in the body steers what is drawn in the second half.
    """
    phases = [Phase.generate, *([Phase.target] if target else []), *([Phase.shrink] if shrink else [])]
    chosen = settings(
        settings.get_profile("default"),
        max_examples=examples,
        phases=phases,
        database=None,
        deadline=None,
        derandomize=False,
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )

    def test(drawn: Any) -> None:
        body(drawn)

    with steady_draws():
        hypothesis.seed(seed)(chosen(hypothesis.given(strategy)(test)))()


@contextmanager
def steady_draws() -> Iterator[None]:
    """While it lasts, draws do not depend on which modules are loaded.

    Hypothesis collects the constants in loaded modules that are not installed packages, and prefers them now and then.
    There is no setting for it; a version that does it otherwise is told by the test of equal examples.
    """
    from hypothesis.internal import constants_ast
    from hypothesis.internal.conjecture import providers

    original = getattr(providers, _NO_CONSTANTS, None)
    cache = getattr(providers, "CONSTANTS_CACHE", None)
    if original is None or cache is None:
        yield
        return
    nothing = constants_ast.Constants()
    cache.cache.clear()
    setattr(providers, _NO_CONSTANTS, lambda: nothing)
    try:
        yield
    finally:
        setattr(providers, _NO_CONSTANTS, original)
        cache.cache.clear()
