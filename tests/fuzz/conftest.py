from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis.strategies import SearchStrategy

from mqa_ref.fuzz.drive import steady_draws
from mqa_ref.fuzz.model import reference_launch
from mqa_ref.launch import Launch
from mqa_ref.problem import Problem

QUIET = settings(
    settings.get_profile("default"),
    database=None,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)

Plant = Callable[[Problem, np.ndarray, np.ndarray], None]


class Vocabulary:
    """The words in which strategies are tested."""

    def minimal(
        self, strategy: SearchStrategy[Any], condition: Callable[[Any], bool] = lambda _: True
    ) -> Any:
        with steady_draws():  # as in a campaign: no constants of the modules that other tests have loaded
            return find(strategy, condition, settings=settings(QUIET, max_examples=600))

    def find_any(
        self, strategy: SearchStrategy[Any], condition: Callable[[Any], bool] = lambda _: True
    ) -> Any:
        chosen = settings(QUIET, max_examples=5000, phases=[Phase.generate])
        return find(strategy, condition, settings=chosen)

    def assert_all_examples(
        self, strategy: SearchStrategy[Any], predicate: Callable[[Any], bool], *, examples: int = 60
    ) -> None:
        @settings(QUIET, max_examples=examples, phases=[Phase.generate])
        @given(strategy)
        def test(drawn: Any) -> None:
            assert predicate(drawn), drawn

        test()


@pytest.fixture(scope="session")
def strategies_are() -> Vocabulary:
    return Vocabulary()


@pytest.fixture
def spoiled() -> Callable[[Plant], Any]:
    """A launcher that answers from the reference, after ``plant`` has spoiled its arrays in place."""

    def made(plant: Plant) -> Any:
        def launch(problem: Problem, flow: Any, **how: Any) -> Launch:
            told = reference_launch(problem, flow, **how)
            logits, written = told.logits.copy(), told.written.copy()
            plant(problem, logits, written)
            return replace(told, logits=logits, written=written)

        return launch

    return made
