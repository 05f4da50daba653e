"""The whole job on an output of 2048 x 8192: what a global score lets through is found, placed and
explained, in seconds."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mqa_ref.compare import Comparison, compare
from mqa_ref.flow import Flow
from mqa_ref.launch import Launch
from mqa_ref.problem import Problem
from mqa_ref.reference import reference_logits

BASE, TIMES, COLUMNS, HEADS, DIM, PAGE = 64, 32, 8192, 8, 32, 128
ROWS = BASE * TIMES
FLOW = Flow.parse("fp32-fp32-fp32")
Bits = np.ndarray[Any, np.dtype[np.uint32]]
Examine = Callable[[Bits], Comparison]


def make(q: Any, kv: Any, weights: Any, table: Any) -> Problem:
    lengths = np.full(len(q), COLUMNS, np.int32)
    return Problem(q, kv, weights, table, lengths, page=PAGE, num_sms=148)


@pytest.fixture(scope="module")
def base() -> Problem:
    """64 sequences of their own queries, weights and order of pages."""
    random = np.random.default_rng(5)
    pages = COLUMNS // PAGE

    def codes(*shape: int) -> Any:
        return (random.integers(0x28, 0x48, shape) + 128 * random.integers(0, 2, shape)).astype(np.uint8)

    scales = random.uniform(0.5, 2, (pages, PAGE)).astype("<f4")
    kv = np.concatenate([codes(pages, PAGE * DIM), scales.view(np.uint8)], axis=1)
    table = np.stack([random.permutation(pages) for _ in range(BASE)]).astype(np.int32)
    weights = random.normal(size=(BASE, HEADS)).astype(np.float32)
    return make(codes(BASE, 1, HEADS, DIM), kv, weights, table)


@pytest.fixture(scope="module")
def right(base: Problem) -> Bits:
    return np.tile(reference_logits(base, FLOW)[0], (TIMES, 1))


@pytest.fixture(scope="module")
def problem(base: Problem) -> Problem:
    """The 64 sequences, 32 times: the reference of all is that of the 64, repeated."""
    q, weights, table = (np.concatenate([part] * TIMES) for part in (base.q, base.weights, base.block_table))
    return make(q, base.kv_fused, weights, table)


@pytest.fixture
def examine(problem: Problem, right: Bits) -> Examine:
    def run(logits: Bits) -> Comparison:
        written = np.ones(logits.shape, np.bool_)
        begun = time.process_time()
        told = compare(right, written, Launch(logits, written, (), 148, 0, 0.0), problem, FLOW)
        assert time.process_time() - begun < 15
        assert told.compared == ROWS * COLUMNS
        return told

    return run


def altered(base: Problem, row: int | None = None, **changes: Any) -> Bits:
    """The logits of the base problem, or of one of its rows, with other inputs."""
    given = {
        name: changes.get(name, getattr(base, name)) for name in ("q", "kv_fused", "weights", "block_table")
    }
    if row is not None:
        given = {name: part if name == "kv_fused" else part[row : row + 1] for name, part in given.items()}
    q, kv, weights, table = given.values()
    bits: Bits = reference_logits(make(q, kv, weights, table), FLOW)[0]
    return bits


def scaled(base: Problem, factor: float) -> Any:
    kv = base.kv_fused.copy()
    scales = kv[:, PAGE * DIM :].view("<f4")
    scales *= np.float32(factor)
    return kv


def test_the_right_output_passes(examine: Examine, right: Bits) -> None:
    told = examine(right)
    assert told.equal
    assert told.calc_diff == 0


def test_a_zeroed_tile(examine: Examine, right: Bits) -> None:
    logits = right.copy()
    logits[1234, 7 * 128 : 8 * 128] = 0
    told = examine(logits)
    assert told.mismatched == np.count_nonzero(right[1234, 896:1024])
    assert told.calc_diff < 5e-6  # the gate of the field sees nothing
    assert "tile 7 of row 1234" in told.where[0]
    assert told.suspects == ("zeros, as if nothing was computed or the result was cleared",)


def test_a_scale_times_1_003_in_one_row(examine: Examine, base: Problem, right: Bits) -> None:
    logits = right.copy()
    logits[77] = altered(base, 77 % BASE, kv_fused=scaled(base, 1.003))[0]
    told = examine(logits)
    assert not told.equal
    assert any(sentence.startswith("all in row 77 ") for sentence in told.where[:2])
    assert told.suspects == ("the right logits times 1.003",)


def test_a_scale_times_1_003_in_all_rows(examine: Examine, base: Problem, right: Bits) -> None:
    told = examine(np.tile(altered(base, kv_fused=scaled(base, 1.003)), (TIMES, 1)))
    assert told.mismatched > 0.99 * told.compared
    assert told.calc_diff < 5e-6
    assert told.where == (
        "spread over 2048 of 2048 rows, 64 of 64 tiles, 148 of 148 CTAs and 2 of 2 warp groups, no common place",
    )
    assert told.suspects == ("the right logits times 1.003",)


def test_two_heads_exchanged_in_one_row(examine: Examine, base: Problem, right: Bits) -> None:
    weights = base.weights.copy()
    weights[:, [2, 5]] = weights[:, [5, 2]]
    logits = right.copy()
    logits[300] = altered(base, 300 % BASE, weights=weights)[0]
    told = examine(logits)
    assert any(sentence.startswith("all in row 300 ") for sentence in told.where[:2])
    assert told.suspects == ("the weights of heads 2 and 5 exchanged",)


@pytest.mark.parametrize(("row", "column"), [(0, 0), (2000, 8191), (1023, 4097)])
def test_one_logit_off_by_one_ulp(examine: Examine, right: Bits, row: int, column: int) -> None:
    logits = right.copy()
    logits[row, column] += 1
    told = examine(logits)
    assert (told.mismatched, told.max_ulp) == (1, 1)
    assert len(told.where) == 1
    assert told.where[0].startswith(f"one element: row {row} column {column} (b {row}, ")
    assert told.first[0].expected == f"0x{int(right[row, column]):08x}"
    assert told.first[0].actual == f"0x{int(right[row, column]) + 1:08x}"
    assert {(worst.measure, worst.element.place.row) for worst in told.worst} == {
        ("ulp", row),
        ("absolute", row),
        ("bound ratio", row),
    }


def test_everything_wrong_takes_no_longer(examine: Examine, right: Bits) -> None:
    told = examine(right ^ np.uint32(0x80000000))
    assert told.mismatched == told.compared
    assert told.where == ("every compared element",)
    assert dataclasses.asdict(told)["counts"]["zero_sign"] == np.count_nonzero(right == 0)
