"""The quick set holds what it must: shapes, tables, schedules and values that have broken kernels, and stable
bytes."""

from __future__ import annotations

import hashlib
from itertools import pairwise

import numpy as np
import pytest

from mqa_ref.problem import Problem
from mqa_ref.schedule import build, walk
from mqa_ref.verification.problems import NamedProblem, quick

# A change of this value changes what every recorded result was computed from: it needs a line in the changelog.
SHA256 = "494f61396ab926f334ed5f9e2423db99c3b5cc90a887ad8630f531ffb7308a47"
MOST_TILES, LEAST_LOGITS, MOST_CONFIGURATIONS, MOST_COMPILATIONS = 350, 20_000, 8, 9


@pytest.fixture(scope="module")
def problems() -> dict[str, Problem]:
    return {one.name: one.problem for one in quick()}


def tiles(problem: Problem) -> int:
    return int((2 * -(-problem.context_lens // 256)).sum())


def used_tokens(problem: Problem) -> np.ndarray:
    """bool [pages, page]: tokens that some sequence has."""
    used = np.zeros((problem.num_pages, problem.page), np.bool_)
    for b, length in enumerate(problem.context_lens.tolist()):
        for token in range(length):
            used[problem.block_table[b, token // problem.page], token % problem.page] = True
    return used


def test_the_bytes_are_the_same_everywhere() -> None:
    digest = hashlib.sha256()
    for one in quick():
        problem = one.problem
        digest.update(one.name.encode())
        for array in (
            problem.q,
            problem.kv_fused,
            problem.weights,
            problem.block_table,
            problem.context_lens,
        ):
            digest.update(array.astype(array.dtype.newbyteorder("<")).tobytes())
        digest.update(problem.schedule.astype("<i4").tobytes())
    assert digest.hexdigest() == SHA256


def test_names_and_reasons_are_there_and_unique() -> None:
    names = [one.name for one in quick()]
    assert len(names) == len(set(names)) >= 14
    assert all(one.why for one in quick())
    assert len({one.problem.case_id for one in quick()}) == len(names)


def test_the_size_of_the_set(problems: dict[str, Problem]) -> None:
    assert sum(int(problem.valid_columns().sum()) for problem in problems.values()) >= LEAST_LOGITS
    assert sum(tiles(problem) for problem in problems.values()) <= MOST_TILES
    shapes = {(problem.page, problem.heads, problem.next_n) for problem in problems.values()}
    assert len(shapes) <= MOST_CONFIGURATIONS
    assert len({(p.page, p.heads, p.next_n, p.num_sms) for p in problems.values()}) <= MOST_COMPILATIONS
    assert {page for page, _, _ in shapes} == {32, 64, 128}
    assert {heads for _, heads, _ in shapes} == {32, 64}
    assert {next_n for _, _, next_n in shapes} == {1, 2}


def test_lengths_batches_and_ctas(problems: dict[str, Problem]) -> None:
    lengths = {int(length) for problem in problems.values() for length in problem.context_lens}
    assert lengths >= {0, 1, 64, 127, 128, 129, 256, 257, 300, 1000}
    assert {problem.batch for problem in problems.values()} == {1, 2, 3, 4}
    assert {problem.num_sms for problem in problems.values()} >= {1, 2, 4, 148}


def test_one_cta_walks_past_the_prefetched_part_of_the_table(problems: dict[str, Problem]) -> None:
    walks = [one for problem in problems.values() for one in walk(problem.schedule, problem.context_lens)]
    assert (
        max(run.stop - run.first for one in walks for run in one.runs) > 32
    )  # tile pairs; 32 are 8192 tokens


def test_ctas_without_work(problems: dict[str, Problem]) -> None:
    idle = {
        name: sum(one.zero_work for one in walk(problem.schedule, problem.context_lens))
        for name, problem in problems.items()
    }
    assert idle["lonely-page"] == 147
    assert idle["one-token"] == 1
    assert idle["many-ctas"] == 148 - 13


def test_rows_without_tokens_in_the_middle_and_at_the_end(problems: dict[str, Problem]) -> None:
    lengths = [problem.context_lens.tolist() for problem in problems.values()]
    assert [300, 0, 129] in lengths
    assert [300, 0] in lengths
    middle = problems["zero-in-the-middle"]
    executed = walk(middle.schedule, middle.context_lens, zero_rows="execute")
    assert any(row == 1 for one in executed for row, _ in one.items)


def test_a_schedule_of_the_other_form(problems: dict[str, Problem]) -> None:
    problem = problems["many-ctas"]
    assert (problem.schedule != build(problem.context_lens, 148, "forward")).any()
    assert (problem.schedule == build(problem.context_lens, 148, "reversed")).all()


def test_orders_of_pages(problems: dict[str, Problem]) -> None:
    descending = problems["thousand"].block_table[0, :16].tolist()
    assert all(a > b for a, b in pairwise(descending))
    repeated = problems["repeated-pages"]
    used = [page for b, n in enumerate([5, 4, 3]) for page in repeated.block_table[b, :n].tolist()]
    assert len(set(used)) < len(used)
    shuffled = problems["long"].block_table[0, :131].tolist()
    assert len(set(shuffled)) == 131
    steps = {b - a for a, b in pairwise(shuffled)}
    assert len(steps) > 50


def test_tables_without_a_spare_entry_and_with_garbage(problems: dict[str, Problem]) -> None:
    assert problems["tight-table"].block_table.shape[1] == -(-257 // 64)
    assert problems["small-pages"].block_table.shape == (1, -(-33 // 32))
    assert problems["short-before-long"].block_table.shape == (2, -(-300 // 64))
    assert problems["lonely-page"].block_table.shape == (1, 1)
    garbage = problems["garbage-entries"]
    unneeded = garbage.block_table[0, 2:].tolist() + garbage.block_table[1, 8:].tolist()
    assert any(entry < 0 for entry in unneeded)
    assert any(entry >= garbage.num_pages for entry in unneeded)


@pytest.mark.parametrize("one", quick(), ids=lambda one: one.name)
def test_what_nobody_needs_is_poison_and_what_is_needed_is_not(one: NamedProblem) -> None:
    problem = one.problem
    used = used_tokens(problem)
    assert (~used).any()
    assert np.isin(problem.key_codes[~used], [0x7F, 0xFF]).all()
    scales = problem.scale_bits.view(np.float32)
    assert np.isnan(scales[~used]).all()
    wanted_nan = one.name in ("nan-keys", "nan-query", "special-scales")
    has_nan = (
        bool(np.isin(problem.key_codes[used], [0x7F, 0xFF]).any())
        or bool(np.isnan(scales[used]).any())
        or bool(np.isin(problem.q, [0x7F, 0xFF]).any())
    )
    assert has_nan == wanted_nan


@pytest.mark.parametrize("one", quick(), ids=lambda one: one.name)
def test_every_row_has_its_own_weights(one: NamedProblem) -> None:
    rows = {row.tobytes() for row in one.problem.weights}
    assert len(rows) == one.problem.rows
