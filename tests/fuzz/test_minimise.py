"""Failures shrink: in the model for many kinds of fault, and in the kernel with one of its instructions changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mqa_ref.fuzz.block import run_block
from mqa_ref.fuzz.bugs import BUGS
from mqa_ref.fuzz.campaign import Campaign, Found
from mqa_ref.fuzz.casefile import decode_case
from mqa_ref.fuzz.description import Description
from mqa_ref.fuzz.minimise import minimise, size
from mqa_ref.fuzz.model import NAME, reference_launch
from mqa_ref.fuzz.session import Session
from mqa_ref.fuzz.shapes import palette
from mqa_ref.launch import Launch
from mqa_ref.problem import Problem
from mqa_ref.verification.runner import launcher

PLAIN = Campaign(kernel=NAME, flows=("fp32-fp32-fp32",), options=False, checks=(), orders=("eager",))
SEED = next(
    n
    for n in range(200)
    if all(s.heads * s.next_n <= 32 and s.num_sms < 9 for s in palette(n, 0, PLAIN.flows))
)
MODEL = replace(PLAIN, seed=SEED)
"""Its first block has small shapes."""


def found_and_minimised(campaign: Campaign, session: Session) -> tuple[Found, Description]:
    for index in range(12):
        result = run_block(campaign, index, stop=True, session=session)
        if result.failures:
            break
    else:
        raise AssertionError("nothing was found")
    first = result.failures[0]
    least = minimise(campaign, first, session)
    small = Description.from_plain(least.found.description)
    assert least.found.name == first.name
    assert size(small) <= size(Description.from_plain(first.description))
    case = decode_case(least.found.case, "x")
    judged = session.judge_subject(case.subject, case.check, case.label)
    assert first.name in judged.outcome.names
    return least.found, small


def wrong_when(condition: Callable[[Problem], bool]) -> Any:
    """A launcher that gets one bit wrong in launches of some kind."""

    def launch(problem: Problem, flow: Any, **how: Any) -> Launch:
        told = reference_launch(problem, flow, **how)
        if not condition(problem) or not problem.valid_mask().any():
            return told
        logits = told.logits.copy()
        logits[:, : problem.max_context_len][problem.valid_mask()] ^= 1
        return replace(told, logits=logits)

    return launch


@pytest.mark.parametrize(
    ("condition", "lengths"),
    [
        (lambda p: True, (1,)),
        (lambda p: p.context_lens.max() > 128, (129,)),
        (lambda p: p.context_lens.max() > 64 and p.batch > 1, None),
        (lambda p: bool((p.context_lens[1:] == 0).any()), None),
    ],
)
def test_the_model_spoiled(condition: Any, lengths: tuple[int, ...] | None) -> None:
    found, small = found_and_minimised(MODEL, Session(MODEL, wrong_when(condition)))
    assert found.name.startswith("bits:")
    assert len(small.lengths) <= 2
    assert small.tiles <= 2
    assert small.overrides == ()
    assert lengths is None or small.lengths == lengths


def test_an_empty_row_between_others_is_what_is_left() -> None:
    """The eighth of the field's bugs: nothing smaller than three rows shows it."""

    def between(problem: Problem) -> bool:
        busy = np.flatnonzero(problem.context_lens)
        return bool(busy.size and (problem.context_lens[busy[0] : busy[-1]] == 0).any())

    with Session(MODEL, wrong_when(between)) as session:
        first = Description(lengths=(0, 0, 130, 0, 0, 0, 7, 0, 49, 0), data="bits")
        (found,) = session.found(first, session.judge(first, brief=True), 0, 0)
        least = minimise(MODEL, found, session)
    assert Description.from_plain(least.found.description).lengths == (1, 0, 1)
    assert least.evaluations < 40


def test_the_kernel_without_a_relu() -> None:
    """One instruction of the compiled kernel is another one; compiled and executed, not modelled."""
    campaign = replace(MODEL, kernel="builtin", bug="peer-10")
    with Session(campaign) as session:
        found, small = found_and_minimised(campaign, session)
    assert found.name.startswith("bits:")
    assert len(small.lengths) <= 2
    assert small.tiles <= 2


def test_the_kernel_as_it_is_does_not_fail_there() -> None:
    from mqa_ref.kernel.targets import resolve

    with launcher(resolve("builtin")) as launch, Session(replace(MODEL, kernel="builtin"), launch) as session:
        assert session.judge(Description(lengths=(65,), data="rms")).outcome.failures == ()


def test_inputs_taken_for_others_are_found_in_the_model() -> None:
    """The one bug of the field that needs no kernel: codes of 0x80 and more, sign-extended."""
    campaign = replace(MODEL, bug="peer-16", seed=1)
    with Session(campaign) as session:
        assert any(run_block(campaign, index, stop=True, session=session).failures for index in range(20))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, bug in BUGS.items() if bug.source])
def test_bugs_in_the_source_are_found(name: str) -> None:
    """Compiled, and run in a process of its own, until something fails; the first failure shrinks to two tiles."""
    checks = ("stale_schedule",) if name == "peer-07" else Campaign().checks
    campaign = Campaign(bug=name, seed=1, checks=checks)
    with Session(campaign) as session:
        _, small = found_and_minimised(campaign, session)
    assert len(small.lengths) <= 2
    assert small.tiles <= 2
