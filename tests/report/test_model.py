"""The verdict, the exit code and the JSON object of made-up runs."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from mqa_ref.report import CaseResult, Report, environment

ReportOf = Callable[..., Report]

VERDICTS = [
    (("good",), "pass", 0),
    (("good", "refused"), "pass", 0),
    (("good", "wrong"), "fail", 1),
    (("good", "hazard"), "fail", 1),
    (("good", "crashed"), "fail", 1),
    (("crashed",), "error", 5),
    (("refused",), "error", 5),
    (("crashed", "refused"), "error", 5),
    ((), "error", 5),
]


@pytest.mark.parametrize(("names", "status", "code"), VERDICTS)
def test_the_verdict(report_of: ReportOf, names: tuple[str, ...], status: str, code: int) -> None:
    report = report_of(*names)
    assert (report.status, report.exit_code) == (status, code)


@pytest.mark.parametrize(
    ("errors", "code"),
    [
        (["NotAvailable"], 4),
        (["InputError"], 2),
        (["InputError", "KernelTimeout"], 5),
        (["OracleError"], 3),
        (["NotAvailable", "OracleError"], 3),
        (["NotAvailable", "EmulatorError"], 5),
    ],
)
def test_why_nothing_ran_decides_the_code(report_of_cases: ReportOf, errors: list[str], code: int) -> None:
    cases = [CaseResult("x", "id", "why", {}, "eager", "error", 0.0, error=error) for error in errors]
    assert report_of_cases(*cases).exit_code == code


def test_the_json_object(report_of: ReportOf) -> None:
    told = json.loads(report_of("good", "wrong", "hazard", "crashed", "refused").to_json())
    head = {name: value for name, value in told.items() if not isinstance(value, list | dict)}
    assert head == {
        "version": 1,
        "command": "verify",
        "status": "fail",
        "exit_code": 1,
        "kernel": "builtin",
        "backend": "emulator",
        "flow": "fp32-fp32-fp32",
        "machine": "sm100",
        "generation": "folded",
        "expect": "bits",
        "level": "quick",
        "cases": 5,
        "executed": 3,
        "interleavings": 3,
        "known_findings": 0,
        "baseline": None,
        "logits": 3 * 429,
        "ctas": 20,
        "mismatched": 128,
        "findings": 1,
        "seed": 3,
        "cases_pass": 1,
        "cases_fail": 2,
        "cases_error": 1,
        "cases_unsupported": 1,
        "seconds": 1.25,
    }
    assert told["environment"] == {"python": "3.11.7", "numpy": "2.4.6"}
    assert [case["status"] for case in told["case_list"]] == ["pass", "fail", "fail", "error", "unsupported"]


def test_a_case_in_json(report_of: ReportOf) -> None:
    told = json.loads(report_of("wrong", "crashed").to_json())
    wrong, crashed = told["case_list"]
    assert wrong["case_id"] == "wrong-id"
    assert wrong["comparison"]["where"] == ["every compared element of tile 1 of row 2 and no other"]
    assert wrong["comparison"]["counts"]["value"] == 128
    assert wrong["comparison"]["calc_diff"] == "nan"
    first, lost = wrong["comparison"]["first"]
    assert (first["row"], first["page_id"], first["cta"], first["expected"]) == (2, 7, 3, "0x3f800000")
    assert (lost["expected_value"], lost["ulp"]) == ("nan", None)
    assert (crashed["comparison"], crashed["error"]) == (None, "EmulatorError")


def test_findings_in_json_say_where(report_of: ReportOf) -> None:
    race, note = json.loads(report_of("hazard").to_json())["finding_list"]
    assert (race["case"], race["kind"], race["cta"], race["ptx_line"], race["count"]) == (
        "hazard",
        "race_shared",
        3,
        120,
        4,
    )
    assert note["severity"] == "info"


def test_the_repro_is_a_command(report_of: ReportOf) -> None:
    report = report_of("wrong")
    assert report.repro(report.case_list[0]) == (
        "mqa-ref verify --kernel builtin --on emulator --flow fp32-fp32-fp32 --machine sm100"
        " --generation folded --order eager --case wrong --seed 3"
    )


def test_the_environment_names_what_decides_a_result() -> None:
    told = environment()
    assert set(told) == {
        "python",
        "platform",
        "mqa-ref",
        "numpy",
        "ml_dtypes",
        "nvidia-cutlass-dsl",
        "llvmlite",
    }
    assert all(told.values())
