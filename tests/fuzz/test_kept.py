"""Failing cases of a run as case files: what is kept, what is not, and that a file says what failed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqa_ref.findings import Finding
from mqa_ref.fuzz import kept
from mqa_ref.fuzz.casefile import read_case
from mqa_ref.fuzz.kept import Keeper, case_of
from mqa_ref.kernel.targets import Declared
from mqa_ref.launch import Launch
from mqa_ref.problem import Problem
from mqa_ref.reference import reference_logits
from mqa_ref.verification.evidence import Seen
from mqa_ref.verification.request import by_name
from mqa_ref.verification.verify import verify


def seen(
    monkeypatch: pytest.MonkeyPatch, *names: str, spoil: bool = True, finding: bool = False
) -> list[Seen]:
    """What a watcher is shown of a run whose launches answer from the reference, with one flipped bit."""

    def launch(target: Any, problem: Problem, flow: Any, **named: Any) -> Launch:
        bits, valid = reference_logits(problem, flow)
        logits = np.zeros((problem.rows, problem.row_stride), np.uint32)
        logits[:, : bits.shape[1]] = bits
        written = np.ones(logits.shape, np.bool_)
        if spoil:
            row, column = np.argwhere(valid)[0]
            logits[row, column] ^= np.uint32(1)
        found = (
            (Finding("race_shared", "error", "two warps", 0, 1, 7, "st.shared.b32 [%r1], %r2;"),)
            if finding
            else ()
        )
        return Launch(logits, written, found, problem.num_sms, 1, 0.0)

    monkeypatch.setattr("mqa_ref.verification.runner.launch", launch)
    found: list[Seen] = []
    verify(problems=by_name(names), orders=["lazy"], watch=found.append)
    return found


def test_a_file_holds_the_launch_and_says_what_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = Keeper(tmp_path / "cases")
    (one,) = seen(monkeypatch, "edges-of-a-split")
    keeper(one)
    keeper(one)  # the same launch with the same failure, as in another interleaving
    (path,) = keeper.kept
    assert path.name == f"bits-value-{one.problem.case_id}.case"
    case = read_case(path)
    assert case.subject.problem.case_id == one.problem.case_id
    assert np.array_equal(case.subject.problem.schedule, one.problem.schedule)
    assert (case.kernel, case.failure, case.machine, case.generation) == (
        "builtin",
        "bits:value",
        "sm100",
        "folded",
    )
    assert (case.subject.order, str(case.subject.flow)) == ("lazy", "fp32-fp32-fp32")
    assert "1 of" in case.message
    assert list(keeper.lines()) == [
        f"case file {path}",
        f"  REPRO: mqa-ref replay {path} --kernel builtin",
        f"  EXPLAIN: mqa-ref explain {path} --kernel builtin",
    ]


def test_findings_are_kept_and_passing_cases_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper = Keeper(tmp_path / "cases")
    (good,) = seen(monkeypatch, "one-token", spoil=False)
    keeper(good)
    assert not (tmp_path / "cases").exists()
    (bad,) = seen(monkeypatch, "one-token", spoil=False, finding=True)
    keeper(bad)
    assert read_case(keeper.kept[0]).failure == "finding:race_shared@st.shared.b32"


def test_only_the_first_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST_KEPT", 1)
    keeper = Keeper(tmp_path)
    for one in seen(monkeypatch, "one-token", "lonely-page", "small-pages"):
        keeper(one)
    assert (len(keeper.kept), keeper.left_out) == (1, 2)
    assert list(keeper.lines())[-1].startswith("2 failing cases more")


def test_what_a_replay_would_judge_otherwise_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    (one,) = seen(monkeypatch, "one-token")
    assert case_of(one) is not None

    def with_side(**changes: Any) -> Seen:
        return replace(one, request=replace(one.request, own=replace(one.request.own, **changes)))

    assert case_of(with_side(declared=Declared(order=None))) is None
    assert case_of(with_side(declared=Declared(order="deepgemm_sm100"))) is None
    assert case_of(with_side(edit_ptx=lambda text: text)) is None
    assert case_of(with_side(options={"num_epi_subtiles": 1.5})) is None
    told = case_of(with_side(options={"w_cache_regs": None, "num_epi_subtiles": 2}))
    assert told is not None
    assert dict(told.subject.options) == {"num_epi_subtiles": 2}
