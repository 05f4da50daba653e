"""What a campaign writes for machines holds to the schema; what it writes for people shows every coverpoint."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from mqa_ref.fuzz.campaign import Campaign
from mqa_ref.fuzz.casefile import read_case
from mqa_ref.fuzz.model import NAME
from mqa_ref.fuzz.page import page, pictures
from mqa_ref.fuzz.replay import ReplayReport
from mqa_ref.fuzz.report import FuzzReport
from mqa_ref.fuzz.runner import run_campaign
from mqa_ref.fuzz.session import Session
from mqa_ref.report.schema import faults_of_json

BROKEN = Campaign(kernel=NAME, seed=1903, bug="peer-16", flows=("fp32-fp32-fp32",), options=False, checks=())


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> FuzzReport:
    return run_campaign(BROKEN, max_examples=4, folder=tmp_path_factory.mktemp("db"))


def test_the_json_holds_to_the_schema(report: FuzzReport) -> None:
    value = json.loads(report.to_json())
    assert faults_of_json(value) == ()
    assert faults_of_json(value | {"status": "well"})
    del value["seed"]
    assert faults_of_json(value)


def test_the_json_of_a_replay_holds_to_the_schema(report: FuzzReport) -> None:
    path: Any = report.reported[0].path
    case = read_case(path)
    with Session(BROKEN) as session:
        judged = session.judge_subject(case.subject, case.check, case.label)
    value = json.loads(ReplayReport(path, case, BROKEN, judged, 1.0).to_json())
    assert value["status"] == "fail"
    assert faults_of_json(value) == ()
    assert faults_of_json(value | {"exit_code": "one"})


def test_the_page_shows_coverpoints_failures_and_nothing_from_outside(report: FuzzReport) -> None:
    drawn = pictures(report)
    for svg in drawn.values():
        ET.fromstring(svg)
    told = page(replace(report, campaign=replace(BROKEN, kernel="<script>x</script>")))
    assert "<script" not in told
    assert "&lt;script&gt;" in told
    for name in report.coverpoints:
        assert name[:35] in drawn["coverpoints.svg"]
    hit = [name for name in report.coverpoints if name not in report.unhit]
    assert drawn["coverpoints.svg"].count(">none<") == len(report.coverpoints) - len(hit)
    for one in report.reported:
        assert one.found.name in told
    assert str(Path(report.reported[0].path or "").name) in told
