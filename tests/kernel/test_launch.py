"""The kernel at work in the emulator: what it computes, and what it must leave alone.

The reference is an oracle of its own; whether a store or a read is allowed follows from op.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mqa_ref.flow import Flow
from mqa_ref.kernel import resolve
from mqa_ref.launch import Launch
from mqa_ref.problem import Problem
from mqa_ref.reference import reference_logits
from mqa_ref.schedule import build
from mqa_ref.verification.launch import launch

FLOW = Flow.parse("fp32-fp32-fp32")
EXPECTED = {"tma_out_of_range_fill"}  # pages that a row does not have are asked for out of range, on purpose


def make(
    lengths: list[int], *, page: int = 64, heads: int = 32, next_n: int = 1, num_sms: int = 2
) -> Problem:
    """Random finite codes of moderate size. The table is exactly as wide as the longest row needs, and entries that
    no row needs name a page far away."""
    random = np.random.default_rng(7)
    batch, context = len(lengths), np.array(lengths, np.int32)
    needed = -(-context // page)
    pages = max(1, int(needed.sum()))
    pool = np.empty((pages, page * 132), np.uint8)
    pool[:, : page * 128] = codes(random, (pages, page * 128))
    pool[:, page * 128 :] = random.uniform(0.001, 0.1, (pages, page)).astype("<f4").view(np.uint8)
    table = np.full((batch, max(1, int(needed.max()))), 1 << 20, np.int32)
    ids = iter(random.permutation(pages))
    for row, count in enumerate(needed):
        table[row, :count] = [next(ids) for _ in range(count)]
    return Problem(
        q=codes(random, (batch, next_n, heads, 128)),
        kv_fused=pool,
        weights=random.standard_normal((batch * next_n, heads)).astype(np.float32),
        block_table=table,
        context_lens=context,
        page=page,
        num_sms=num_sms,
    )


def codes(random: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """e4m3fn codes of either sign with magnitudes of 2**-4 to 4."""
    return (random.integers(0x18, 0x49, shape) | random.choice([0, 0x80], shape)).astype(np.uint8)


def check(problem: Problem, run: Launch) -> None:
    bits, valid = reference_logits(problem, FLOW)
    columns = valid.shape[1]
    assert run.written[:, :columns][valid].all()
    assert np.array_equal(run.logits[:, :columns][valid], bits[valid])
    assert {finding.kind for finding in run.findings} <= EXPECTED


def columns_written(run: Launch) -> list[int]:
    """Columns written of each row, which must be the first so many."""
    counts = run.written.sum(axis=1)
    assert all(row[:count].all() for row, count in zip(run.written, counts, strict=True))
    return [int(count) for count in counts]


@pytest.mark.parametrize("page", [32, 64, 128])
@pytest.mark.parametrize("next_n", [1, 2])
def test_whole_splits_of_rows_with_tokens_are_written_and_nothing_else(page: int, next_n: int) -> None:
    """Rows without tokens at the start, in the middle and at the end of the CTAs' ranges are left alone."""
    problem = make([0, 1, 257, 0, 0, 33, 300, 0], page=page, next_n=next_n)
    run = launch(resolve("builtin"), problem, FLOW)
    check(problem, run)
    written = [0, 256, 512, 0, 0, 256, 512, 0]
    assert columns_written(run) == [count for count in written for _ in range(next_n)]


OPTIONS: list[dict[str, Any]] = [
    {"remove_kv_wait_in_epilogue": True, "max_umma_pipeline": True},
    {"early_tmem_copy": True, "max_kv_pipeline": True, "max_w_in_reg": 8},
    {"smem_subpartition_opt": True, "num_epi_subtiles": 4, "enable_pdl": False},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "+".join(options))
@pytest.mark.parametrize("order", ["eager", "lazy", "random"])
def test_options_and_interleavings_change_no_bit(options: dict[str, Any], order: str) -> None:
    problem = make([700, 129, 0, 300, 1])
    check(problem, launch_with(problem, options, order))


def launch_with(problem: Problem, options: dict[str, Any], order: str) -> Launch:
    from mqa_ref.verification.launch import execute

    compiled = resolve("builtin").compile(problem, FLOW, options)
    return execute(compiled, compiled.ptx, problem, FLOW, order=order)


@pytest.mark.parametrize("heads", [16, 48])
def test_other_head_counts(heads: int) -> None:
    problem = make([130, 300], heads=heads)
    check(problem, launch(resolve("builtin"), problem, FLOW))


@pytest.mark.parametrize(
    ("built_for", "now", "written"),
    [
        ([600, 300], [200, 300], [256, 512]),
        ([257], [256], [256]),
        ([1000], [5], [256]),
        ([100, 100, 100, 100], [100, 100], [256, 256]),
        ([0, 0], [600, 1], [0, 0]),
    ],
)
def test_a_stale_schedule_ends_and_stays_within_the_rows_it_finds(
    built_for: list[int], now: list[int], written: list[int]
) -> None:
    """A Problem refuses such a schedule, so it is put in afterwards."""
    problem = make(now, num_sms=3)
    object.__setattr__(problem, "schedule", build(np.array(built_for, np.int32), 3))
    run = launch(resolve("builtin"), problem, FLOW)
    assert columns_written(run) == written
    assert {finding.kind for finding in run.findings} <= EXPECTED
