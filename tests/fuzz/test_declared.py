"""A campaign holds each kernel to what that kernel declares: its ReLU, its tensor core, the order in which it adds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mqa_ref.flow import Flow
from mqa_ref.fuzz.campaign import check_campaign
from mqa_ref.fuzz.model import reference_launch
from mqa_ref.fuzz.session import Session
from mqa_ref.fuzz.subject import Subject
from mqa_ref.kernel.targets import resolve
from mqa_ref.launch import Launch
from mqa_ref.problem import Problem
from mqa_ref.reference import reference_logits
from mqa_ref.verification.problems import Recipe, make

FLOW = Flow.parse("fp32-fp32-fp32")
DECLARED = {
    "builtin": ("sm100", "folded"),
    "flashinfer": ("sm100", "max_nan"),
    "deepgemm": ("sm90", "max"),
}
"""Tensor core and ReLU, from docs/targets.md."""


@pytest.mark.parametrize("kernel", DECLARED)
def test_a_campaign_takes_what_the_kernel_declares(kernel: str) -> None:
    campaign = check_campaign(kernel=kernel, flow=str(FLOW))
    assert (campaign.machine, campaign.generation) == DECLARED[kernel]
    chosen = check_campaign(kernel=kernel, flow=str(FLOW), machine="exact", generation="max")
    assert (chosen.machine, chosen.generation) == ("exact", "max")


def answering(**how: Any) -> Any:
    """A launcher that answers with the reference of these arguments."""

    def launch(problem: Problem, flow: Flow, **_: Any) -> Launch:
        bits, valid = reference_logits(problem, flow, **how)
        outcome = reference_launch(problem, flow)
        logits = outcome.logits.copy()
        logits[:, : bits.shape[1]][valid] = bits[valid]
        return replace(outcome, logits=logits)

    return launch


@pytest.mark.parametrize(
    ("how", "right"),
    [
        ({"machine": "sm90", "generation": "max", "order": "deepgemm_sm90"}, True),
        ({"machine": "sm90", "generation": "max"}, False),
        ({"machine": "sm100", "generation": "max", "order": "deepgemm_sm90"}, False),
    ],
)
def test_bits_in_the_order_of_deepgemm(how: dict[str, Any], right: bool) -> None:
    problem = make(Recipe("declared", "two rows", (129, 65), 2, data="wide")).problem
    campaign = check_campaign(kernel="deepgemm", flow=str(FLOW))
    with Session(campaign, launch=answering(**how)) as session:
        judged = session.judge_subject(Subject(problem, FLOW, options={}), "", "declared/0")
    assert judged.outcome.names == (frozenset() if right else frozenset({"bits:value"}))
    own = resolve("deepgemm").scheduled(problem).schedule
    assert np.array_equal(judged.subject.problem.schedule, own)
