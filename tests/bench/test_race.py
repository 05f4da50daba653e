"""The arithmetic of the benchmark, with a clock that is told the time."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mqa_ref.bench import measures, report, work
from mqa_ref.bench.race import Race, quartiles, race, summary
from mqa_ref.bench.results import Line, Target, of_race
from mqa_ref.cli.app import run
from mqa_ref.errors import NotAvailable
from mqa_ref.report.schema import faults_of_json


class Clock:
    """Time that only work makes pass."""

    def __init__(self) -> None:
        self.now, self.log = 0.0, ""

    def work(self, name: str, *seconds: float) -> Any:
        times = iter(seconds)

        def do() -> None:
            self.log += name
            self.now += next(times)

        return do


def test_both_run_in_turn_and_the_first_run_does_not_count() -> None:
    clock = Clock()
    ours, theirs = clock.work("o", 50, 2, 3, 8), clock.work("t", 90, 1, 2, 2)
    found = race(ours, theirs, 3, lambda: clock.now)
    assert clock.log == "ot" + "ot" + "to" + "ot"
    assert found == Race(ratio=2.0, low=1.75, high=3.0, ours=3, theirs=2, rounds=3)


def test_quartiles() -> None:
    assert quartiles([7.0]) == (7.0, 7.0, 7.0)
    assert quartiles([5.0, 1.0, 2.0, 4.0, 3.0]) == (2.0, 3.0, 4.0)


def test_how_much_faster() -> None:
    found = summary([(1.0, 100.0), (1.0, 200.0), (1.0, 400.0)])
    line = of_race("n", "w", Target("times faster", 100, at_most=False), found, faster=True)
    assert [line.value, line.low, line.high] == pytest.approx([200, 400 / 3, 800 / 3])
    assert line.verdict == "pass"


@pytest.mark.parametrize(
    ("value", "limit", "at_most", "absent", "verdict"),
    [
        (2.0, 2.0, True, "", "pass"),
        (2.01, 2.0, True, "", "short"),
        (2.0, 2.0, False, "", "pass"),
        (1.99, 2.0, False, "", "short"),
        (9.0, None, True, "", "told"),
        (0.0, 2.0, True, "no torch", "absent"),
    ],
)
def test_verdicts(value: float, limit: float | None, at_most: bool, absent: str, verdict: str) -> None:
    assert Line("n", "w", Target("u", limit, at_most), value, absent=absent).verdict == verdict


PASS, SHORT = Line("a", "w", Target("u", 2.0), 1.0), Line("b", "w", Target("u", 2.0), 3.0)
WRONG, ABSENT = (
    Line("c", "w", Target("u", 2.0), 1.0, logits=9, mismatched=1),
    Line("d", "w", Target(""), absent="x"),
)


@pytest.mark.parametrize(
    ("lines", "code", "status"),
    [
        ([PASS, ABSENT], 0, "pass"),
        ([PASS, SHORT], 1, "fail"),
        ([SHORT, WRONG], 3, "error"),
        ([ABSENT], 5, "error"),
    ],
)
def test_exit_codes(lines: list[Line], code: int, status: str) -> None:
    found = report.BenchReport(tuple(lines), report.machine(), 5, 1.0)
    assert (found.exit_code, found.status) == (code, status)
    assert all(line.name in report.render(found) for line in lines)
    plain = json.loads(found.to_json())
    assert [(one["name"], one["verdict"]) for one in plain["lines"]] == [
        (line.name, line.verdict) for line in lines
    ]
    assert (plain["command"], plain["status"], plain["cases"]) == ("bench", status, len(lines))


def test_a_peer_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(problem: object) -> None:
        raise NotAvailable("no torch here")

    monkeypatch.setattr(work, "torch_logits", absent)
    assert measures.measure("reference-normal", 1).absent == "no torch here"


def test_the_command(tmp_path: Any, capsys: Any) -> None:
    file = tmp_path / "out.json"
    code = run(
        ["bench", "--only", "reference-linear", "--only", "start-up", "--rounds", "1", "--json", str(file)]
    )
    plain = json.loads(file.read_text())
    assert not faults_of_json(plain)
    assert code == plain["exit_code"] in (0, 1)
    assert [one["name"] for one in plain["lines"]] == ["reference-linear", "start-up"]
    assert all(0 < one["low"] <= one["value"] <= one["high"] for one in plain["lines"])
    assert "reference-linear" in capsys.readouterr().out


def test_bad_requests(capsys: Any) -> None:
    assert run(["bench", "--only", "nothing", "--rounds", "0"]) == 2
    told = capsys.readouterr().err
    assert "--only" in told
    assert "--rounds" in told


def test_the_bits_are_compared_with_the_peer() -> None:
    pytest.importorskip("mmasim")
    line = measures.reference_wide(1)
    assert (line.logits, line.mismatched) == (256, 0)


def test_wrong_bits_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mmasim")
    real = work.mmasim_dots

    def off_by_one(problem: Any) -> Any:
        return lambda: real(problem)() + 1

    monkeypatch.setattr(work, "mmasim_dots", off_by_one)
    assert measures.reference_wide(1).mismatched > 128
