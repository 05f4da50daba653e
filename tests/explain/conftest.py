"""Explanations of one logit of the builtin kernel, as it is or with its PTX edited."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from mqa_ref.explain import Explanation
from mqa_ref.explain.run import Explained, explain_problem
from mqa_ref.verification.problems import NamedProblem, Recipe, make

RECIPES = {
    "wide": Recipe("wide", "products of unlike size", (70, 200), 1, next_n=2, data="wide"),
    "ties": Recipe("ties", "sums that show a second rounding", (40,), 1, data="fma_ties"),
}


@cache
def made(name: str) -> NamedProblem:
    return make(RECIPES[name])


def run(
    name: str, flow: str = "fp32-fp32-fp32", edit: Callable[[str], str] | None = None, **given: Any
) -> Explained:
    return explain_problem("builtin", made(name), flow, edit_ptx=edit, **given)


@pytest.fixture(scope="session")
def problem() -> Callable[[str], NamedProblem]:
    """problem("wide" or "ties")"""
    return made


def explanation(told: Explained) -> Explanation:
    assert told.explanation is not None, told.report.case_list[0].message
    return told.explanation


@pytest.fixture(scope="session")
def of() -> Callable[[Explained], Explanation]:
    """of(what explained() gave): its explanation, which there must be."""
    return explanation


@pytest.fixture(scope="session")
def explained() -> Callable[..., Explained]:
    """explained("wide" or "ties", flow, edit, row=..., column=...)"""
    return run
