"""The kernel of the installed sglang with one synchronising instruction less: each is found, beyond its own findings.

What is not found is listed with the reason why nothing changes without it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from mqa_ref.flow import Flow
from mqa_ref.kernel.sources import SGLANG
from mqa_ref.kernel.targets import Target
from mqa_ref.reference import reference_logits
from mqa_ref.verification.launch import execute
from mqa_ref.verification.problems import NamedProblem, Recipe, make

FLOW = Flow.parse("fp32-fp32-fp32")
TARGET = Target("sglang in this process", SGLANG.load)
# One CTA, every ring wraps; two CTAs, the first of which ends inside its fifth row, whose queries it fetches ahead.
RECIPES = (
    Recipe("upstream-rings", "all rings wrap", (600, 0, 300, 129, 300, 100), 1, data="bits"),
    Recipe("upstream-split", "a row shared by two CTAs", (100, 90, 80, 70, 1200), 2, data="bits"),
)
SYNCHRONISATION = {
    "mbarrier.try_wait": (17, "setp.eq.u32 P1, 0, 0;"),
    "mbarrier.arrive": (13, ""),
    "tcgen05.commit": (2, ""),
    "tcgen05.wait::ld": (2, ""),
    "bar.sync": (4, ""),
    "fence.mbarrier_init": (1, ""),
    "griddepcontrol.wait": (1, ""),
    "tcgen05.dealloc": (1, ""),
}
EQUIVALENT = {
    ("mbarrier.try_wait", 4): "the first wait of all for an empty queries slot: every slot is still empty",
    (
        "mbarrier.arrive",
        8,
    ): "the last release of the queries by warp group 0: nobody waits for that slot any more",
    (
        "mbarrier.arrive",
        12,
    ): "the last release of the queries by warp group 1: nobody waits for that slot any more",
}
CASES = [(opcode, number) for opcode, (count, _) in SYNCHRONISATION.items() for number in range(count)]


@lru_cache(maxsize=4)
def problem(recipe: Recipe) -> NamedProblem:
    return make(recipe)


@lru_cache(maxsize=4)
def compiled(recipe: Recipe) -> Any:
    return TARGET.compile(problem(recipe).problem, FLOW)


@lru_cache(maxsize=64)
def expected(recipe: Recipe) -> tuple[Any, Any]:
    return reference_logits(problem(recipe).problem, FLOW)


def seen(recipe: Recipe, ptx: str, order: str) -> tuple[int, frozenset[tuple[str, int | None]]]:
    """Wrong valid logits, and the error findings by kind and line."""
    launch = execute(compiled(recipe), ptx, problem(recipe).problem, FLOW, order=order)
    bits, valid = expected(recipe)
    wrong = int(np.count_nonzero(valid & (launch.logits[:, : bits.shape[1]] != bits)))
    return wrong, frozenset((f.kind, f.ptx_line) for f in launch.findings if f.severity == "error")


@lru_cache(maxsize=8)
def as_it_is(recipe: Recipe, order: str) -> tuple[int, frozenset[tuple[str, int | None]]]:
    return seen(recipe, compiled(recipe).ptx, order)


def without(text: str, opcode: str, number: int) -> str:
    """The PTX without one statement; the lines stay where they are."""
    count, instead = SYNCHRONISATION[opcode]
    found = list(re.finditer(rf"^\s*{re.escape(opcode)}[^;]*;", text, re.MULTILINE))
    assert len(found) == count, f"{len(found)} {opcode} in the kernel: extend the table"
    start, end = found[number].span()
    return text[:start] + "\n" * text[start:end].count("\n") + instead + text[end:]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_as_it_is_its_values_are_right(recipe: Recipe) -> None:
    wrong, findings = as_it_is(recipe, "eager")
    assert wrong == 0
    assert {kind for kind, _ in findings} >= {"tmem_freed_in_use", "read_before_griddepcontrol_wait"}


@pytest.mark.parametrize(("opcode", "number"), CASES, ids=[f"{o}-{n}" for o, n in CASES])
def test_one_synchronising_instruction_less(opcode: str, number: int) -> None:
    found: set[tuple[str, int | None]] = set()
    wrong = 0
    for order in ("eager", "lazy"):
        for recipe in RECIPES:
            bad, findings = seen(recipe, without(compiled(recipe).ptx, opcode, number), order)
            found |= findings - as_it_is(recipe, order)[1]
            wrong += bad
            if (found or wrong) and (opcode, number) not in EQUIVALENT:
                return
    assert (opcode, number) in EQUIVALENT, "nothing was found"
    assert not found, EQUIVALENT[opcode, number]
    assert not wrong
