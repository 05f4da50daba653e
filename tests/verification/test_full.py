"""The level "full" and the run over all flows: what they hold, and a sample of them executed."""

from __future__ import annotations

from itertools import combinations

import pytest

from mqa_ref.flow import FLOWS
from mqa_ref.verification.full import FACTORS, SWITCHES, full
from mqa_ref.verification.problems import quick
from mqa_ref.verification.request import by_name, of_level
from mqa_ref.verification.verify import verify


def test_every_option_meets_every_other_and_every_flow() -> None:
    cases = full("all")
    assert {str(case.flow) for case in cases} == set(FLOWS)
    for first, second in combinations(SWITCHES, 2):
        seen = {((case.options or {})[first], (case.options or {})[second]) for case in cases}
        assert len(seen) == 4, (first, second)
    for name in ("max_w_in_reg", "num_epi_subtiles"):
        for flow in FLOWS:
            values = {(case.options or {})[name] for case in cases if str(case.flow) == flow}
            assert values == set(FACTORS[name]), (name, flow)
    assert {(case.problem.heads, case.problem.next_n) for case in cases} == set(FACTORS["shape"])
    assert {case.problem.page for case in cases} == {32, 64, 128}
    assert {case.interleaving for case in cases} == {"eager", "lazy", "random", "systematic"}
    assert len({case.name for case in cases}) == len(cases) < 120


def test_all_flows_over_the_quick_set() -> None:
    cases = of_level("quick", "all")
    assert len(cases) == len(FLOWS) * len(quick())
    assert {case.name for case in cases} == {f"{one.name}/{flow}" for one in quick() for flow in FLOWS}


@pytest.mark.parametrize(
    "number", [0, 17, 46, 58, *(pytest.param(number, marks=pytest.mark.slow) for number in (31, 73))]
)
def test_a_sample_of_the_level_passes(number: int) -> None:
    report = verify(problems=by_name([f"full-{number}"], "full", "all"), flow="all", level="full")
    (case,) = report.case_list
    assert (report.status, report.mismatched, report.findings) == ("pass", 0, 0), case.message
    assert report.flow == "all"
    assert case.shape["options"] == dict(full("all")[number].options or {})
    assert f"--level full --case full-{number}" in report.repro(case)


def test_all_flows_of_one_problem() -> None:
    report = verify(problems=by_name(["tight-table"]), flow="all")
    assert (report.status, report.mismatched, report.findings) == ("pass", 0, 0)
    assert {case.shape["flow"] for case in report.case_list} == set(FLOWS)
    repro = report.repro(report.case_list[-1])
    assert repro.index("--flow all") < repro.index(f"--case tight-table --flow {FLOWS[-1]}")
