"""A campaign on a Dask cluster of processes gives what one process gives, and loses nothing with a worker."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mqa_ref.cli.app import run
from mqa_ref.errors import NotAvailable
from mqa_ref.fuzz.campaign import Campaign
from mqa_ref.fuzz.cluster import Cluster
from mqa_ref.fuzz.model import NAME
from mqa_ref.fuzz.runner import run_campaign

pytest.importorskip("distributed")
MODEL = Campaign(kernel=NAME, seed=1903, checks=(), bug="peer-16", flows=("fp32-fp32-fp32",), options=False)


@pytest.fixture(scope="module")
def scheduler() -> Iterator[Any]:
    from distributed import LocalCluster

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True, silence_logs=50
        ) as cluster:
            yield cluster


def test_a_worker_is_killed_midway(scheduler: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqa_ref.fuzz.runner.MOST_MINIMISED", 1)
    monkeypatch.setattr("mqa_ref.fuzz.campaign.BLOCK", 5)  # so many examples are run of each block
    runner = Cluster(MODEL, scheduler.scheduler_address, str(tmp_path))
    killed: list[int] = []

    def kill_one(totals: Any, points: int) -> None:
        if totals.blocks >= 2 and not killed:
            pids = runner.client.run(os.getpid)
            killed.append(next(iter(pids.values())))
            os.kill(killed[0], signal.SIGKILL)

    spread = run_campaign(MODEL, max_examples=20, runner=runner, progress=kill_one, folder=tmp_path)
    alone = run_campaign(MODEL, max_examples=20)
    assert killed
    assert spread.totals.blocks == 4
    assert spread.totals.digest == alone.totals.digest
    assert spread.totals == alone.totals
    assert [one.found.name for one in spread.reported] == [one.found.name for one in alone.reported]
    assert spread.exit_code == alone.exit_code == 1
    assert list(tmp_path.glob("*.case"))


def test_an_error_of_a_worker_ends_the_campaign(scheduler: Any) -> None:
    absent = replace(MODEL, kernel="builtin", bug="", backend="cuda")
    with pytest.raises(NotAvailable):
        run_campaign(absent, max_examples=1, runner=Cluster(absent, scheduler.scheduler_address))


def test_no_distributed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mqa_ref.fuzz.cluster.find_spec", lambda name: None)
    assert run(["fuzz", "--database", str(tmp_path / "db"), "--cluster", "tcp://127.0.0.1:1"]) == 4
    assert "extra `cluster`" in capsys.readouterr().err


@pytest.mark.parametrize(("address", "code"), [("tcp://127.0.0.1:1", 4), ("nonsense://x", 2)])
def test_no_scheduler(address: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqa_ref.fuzz.cluster.CONNECT_SECONDS", 1)
    assert run(["fuzz", "--database", str(tmp_path / "db"), "--cluster", address]) == code
