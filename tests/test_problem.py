"""A Problem keeps what it was given, tells its sizes, and is named by its content."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqa_ref.errors import InputError
from mqa_ref.problem import Problem
from mqa_ref.schedule import build


def arguments(lengths: tuple[int, ...] = (300, 5), next_n: int = 1, page: int = 64) -> dict[str, Any]:
    batch, heads, dim, pool = len(lengths), 8, 32, 9
    rng = np.random.default_rng(11)
    return {
        "q": rng.integers(0, 256, (batch, next_n, heads, dim), dtype=np.uint8),
        "kv_fused": rng.integers(0, 256, (pool, page * (dim + 4)), dtype=np.uint8),
        "weights": rng.standard_normal((batch * next_n, heads)).astype(np.float32),
        "block_table": rng.integers(0, pool, (batch, max(1, -(-max(lengths) // page))), dtype=np.int32),
        "context_lens": np.array(lengths, np.int32),
        "page": page,
        "num_sms": 3,
    }


def test_sizes() -> None:
    problem = Problem(**arguments((300, 5), next_n=2))
    assert (problem.batch, problem.next_n, problem.heads, problem.head_dim) == (2, 2, 8, 32)
    assert (problem.num_pages, problem.rows, problem.max_context_len, problem.row_stride) == (9, 4, 300, 512)
    assert (
        repr(problem) == f"Problem(B=2, next_n=2, H=8, D=32, page=64, num_sms=3, case_id={problem.case_id})"
    )


@pytest.mark.parametrize(("columns", "stride"), [(1, 256), (255, 256), (256, 256), (257, 512)])
def test_row_stride_is_aligned(columns: int, stride: int) -> None:
    problem = Problem(**arguments((1, 1)), max_context_len=columns)
    assert (problem.max_context_len, problem.row_stride) == (columns, stride)


def test_schedule_is_built_or_kept() -> None:
    given = arguments((600, 300))
    assert Problem(**given).schedule.tolist() == [[0, 0], [0, 2], [1, 1], [2, 0]]
    reverse = build([600, 300], 3, "reversed")
    kept = Problem(**given, schedule=reverse)
    assert np.array_equal(kept.schedule, reverse)
    assert kept.schedule.dtype == np.int32


def test_no_token_at_all() -> None:
    problem = Problem(**arguments((0, 0)))
    assert (problem.max_context_len, problem.row_stride) == (1, 256)
    assert not problem.valid_mask().any()


@given(lengths=st.lists(st.integers(0, 40), min_size=1, max_size=4).map(tuple), next_n=st.integers(1, 6))
@settings(deadline=None)
def test_valid_columns(lengths: tuple[int, ...], next_n: int) -> None:
    """p <= ctx - next_n + t, also where the context is shorter than next_n."""
    problem = Problem(**arguments(lengths, next_n))
    mask = problem.valid_mask()
    assert mask.shape == (problem.rows, problem.max_context_len)
    for row in range(problem.rows):
        b, t = row // next_n, row % next_n
        expected = [p <= lengths[b] - next_n + t for p in range(problem.max_context_len)]
        assert mask[row].tolist() == expected
        assert problem.valid_columns()[row] == sum(expected)


def test_context_shorter_than_next_n() -> None:
    """2 tokens and 4 queries: the first two have nothing before them, the last sees both tokens."""
    assert Problem(**arguments((2,), next_n=4)).valid_columns().tolist() == [0, 0, 1, 2]


def test_page_views_are_planar() -> None:
    given = arguments(page=32)
    pool = np.zeros((9, 32 * 36), np.uint8)
    pool[2, 5 * 32 + 7] = 0xAB  # token 5, element 7
    pool[2, 32 * 32 + 4 * 5 :][:4] = [0x04, 0x03, 0x02, 0x01]  # scale of token 5, little-endian
    problem = Problem(**{**given, "kv_fused": pool})
    assert problem.key_codes.shape == (9, 32, 32)
    assert np.argwhere(problem.key_codes).tolist() == [[2, 5, 7]]
    assert problem.key_codes[2, 5, 7] == 0xAB
    assert problem.scale_bits.shape == (9, 32)
    assert np.argwhere(problem.scale_bits).tolist() == [[2, 5]]
    assert problem.scale_bits[2, 5] == 0x01020304


ARRAYS = ("q", "kv_fused", "weights", "block_table", "context_lens", "schedule")


def test_arrays_are_own_read_only_copies() -> None:
    given = arguments() | {"schedule": build([300, 5], 3)}
    before = {name: given[name].copy() for name in ARRAYS}
    problem = Problem(**given)
    for name in ARRAYS:
        given[name][...] = 0
        kept = getattr(problem, name)
        assert np.array_equal(kept, before[name])
        assert kept.flags.c_contiguous
        with pytest.raises(ValueError, match="read-only"):
            kept[...] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        problem.page = 32  # type: ignore[misc]


def test_views_and_read_only_arrays_are_good() -> None:
    plain = arguments() | {"schedule": build([300, 5], 3)}
    views = dict(plain)
    for name in ARRAYS:
        spread = np.repeat(plain[name], 2, axis=-1)  # every other element along the last axis
        spread.setflags(write=False)
        views[name] = spread[..., ::2]
    assert not views["q"].flags.c_contiguous
    problem = Problem(**views)
    assert problem.case_id == Problem(**plain).case_id
    assert problem.q.flags.c_contiguous


def test_case_id_is_stable() -> None:
    """The hashed text, written out: a recorded case must keep its name on every machine and in every version."""
    small: dict[str, Any] = {
        "q": np.full((1, 1, 8, 32), 0x38, np.uint8),
        "kv_fused": np.zeros((1, 32 * 36), np.uint8),
        "weights": np.ones((1, 8), np.float32),
        "block_table": np.zeros((1, 1), np.int32),
        "context_lens": np.full(1, 3, np.int32),
    }
    text = b"mqa-ref problem 1\n"
    text += b"q |u1 [1, 1, 8, 32]\n" + b"\x38" * 256
    text += b"kv_fused |u1 [1, 1152]\n" + b"\0" * 1152
    text += b"weights <f4 [1, 8]\n" + b"\x00\x00\x80\x3f" * 8
    text += b"block_table <i4 [1, 1]\n" + b"\0" * 4
    text += b"context_lens <i4 [1]\n" + b"\x03\0\0\0"
    text += b"schedule <i4 [2, 2]\n" + b"\0" * 8 + b"\x01\0\0\0" + b"\0" * 4
    text += b"page 32 num_sms 1 max 3\n"
    assert Problem(**small, page=32, num_sms=1).case_id == hashlib.sha256(text).hexdigest()[:16]


def test_case_id_tells_every_difference() -> None:
    given = arguments()
    ids = {Problem(**given).case_id}
    for name in ("q", "kv_fused", "weights", "block_table"):
        changed = given[name].copy()
        changed.reshape(-1)[-1] = (int(changed.reshape(-1)[-1]) + 1) % 5
        ids.add(Problem(**{**given, name: changed}).case_id)
    ids.add(Problem(**arguments((300, 6))).case_id)
    ids.add(Problem(**{**given, "num_sms": 4}).case_id)
    ids.add(Problem(**given, max_context_len=301).case_id)
    ids.add(Problem(**given, schedule=np.array([[0, 0], [2, 0], [2, 0], [2, 0]], np.int32)).case_id)
    reshaped = given | {"q": given["q"].reshape(2, 2, 4, 32), "weights": given["weights"].reshape(4, 4)}
    ids.add(Problem(**reshaped).case_id)
    assert len(ids) == 10
    assert all(len(name) == 16 and set(name) <= set("0123456789abcdef") for name in ids)
    assert (
        Problem(**given, max_context_len=300, schedule=build([300, 5], 3)).case_id == Problem(**given).case_id
    )


def test_replace_keeps_the_schedule() -> None:
    """How a schedule is replayed with other lengths: the schedule stays, and is judged anew."""
    problem = Problem(**arguments((600, 300)))
    longer = dataclasses.replace(problem, weights=problem.weights * 2)
    assert np.array_equal(longer.schedule, problem.schedule)
    with pytest.raises(InputError, match="never meets its end"):
        dataclasses.replace(problem, context_lens=np.array([200, 300], np.int32))
