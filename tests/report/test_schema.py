"""Every JSON object that a checking command writes holds to the schema, and the schema refuses what is none."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import mqa_ref
from mqa_ref.compare.tolerances.check import CheckReport
from mqa_ref.compare.tolerances.check import Fault as ToleranceFault
from mqa_ref.golden.check import GoldenReport, Outcome
from mqa_ref.report import Report
from mqa_ref.report.schema import PATH, faults_of_json, schema
from mqa_ref.result import VERSION
from mqa_ref.verification.selfcheck import Check, SelfCheck

ReportOf = Callable[..., Report]


def plain(text: str) -> Any:
    return json.loads(text)


def test_the_schema_itself_is_one() -> None:
    Draft202012Validator.check_schema(schema())
    assert PATH.name == f"report-{VERSION}.json"
    assert schema()["properties"]["version"] == {"const": VERSION}


def test_every_reference_of_the_schema_leads_somewhere() -> None:
    names = set(re.findall(r'"#/\$defs/([^"]+)"', PATH.read_text(encoding="utf-8")))
    assert names <= set(schema()["$defs"])
    assert len(names) > 15


@pytest.mark.parametrize(
    "names", [("good",), ("good", "wrong", "hazard", "crashed", "refused"), ("crashed",), ()], ids=str
)
def test_verify(report_of: ReportOf, names: tuple[str, ...]) -> None:
    assert faults_of_json(plain(report_of(*names).to_json())) == ()


def test_golden_check() -> None:
    good = Outcome("a", "logits", "pass", 10, 0)
    bad = Outcome("b", "schedule", "fail", 0, 2, ("b.safetensors is missing",))
    for outcomes, unused in (((good,), ()), ((good, bad), ("c",)), ((Outcome("d", "x", "error", 0, 1),), ())):
        assert faults_of_json(plain(GoldenReport(outcomes, unused, 0.5).to_json())) == ()


def test_selfcheck() -> None:
    for checks in ((Check("fma", 100, 0),), (Check("fma", 100, 1, "0x1 against 0x2"),), ()):
        assert faults_of_json(plain(SelfCheck(checks, 10, 3, 0.5).to_json())) == ()


def test_tolerances_check() -> None:
    fault = ToleranceFault("fp32-fp32-fp32", "exact", "loose", "much too loose")
    for faults in ((), (fault,)):
        report = CheckReport(("fp32-fp32-fp32",), 3, 100, faults, 21, 0.5)
        assert faults_of_json(plain(report.to_json())) == ()


BREAKS: dict[str, Callable[[dict[str, Any]], object]] = {
    "version": lambda told: told.update(version=2),
    "command": lambda told: told.pop("command"),
    "status": lambda told: told.update(status="failed"),
    "exit_code": lambda told: told.update(exit_code=6),
    "exit_code of a failure": lambda told: told.update(exit_code=0),
    "backend": lambda told: told.update(backend="none"),
    "flow": lambda told: told.update(flow=["fp32-fp32-fp32"]),
    "seconds": lambda told: told.update(seconds=-1),
    "logits": lambda told: told.update(logits=1.5),
    "a case's status": lambda told: told["case_list"][0].update(status="fine"),
    "a case's unknown field": lambda told: told["case_list"][0].update(new=1),
    "a mismatch without its place": lambda told: told["case_list"][1]["comparison"]["first"][0].pop("cta"),
    "a word": lambda told: told["case_list"][1]["comparison"]["first"][0].update(expected="3f800000"),
    "a class": lambda told: told["case_list"][1]["comparison"]["counts"].update(strange=1),
    "a finding's count": lambda told: told["finding_list"][0].update(count=0),
    "clusters": lambda told: told.pop("clusters"),
}


@pytest.mark.parametrize("name", list(BREAKS))
def test_a_broken_report_is_refused(report_of: ReportOf, name: str) -> None:
    told = plain(report_of("good", "wrong", "hazard").to_json())
    assert faults_of_json(told) == ()
    broken = copy.deepcopy(told)
    BREAKS[name](broken)
    assert len(faults_of_json(broken)) >= 1


@pytest.mark.parametrize("value", [None, [], {}, "text", 1])
def test_what_is_no_report(value: object) -> None:
    assert faults_of_json(value)


def test_no_command_writes_a_head_of_its_own() -> None:
    """Every module that writes the version of the object does so through ``result_values``."""
    root = Path(mqa_ref.__file__).parent
    own = [
        path for path in root.rglob("*.py") if re.search(r'"exit_code":', path.read_text(encoding="utf-8"))
    ]
    assert [path.name for path in own] == ["result.py"]
