"""The kernel of the installed flashinfer-python over the quick set: right bits for what it declares, the hazards of
docs/findings.md, and where it differs from the kernel of sglang.

One run over some of the set and the probes, with sglang's kernel beside it, serves all tests here; the ledger that the
documentation ships must fit exactly. The whole quick set in all orders is slow.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mqa_ref.verification.probes import probes

ROOT = Path(__file__).resolve().parents[2]
FILE = "fp8_paged_mqa_logits.py"


def run(folder: Path, *words: str) -> dict[str, Any]:
    file = folder / "report.json"
    line = [sys.executable, "-m", "mqa_ref", "verify", "--kernel", "flashinfer", "--json", str(file), *words]
    line += ["--known", str(ROOT / "docs" / "known-flashinfer.toml")]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-2000:]
    return dict(json.loads(file.read_text()))


# Problems that share four compiled shapes, and among them every kind of element.
CASES = (
    *("one-token", "edges-of-a-tile", "tight-table", "special-scales", "edges-of-a-split", "zero-at-the-end"),
    *("nan-query", "repeated-pages", "overflow"),
)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    names = [*CASES, *(case.name for case in probes())]
    words = [word for name in names for word in ("--case", name)]
    return run(tmp_path_factory.mktemp("flashinfer"), "--baseline", "sglang", "--order", "eager", *words)


def check_run(told: dict[str, Any], logits: int) -> None:
    assert (told["status"], told["mismatched"], told["findings"]) == ("pass", 0, 0)
    assert told["cases"] == told["executed"] == told["cases_pass"]
    assert told["logits"] > logits
    assert told["generation"] == "max_nan"
    assert told["environment"]["flashinfer-python"] == "0.7.2.post1"
    assert told["known_unseen"] == []


def test_every_logit_is_right_and_nothing_but_the_known_is_found(told: dict[str, Any]) -> None:
    check_run(told, 6_000)


SHOWN = {
    "flashinfer-1": ("tmem_freed_in_use", "repeated-pages"),
    "flashinfer-3": ("async_in_flight_at_exit", "one-token"),
}


@pytest.mark.parametrize("known", SHOWN)
def test_a_hazard_is_found_at_its_input(told: dict[str, Any], known: str) -> None:
    kind, case = SHOWN[known]
    found = [one for one in told["finding_list"] if one["known"] == known and one["case"] == case]
    assert found
    assert {one["kind"] for one in found} == {kind}


def test_the_hazards_that_were_mended_are_not_found(told: dict[str, Any]) -> None:
    """Early reads, reads past the block table, rows without tokens; and the tail columns are as declared."""
    kinds = {one["kind"]: one["severity"] for one in told["finding_list"]}
    assert kinds == {
        "tmem_freed_in_use": "error",
        "async_in_flight_at_exit": "error",
        "tma_out_of_range_fill": "info",
        "tmem_not_fenced": "info",
    }


# Worked on paper. Twice FLT_MAX is inf, and half of that is inf: the folded half. FLT_MAX * 0.5 is 7effffff.
# 5/8 of 2^-149 rounds to 2^-149; folded it is 5/4, which rounds to 1, and half of that ties to 0.
# Behind the length sglang reads the table's page 2, of ones: 1.0; FlashInfer reads page 0, of zeros.
DIFFERENT = {
    "sums near the greatest number": ("ab-overflow", "row 0 column 0: 0x7effffff against 0x7f800000"),
    "sums near the subnormals": ("ab-subnormal", "row 0 column 0: 0x00000001 against 0x00000000"),
    "pages behind the length": ("ab-behind", "row 0 column 64: 0x00000000 against 0x3f800000"),
    "splits without a token": ("ab-no-token", "row 1 column 0: not written against 0x00000000"),
}
IDENTICAL = (
    *("ordinary data", "dot products beyond fp16", "NaN or inf among weights and scales", "NaN codes"),
    *("tokens of later queries", "rest of the last page", "tile behind the length"),
)


def check_kinds(told: dict[str, Any], identical: tuple[str, ...]) -> dict[str, int]:
    """The numbers compared, by kind."""
    kinds = {one["kind"]: one for one in told["baseline"]["kinds"] if one["compared"]}
    assert set(kinds) == {*DIFFERENT, *identical}
    assert {kind for kind, one in kinds.items() if one["verdict"] == "different"} == set(DIFFERENT)
    for kind, (case, first) in DIFFERENT.items():
        smallest = kinds[kind]["smallest"]
        assert (smallest["case"], smallest["first"]) == (case, first)
        assert f"--case {case}" in smallest["repro"]
    for kind in identical:
        assert (kinds[kind]["verdict"], kinds[kind]["differing"]) == ("bit-identical", 0)
    assert kinds["splits without a token"]["alone"] == kinds["splits without a token"]["compared"]
    valid = sum(one["compared"] for one in told["baseline"]["kinds"][:6])
    assert valid == told["logits"] == told["baseline"]["logits"]
    # The differing logits are no mistake of either: each is right for what it declares.
    assert (told["mismatched"], told["baseline"]["mismatched"]) == (0, 0)
    return {kind: one["compared"] for kind, one in kinds.items()}


def test_where_the_two_kernels_differ(told: dict[str, Any]) -> None:
    assert told["environment"]["sglang"] == "0.5.23"
    compared = check_kinds(told, IDENTICAL)
    assert compared["ordinary data"] > 4_000
    assert compared["NaN codes"] > 100
    assert told["baseline"]["differing"] > 100


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_where_the_two_kernels_differ_in_the_whole_quick_set(tmp_path: Path) -> None:
    whole = run(tmp_path, "--baseline", "sglang")
    check_run(whole, 30_000)
    assert set(whole["orders"]) == {"eager", "lazy", "random", "systematic"}
    assert check_kinds(whole, IDENTICAL)["ordinary data"] > 30_000


def test_no_path_of_this_machine_is_told(told: dict[str, Any]) -> None:
    places = [one["source"] for one in told["finding_list"] if one["source"] is not None]
    assert places
    assert not any("/" in place for place in places)
    assert str(ROOT) not in json.dumps(told)
