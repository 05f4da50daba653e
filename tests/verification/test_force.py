"""Schedules that do not fit: refused before the launch, launched when forced, and what happens then is told soon."""

from __future__ import annotations

import re

import numpy as np
import pytest

from mqa_ref.cli.app import run
from mqa_ref.errors import InputError
from mqa_ref.problem import Problem
from mqa_ref.verification.given import given
from mqa_ref.verification.verify import verify

BUDGETED_SECONDS = 60


@pytest.fixture(scope="module")
def problem() -> Problem:
    return given([200, 300], num_sms=3, heads=32).problem


def test_a_forced_schedule_is_kept_with_its_faults(problem: Problem) -> None:
    stale = np.array([[0, 0], [0, 2], [1, 1], [2, 0]], np.int32)
    forced = problem.forced(stale)
    stale[:] = 0
    assert forced.schedule.tolist() == [[0, 0], [0, 2], [1, 1], [2, 0]]
    assert [fault.kind for fault in forced.schedule_faults] == ["stale", "no_termination"]
    assert problem.schedule_faults == ()
    assert forced.case_id != problem.case_id
    assert forced.forced(problem.schedule).case_id == problem.case_id
    with pytest.raises(ValueError, match="read-only"):
        forced.schedule[0, 0] = 1


@pytest.mark.parametrize(
    "schedule",
    [np.zeros((3, 2), np.int32), np.zeros((4, 2), np.int64), np.zeros(8, np.int32), [[0, 0]] * 4, None],
)
def test_what_is_no_schedule_cannot_be_forced(problem: Problem, schedule: np.ndarray) -> None:
    with pytest.raises(InputError, match="dtype int32, shape"):
        problem.forced(schedule)


def test_refused_before_the_launch_unless_forced() -> None:
    stale = given([200, 300], num_sms=3, heads=32, schedule_for=[600, 300])
    fits = given([256], schedule_for=[255])
    assert (fits.problem.schedule_faults, fits.select[-2:]) == ((), ("--schedule-for", "255"))
    with pytest.raises(InputError) as caught:
        verify(problems=[stale, fits])
    (fault,) = caught.value.faults
    assert fault.argument == "schedule of given"
    assert "made for other lengths" in fault.value
    assert "--force" in fault.expected


def test_the_builtin_kernel_ends_and_gives_what_the_schedule_asks_for() -> None:
    """CTA 0 has all of row 0, although its end lies behind it; nothing of row 1 is lost."""
    stale = given([200, 300], num_sms=3, heads=32, schedule_for=[600, 300])
    report = verify(problems=[stale], force=True, orders=["eager"])
    assert (report.status, report.logits, report.findings) == ("pass", 500, 0)


def endless(ptx: str) -> str:
    """Every warp jumps to itself at its first instruction."""
    changed, count = re.subn(
        r"^(\s*(?:ld\.param|mov|cvta)\S*\s)",
        r"ENDLESS: bra ENDLESS;\n\1",
        ptx,
        count=1,
        flags=re.MULTILINE,
    )
    assert count == 1
    return changed


def test_a_walk_that_never_ends_is_stopped_and_told() -> None:
    stale = given([200, 300], num_sms=3, heads=32, schedule_for=[600, 300])
    report = verify(problems=[stale], force=True, orders=["eager"], edit_ptx=endless)
    assert report.status == "fail"
    (finding,) = report.case_list[0].findings
    assert (finding.kind, finding.count) == ("runaway", 3)
    assert report.seconds < BUDGETED_SECONDS


def test_the_upstream_kernel_hangs_and_the_report_says_who_waits() -> None:
    stale = given([200, 300], num_sms=3, schedule_for=[600, 300])
    report = verify("sglang", problems=[stale], force=True, orders=["eager"])
    kinds = {finding.kind: finding for finding in report.case_list[0].errors}
    assert report.status == "fail"
    assert "warp 0 waits for the mbarrier" in kinds["hang"].message
    assert kinds["hang"].cta == 0
    assert report.seconds < BUDGETED_SECONDS
    assert (
        "--context-lens 200,300 --num-sms 3 --page 64 --heads 64 --next-n 1 --schedule-for 600,300 --force"
        in (report.repro(report.case_list[0]))
    )


def test_by_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["verify", "--context-lens", "256", "--schedule-for", "257", "--heads", "32", "--order", "lazy"]
    assert run(line) == 2
    assert "error: schedule of given: got entry" in capsys.readouterr().err
    assert run([*line, "--force"]) == 0
    assert "given  256" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--schedule-for 3", "--schedule-for: got 3, expected --context-lens"),
        ("--context-lens 3 --case long", "--case: got long"),
        ("--context-lens -3", "context_lens: got -3"),
        ("--context-lens 3 --page 48", "page: got 48"),
        ("--context-lens 3 --heads 6", "H = 6"),
        ("--context-lens 3 --num-sms 0", "num_sms: got 0"),
    ],
)
def test_bad_numbers(capsys: pytest.CaptureFixture[str], line: str, told: str) -> None:
    assert run(["verify", *line.split()]) == 2
    assert told in capsys.readouterr().err
