"""The self-check finds a planted disagreement between the two references, and says where."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mqa_ref.errors import InputError
from mqa_ref.flow import Flow
from mqa_ref.numerics.selfcheck import Count
from mqa_ref.reference import GENERATIONS, SUPPORTED_FLOWS
from mqa_ref.verification import selfcheck as module
from mqa_ref.verification.problems import quick
from mqa_ref.verification.selfcheck import Check, SelfCheck, check_logits, selfcheck

FLOW = Flow.parse("fp32-fp32-fp32")


@pytest.mark.parametrize("name", ["edges-of-a-split", "nan-keys", "overflow"])
def test_the_twins_agree(name: str) -> None:
    case = next(one for one in quick() if one.name == name)
    assert check_logits(case, FLOW, "folded", 3, seed=5) == Check(f"logits/{name}/{FLOW}/folded", 3, 0)


def test_a_disagreement_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(one for one in quick() if one.name == "one-token")
    monkeypatch.setattr(module, "scalar_logit", lambda *_: 0x3F800000)
    told = check_logits(case, FLOW, "folded", 3, seed=5)
    assert (told.tried, told.differing) == (1, 1)
    assert told.first.startswith("row 0 column 0: 0x")
    assert told.first.endswith(" against 0x3f800000")


def test_nan_against_a_number_is_a_disagreement(monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(one for one in quick() if one.name == "one-token")
    bits = np.array([[0x7FC00000]], np.uint32)
    monkeypatch.setattr(module, "reference_logits", lambda *_, **__: (bits, np.ones((1, 1), np.bool_)))
    monkeypatch.setattr(module, "scalar_logit", lambda *_: 0)
    assert check_logits(case, FLOW, "folded", 1, seed=0).differing == 1
    monkeypatch.setattr(module, "scalar_logit", lambda *_: 0xFFC00001)
    assert check_logits(case, FLOW, "folded", 1, seed=0).differing == 0


def test_the_whole_with_a_broken_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqa_ref.numerics.selfcheck.run", lambda seed: {"fma_f32": Count(10, 1)})
    monkeypatch.setattr(module, "quick", lambda: ())
    result = selfcheck()
    assert (result.status, result.exit_code, result.tried, result.differing) == ("error", 3, 10, 1)
    told = json.loads(result.to_json())
    assert (told["version"], told["status"], told["mismatched"], told["findings"]) == (1, "error", 1, 0)


def test_the_plan_has_every_problem_flow_and_generation() -> None:
    lines = module.plan()
    assert {case.name for case, _, _ in lines} == {one.name for one in quick()}
    ways = {(str(flow), generation) for _, flow, generation in lines}
    assert ways == {(flow, generation) for flow in SUPPORTED_FLOWS for generation in GENERATIONS}
    assert len(lines) == len({(case.name, str(flow), generation) for case, flow, generation in lines})


def test_nothing_compared_is_no_pass() -> None:
    assert SelfCheck((), 0, 0, 0.0).exit_code == 3


def test_bad_arguments() -> None:
    with pytest.raises(InputError) as caught:
        selfcheck(seed=-1, samples=0)
    assert [fault.argument for fault in caught.value.faults] == ["seed", "samples"]
