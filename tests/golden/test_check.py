"""The check: passes on the package's own files, and sees a changed bit, a missing file, a damaged one, one too many."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from mqa_ref.errors import InputError
from mqa_ref.golden import CASES, Case, Claim, LogitsCase, by_name, check, container, load
from mqa_ref.golden.check import check_case
from mqa_ref.golden.store import path_of

SAMPLE = (
    "context-0",
    "context-65",
    "context-129",
    "peer-08-zero-row-in-range",
    "peer-13-nan-in-key",
    "value-every-code",
    "value-cut-terms",
    "shape-dim-32",
    "shape-context-below-next-n",
    "schedule-one-long",
    "stale-shrunk",
    "refused-all-at-once",
)


def test_a_sample_of_the_package_passes() -> None:
    report = check(by_name(SAMPLE))
    assert [one.messages for one in report.outcomes] == [()] * len(SAMPLE)
    assert (report.status, report.exit_code, report.unused) == ("pass", 0, ())
    assert sum(one.logits for one in report.outcomes) > 10_000


@pytest.mark.slow
def test_the_whole_package_passes() -> None:
    report = check()
    assert (report.status, len(report.outcomes), report.unused) == ("pass", len(CASES), ())


def test_a_changed_bit(few: tuple[Case, ...], folder: Path) -> None:
    name = "peer-10-relu-before-sum"
    entry = load(name, folder)
    tensor = entry.views["fp32-fp32-fp32.sm100.folded"]
    bits = entry.tensors[tensor].copy()
    bits[1] ^= 1
    changed = replace(entry, tensors={**entry.tensors, tensor: bits})
    path_of(name, folder).write_bytes(container.encode(changed))
    report = check(few, folder=folder)
    assert (report.status, report.exit_code) == ("fail", 1)
    wrong = {one.name: one for one in report.outcomes if one.status != "pass"}
    assert list(wrong) == [name]
    assert wrong[name].mismatched == 1
    (message,) = wrong[name].messages
    assert "[0, 1] 0x3f800001 -> 0x3f800000" in message


def test_a_changed_partition_fault_and_input(few: tuple[Case, ...], folder: Path) -> None:
    schedule = load("schedule-fewer-splits", folder)
    runs = schedule.tensors["partition.reversed.6"].copy()
    runs[2, 0] = 5
    edits = {
        "schedule-fewer-splits": replace(
            schedule, tensors={**schedule.tensors, "partition.reversed.6": runs}
        ),
        "peer-07-stale-schedule": replace(load("peer-07-stale-schedule", folder), faults=()),
        "peer-12-heads-10": replace(load("peer-12-heads-10", folder), case_id="0" * 16),
    }
    for name, entry in edits.items():
        path_of(name, folder).write_bytes(container.encode(entry))
    report = check(few, folder=folder)
    told = {one.name: " ".join(one.messages) for one in report.outcomes if one.status == "fail"}
    assert set(told) == set(edits)
    assert "partition.reversed.6: 1 element changed: [2, 0] 5 -> 2" in told["schedule-fewer-splits"]
    assert "faults" in told["peer-07-stale-schedule"]
    assert "inputs (case_id): 1 element changed: 0000000000000000 ->" in told["peer-12-heads-10"]


def test_a_changed_hash_of_what_is_not_stored(tmp_path: Path) -> None:
    name = "peer-03-batch-8192"
    entry = load(name)
    key = "partition.forward.148"
    whole = {**entry.whole, key: replace(entry.whole[key], sha256="0" * 64)}
    path_of(name, tmp_path).write_bytes(container.encode(replace(entry, whole=whole)))
    (case,) = by_name([name])
    outcome = check_case(case, tmp_path)
    assert outcome.status == "fail"
    assert outcome.messages[0].startswith(f"whole array behind {key}")


def test_a_missing_file(few: tuple[Case, ...], folder: Path) -> None:
    path_of(few[0].name, folder).unlink()
    report = check(few, folder=folder)
    assert report.exit_code == 1
    assert [one.name for one in report.outcomes if "is missing" in " ".join(one.messages)] == [few[0].name]


@pytest.mark.parametrize("damage", ["truncated", "flipped", "renamed", "empty", "link"])
def test_a_damaged_file(few: tuple[Case, ...], folder: Path, damage: str) -> None:
    path, other = path_of(few[0].name, folder), path_of(few[1].name, folder)
    data = bytearray(path.read_bytes())
    data[-1] ^= 0x10
    content = {
        "truncated": bytes(data[:-5]),
        "flipped": bytes(data),
        "renamed": other.read_bytes(),
        "empty": b"",
    }
    if damage == "link":
        path.rename(folder.parent / "away")
        path.symlink_to(folder.parent / "away")
    else:
        path.write_bytes(content[damage])
    report = check(few, folder=folder)
    assert (report.status, report.exit_code) == ("error", 2)
    (wrong,) = [one for one in report.outcomes if one.status != "pass"]
    assert (wrong.name, wrong.status, len(wrong.messages)) == (few[0].name, "error", 1)
    assert str(path) in wrong.messages[0]


def test_a_file_without_a_case(few: tuple[Case, ...], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "extra.safetensors").write_bytes(b"")
    monkeypatch.setattr(import_module("mqa_ref.golden.check"), "CASES", few)
    report = check(few, folder=folder)
    assert (report.status, report.exit_code, report.unused) == ("fail", 1, ("extra.safetensors",))
    assert check(few[:1], folder=folder).unused == ()


def test_a_broken_claim() -> None:
    (case,) = by_name(["value-one"])
    assert isinstance(case, LogitsCase)
    claimed = replace(case, claims=(Claim(0, 1, 2.0, "fp32-fp32-bf16.sm90.max"),))
    outcome = check_case(claimed)
    assert outcome.status == "fail"
    assert outcome.messages == (
        "claim broken: value-one fp32-fp32-bf16.sm90.max [0, 1]: 0x3f80, claimed 2.0 = 0x4000",
    )


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a folder with golden files"):
        check(folder=tmp_path / "none")


def test_the_report_as_json(few: tuple[Case, ...], folder: Path) -> None:
    path_of("schedule-fewer-splits", folder).unlink()
    told = json.loads(check(few, folder=folder).to_json())
    fields = (
        "version",
        "status",
        "exit_code",
        "kernel",
        "backend",
        "cases",
        "mismatched",
        "findings",
        "seed",
    )
    assert [told[name] for name in fields] == [1, "fail", 1, None, None, 4, 1, 0, None]
    assert len(told["flow"].split(",")) == 9
    assert told["logits"] == 3 * 36
    assert [one["status"] for one in told["case_list"]].count("pass") == 3
    assert np.isfinite(told["seconds"])
