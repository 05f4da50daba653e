"""Campaigns from end to end: every class once, kept on disk whatever happens, tried again, and told."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mqa_ref.errors import InputError
from mqa_ref.fuzz.campaign import BlockResult, Campaign, merge
from mqa_ref.fuzz.casefile import read_case, write_case
from mqa_ref.fuzz.model import NAME
from mqa_ref.fuzz.report import lines
from mqa_ref.fuzz.runner import run_campaign
from mqa_ref.fuzz.session import Session
from mqa_ref.fuzz.workers import UNSHRUNK, Answer, Inline, Task

PLAIN: dict[str, Any] = {"flows": ("fp32-fp32-fp32",), "options": False, "checks": (), "orders": ("eager",)}
BROKEN = Campaign(kernel=NAME, seed=1903, bug="peer-16", **PLAIN)
"""The shapes of its first four blocks are small."""
WHOLE = replace(BROKEN, bug="")


@pytest.fixture(autouse=True)
def in_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """What gives wrong bits is looked for by the tests of ``compare``; it takes most of the time of such campaigns."""
    monkeypatch.setattr("mqa_ref.fuzz.block.DETAILED", 0)
    monkeypatch.setattr("mqa_ref.fuzz.runner.MOST_MINIMISED", 1)


def test_a_failure_is_kept_told_and_tried_again(tmp_path: Path) -> None:
    report = run_campaign(BROKEN, max_examples=4, folder=tmp_path)
    assert (report.status, report.exit_code, report.totals.examples) == ("fail", 1, 4)
    first = report.reported[0]
    assert first.path is not None
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        one.path.name for one in report.reported if one.path is not None
    )
    told = "\n".join(lines(report))
    assert f"mqa-ref replay {first.path} --kernel {NAME} --on emulator" in told
    assert first.count <= 4
    assert len({one.found.name for one in report.reported}) == len(report.reported)

    case = read_case(first.path)
    assert (case.failure, case.kernel) == (first.found.name, NAME)
    again = run_campaign(BROKEN, max_examples=1, folder=tmp_path)
    assert first.found.name in {one.name for one in again.saved[str(first.path)]}
    mended = run_campaign(WHOLE, max_examples=1, folder=tmp_path)
    assert str(first.path) in mended.mended
    assert mended.status == "pass"
    assert first.path.exists()


class Recording(Inline):
    """Keeps what the blocks of a campaign gave."""

    def __init__(self, campaign: Campaign, kept: list[BlockResult]) -> None:
        super().__init__(campaign)
        self.kept = kept

    def run(self, tasks: Iterable[Task]) -> Iterator[Answer]:
        for answer in super().run(tasks):
            if isinstance(answer, BlockResult):
                self.kept.append(answer)
            yield answer


def test_merged_shards_are_the_single_run() -> None:
    """Three shards of a campaign that fails, each run by itself, against the whole campaign in one process: counts,
    coverage, properties, failures with their places, and the digest of all examples."""
    alone = run_campaign(BROKEN, max_examples=34)
    kept: list[BlockResult] = []
    reports = [
        run_campaign(BROKEN, max_examples=34, shard=(number, 3), runner=Recording(BROKEN, kept))
        for number in (1, 2, 3)
    ]
    assert [one.totals.blocks for one in reports] == [1, 1, 1]
    assert merge(kept) == alone.totals
    assert alone.totals.counts
    assert sum(one.totals.examples for one in reports) == alone.totals.examples
    assert {one.found.name for report in reports for one in report.reported} == {
        one.found.name for one in alone.reported
    }
    with pytest.raises(ValueError, match="more than once"):
        merge([*kept, kept[0]])


def test_the_whole_model_passes_and_says_what_it_met() -> None:
    report = run_campaign(WHOLE, max_examples=4)
    assert (report.status, report.exit_code, report.reported) == ("pass", 0, ())
    plain = report.as_dict()
    assert (plain["cases"], plain["mismatched"], plain["status"]) == (4, 0, "pass")
    assert plain["coverage"]["flow.fp32-fp32-fp32"] == 4
    assert "  unhit  " + report.unhit[0] in list(lines(report))
    required = replace(report, required=True)
    assert (required.status, required.exit_code) == ("fail", 1)
    everything = replace(report.totals, coverage=dict.fromkeys(report.coverpoints, 1))
    assert replace(required, totals=everything).exit_code == 0


def test_nothing_ran() -> None:
    def refuse(*given: Any, **named: Any) -> Any:
        from mqa_ref.errors import Unsupported

        raise Unsupported("no")

    report = run_campaign(WHOLE, max_examples=3, runner=Inline(WHOLE, "", Session(WHOLE, refuse)))
    assert (report.status, report.exit_code, report.totals.unsupported) == ("error", 5, 3)


def _endless(folder: str) -> None:
    run_campaign(BROKEN, seconds=600, folder=Path(folder))


def test_a_run_that_is_killed_has_kept_what_it_found(tmp_path: Path) -> None:
    process = multiprocessing.get_context("fork").Process(target=_endless, args=(str(tmp_path),))
    process.start()
    limit = time.monotonic() + 120
    while not list(tmp_path.glob(f"{UNSHRUNK}*.case")) and time.monotonic() < limit:
        time.sleep(0.05)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    kept = [path for path in tmp_path.iterdir() if not path.name.startswith(".")]
    assert kept
    for path in kept:
        assert read_case(path).failure
    again = run_campaign(BROKEN, max_examples=1, folder=tmp_path)
    assert set(again.saved) >= {str(path) for path in kept if read_case(path).failure.startswith("bits:")}


def test_a_file_that_is_no_case_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.case").write_bytes(b"not a case")
    with pytest.raises(InputError, match=r"x\.case"):
        run_campaign(WHOLE, max_examples=1, folder=tmp_path)


def test_the_cases_of_another_kernel_are_left_alone(tmp_path: Path) -> None:
    run_campaign(BROKEN, max_examples=4, folder=tmp_path)
    path = next(tmp_path.iterdir())
    write_case(tmp_path, replace(read_case(path), kernel="sglang"))
    path.rename(tmp_path / "kept.txt")
    for other in tmp_path.glob("*.case"):
        if read_case(other).kernel == NAME:
            other.unlink()
    report = run_campaign(WHOLE, max_examples=1, folder=tmp_path)
    assert (report.saved, report.mended) == ({}, ())


def test_every_fault_of_the_arguments_at_once() -> None:
    with pytest.raises(InputError) as caught:
        run_campaign(WHOLE, max_examples=0, seconds=-1.0, workers=0, shard=(3, 2))
    assert {one.argument for one in caught.value.faults} == {"max_examples", "seconds", "workers", "shard"}
    with pytest.raises(InputError, match="or a time"):
        run_campaign(WHOLE)
