"""The kernel of the installed sglang over the quick set: right bits, and the hazards that docs/findings.md lists.

One run in its own process serves all tests here; the ledger that the documentation ships must fit it exactly.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mqa_ref.schedule import walk
from mqa_ref.verification.problems import quick

ROOT = Path(__file__).resolve().parents[2]
FILE = "cutedsl_fp8_paged_mqa_logits.py"


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    file = tmp_path_factory.mktemp("sglang") / "report.json"
    line = [sys.executable, "-m", "mqa_ref", "verify", "--kernel", "sglang", "--json", str(file)]
    line += ["--known", str(ROOT / "docs" / "known-sglang.toml")]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-2000:]
    return dict(json.loads(file.read_text()))


def test_every_logit_is_right_and_nothing_but_the_known_is_found(told: dict[str, Any]) -> None:
    assert (told["status"], told["mismatched"], told["findings"]) == ("pass", 0, 0)
    assert told["cases"] == told["executed"] == told["cases_pass"]
    assert told["logits"] > 30_000
    assert told["environment"]["sglang"] == "0.5.23"
    assert set(told["orders"]) == {"eager", "lazy", "random", "systematic"}
    assert told["known_unseen"] == []


# Hazards 1 to 5 and 8, with an input that shows each.
SHOWN = {
    "upstream-1": ("tmem_freed_in_use", FILE, "many-ctas", [1000, 257, 1300, 64]),
    "upstream-2": ("read_before_griddepcontrol_wait", FILE, "long", [8322]),
    "upstream-3": ("async_in_flight_at_exit", None, "one-token", [1]),
    "upstream-4": ("global_out_of_bounds", FILE, "short-before-long", [64, 300]),
    "upstream-4-row": ("global_other_row", FILE, "tight-table", [257, 64]),
    "upstream-5": ("unasked_columns", None, "zero-in-the-middle", [300, 0, 129]),
    "upstream-8": ("lanes_not_gathered", FILE, "long", [8322]),
}


@pytest.mark.parametrize("known", SHOWN)
def test_a_hazard_is_found_at_its_input(told: dict[str, Any], known: str) -> None:
    kind, file, case, lengths = SHOWN[known]
    (shape,) = {json.dumps(one["shape"]["lengths"]) for one in told["case_list"] if one["name"] == case}
    assert json.loads(shape) == lengths
    found = [one for one in told["finding_list"] if one["known"] == known and one["case"] == case]
    assert found
    assert {one["kind"] for one in found} == {kind}
    assert all(one["id"].startswith(kind if file is None else f"{kind}@{file}:") for one in found)


@pytest.mark.parametrize(
    ("case", "lengths", "entries"),
    [("lonely-page", [64], 1), ("small-pages", [33], 2), ("short-before-long", [64, 300], 10)],
)
def test_the_read_past_the_table_is_told_to_the_byte(
    told: dict[str, Any], case: str, lengths: list[int], entries: int
) -> None:
    found = [one for one in told["finding_list"] if one["known"] == "upstream-4" and one["case"] == case]
    assert found[0]["message"].endswith(
        f"reads byte {4 * entries + 3} of block_table, which has {4 * entries} bytes"
    )


def test_rows_without_tokens_are_written(told: dict[str, Any]) -> None:
    found = {one["case"]: one["message"] for one in told["finding_list"] if one["known"] == "upstream-5"}
    assert set(found) == {"zero-in-the-middle", "zero-at-the-end"}
    assert found["zero-in-the-middle"].startswith("256 elements")
    assert found["zero-at-the-end"].startswith("512 elements")


def test_loads_in_flight_are_told_of_every_cta_without_work_and_of_no_other(told: dict[str, Any]) -> None:
    found = [one for one in told["finding_list"] if one["kind"] == "async_in_flight_at_exit"]
    idle = {
        one.name: sum(cta.zero_work for cta in walk(one.problem.schedule, one.problem.context_lens))
        for one in quick()
    }
    assert {(one["case"], one["count"]) for one in found} == {pair for pair in idle.items() if pair[1]}


def test_no_path_of_this_machine_is_told(told: dict[str, Any]) -> None:
    places = [one["source"] for one in told["finding_list"] if one["source"] is not None]
    assert places
    assert not any("/" in place for place in places)
    assert str(ROOT) not in json.dumps(told)
