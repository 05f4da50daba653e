"""Validation: faults name their argument, its value and what was expected, all at once, none by mere consequence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mqa_ref.errors import InputError
from mqa_ref.problem import Problem
from mqa_ref.schedule import build


def arguments(**changes: Any) -> dict[str, Any]:
    """A good problem: B 2, next_n 1, H 8, D 32, page 64, lengths 300 and 5, 3 CTAs, a pool of 9 pages."""
    return {
        "q": np.zeros((2, 1, 8, 32), np.uint8),
        "kv_fused": np.zeros((9, 64 * 36), np.uint8),
        "weights": np.zeros((2, 8), np.float32),
        "block_table": np.arange(10, dtype=np.int32).reshape(2, 5) % 9,
        "context_lens": np.array([300, 5], np.int32),
        "page": 64,
        "num_sms": 3,
        "max_context_len": 512,
        **changes,
    }


def faults_of(**changes: Any) -> list[tuple[str, str]]:
    with pytest.raises(InputError) as caught:
        Problem(**arguments(**changes))
    for fault in caught.value.faults:
        assert str(fault) in str(caught.value)
        assert fault.expected
    return [(fault.argument, fault.value) for fault in caught.value.faults]


def lens(*lengths: int) -> np.ndarray[Any, Any]:
    return np.array(lengths, np.int32)


def heads(next_n: int, count: int, dim: int = 32) -> dict[str, Any]:
    return {
        "q": np.zeros((2, next_n, count, dim), np.uint8),
        "weights": np.zeros((2 * next_n, count), np.float32),
        "kv_fused": np.zeros((9, 64 * (dim + 4)), np.uint8),
    }


def table(*rows: list[int]) -> np.ndarray[Any, Any]:
    return np.array(rows, np.int32)


GOOD = {
    "as it is": {},
    "unneeded entries hold anything": {
        "block_table": table([0, 8, 0, 8, 0, -1, 2**31 - 1], [3, -1, 9, -(2**31), 2**31 - 1, 99, -7])
    },
    "one page for two sequences": {"block_table": np.full((2, 5), 4, np.int32)},
    "N = 8": heads(2, 4),
    "N = 256": heads(4, 64),
    "D = 128": heads(1, 8, 128),
    "page 128": {"page": 128, "kv_fused": np.zeros((9, 128 * 36), np.uint8)},
    "numpy integers": {"page": np.int64(64), "num_sms": np.uint8(3), "max_context_len": np.int32(300)},
    "length equal to max_context_len": {"max_context_len": 300},
    "length 0": {"context_lens": lens(0, 300)},
    "length below next_n": {**heads(4, 8), "context_lens": lens(3, 0)},
    "special weights": {"weights": np.full((2, 8), np.nan, np.float32)},
    "reversed schedule": {"schedule": build([300, 5], 3, "reversed")},
    "most CTAs": {"num_sms": 4096},
}


@pytest.mark.parametrize("changes", GOOD.values(), ids=GOOD)
def test_good(changes: dict[str, Any]) -> None:
    problem = Problem(**arguments(**changes))
    assert problem.schedule.shape == (problem.num_sms + 1, 2)


BAD: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "q as floats": ({"q": np.zeros((2, 1, 8, 32), np.float32)}, [("q", "dtype float32")]),
    "q as int8": ({"q": np.zeros((2, 1, 8, 32), np.int8)}, [("q", "dtype int8")]),
    "kv_fused as int8": ({"kv_fused": np.zeros((9, 2304), np.int8)}, [("kv_fused", "dtype int8")]),
    "weights as fp16": ({"weights": np.zeros((2, 8), np.float16)}, [("weights", "dtype float16")]),
    "block_table as int64": ({"block_table": np.zeros((2, 5), np.int64)}, [("block_table", "dtype int64")]),
    "context_lens as int64": ({"context_lens": np.array([300, 5])}, [("context_lens", "dtype int64")]),
    "foreign byte order": ({"context_lens": np.array([300, 5], ">i4")}, [("context_lens", "dtype >i4")]),
    "a list": ({"context_lens": [300, 5]}, [("context_lens", "type list")]),
    "a masked array": (
        {"context_lens": np.ma.masked_array(lens(300, 5))},
        [("context_lens", "type MaskedArray")],
    ),
    "q seen by the kernel": ({"q": np.zeros((8, 32, 2), np.uint8)}, [("q", "shape [8, 32, 2]")]),
    "schedule as int64": ({"schedule": build([300, 5], 3).astype(np.int64)}, [("schedule", "dtype int64")]),
    "page 48": ({"page": 48}, [("page", "48")]),
    "page 64.0": ({"page": 64.0}, [("page", "64.0")]),
    "B = 0": (
        {
            "q": np.zeros((0, 1, 8, 32), np.uint8),
            "weights": np.zeros((0, 8), np.float32),
            "block_table": np.zeros((0, 5), np.int32),
            "context_lens": lens(),
        },
        [("q", "B = 0")],
    ),
    "H = 10, next_n = 4": (heads(4, 10), [("q", "H = 10")]),
    "N = 264": (heads(3, 88), [("q", "N = next_n*H = 264")]),
    "N = 4": (heads(1, 4), [("q", "N = next_n*H = 4")]),
    "N = 0": (heads(0, 8), [("q", "N = next_n*H = 0")]),
    "N = 12": (heads(3, 4), [("q", "N = next_n*H = 12")]),
    "D = 96": (heads(1, 8, 96), [("q", "D = 96")]),
    "interleaved width": ({"kv_fused": np.zeros((9, 64 * 32), np.uint8)}, [("kv_fused", "shape [9, 2048]")]),
    "no page": ({"kv_fused": np.zeros((0, 2304), np.uint8)}, [("kv_fused", "no page")]),
    "weights as [B, N]": ({"weights": np.zeros((1, 16), np.float32)}, [("weights", "shape [1, 16]")]),
    "table of one sequence": ({"block_table": table([0, 1, 2, 3, 4])}, [("block_table", "shape [1, 5]")]),
    "three lengths": ({"context_lens": lens(300, 5, 1)}, [("context_lens", "shape [3]")]),
    "lengths as [B, next_n]": ({"context_lens": lens(300, 5)[:, None]}, [("context_lens", "shape [2, 1]")]),
    "table too narrow": ({"block_table": table([0, 1, 2, 3], [0, 1, 2, 3])}, [("block_table", "4 columns")]),
    "table without a column": ({"block_table": np.zeros((2, 0), np.int32)}, [("block_table", "no column")]),
    "needed page id 9 of 9": (
        {"block_table": table([0, 1, 2, 3, 9], [0, 0, 0, 0, 0])},
        [("block_table", "page id 9 at [0, 4]")],
    ),
    "needed page id -1": (
        {"block_table": table([0, 1, 2, 3, 4], [-1, 0, 0, 0, 0])},
        [("block_table", "page id -1 at [1, 0]")],
    ),
    "negative length": ({"context_lens": lens(300, -1)}, [("context_lens", "-1 for sequence 1")]),
    "length above the maximum": ({"max_context_len": 299}, [("context_lens", "300 for sequence 0")]),
    "max_context_len 0": ({"max_context_len": 0}, [("max_context_len", "0")]),
    "num_sms 0": ({"num_sms": 0}, [("num_sms", "0")]),
    "num_sms 4097": ({"num_sms": 4097}, [("num_sms", "4097")]),
    "num_sms True": ({"num_sms": True}, [("num_sms", "True")]),
    "schedule for other CTAs": ({"schedule": build([300, 5], 4)}, [("schedule", "shape [5, 2]")]),
    "too many logits": (
        {"max_context_len": 2**31 - 1},
        [("max_context_len", "2147483647 columns for 2 rows")],
    ),
    "everything": (
        {"q": np.zeros((2, 1, 8, 32), np.int8), "page": 48, "context_lens": lens(-1, -2), "num_sms": -1},
        [
            ("q", "dtype int8"),
            ("context_lens", "-1 for sequence 0 (and 1 more)"),
            ("page", "48"),
            ("num_sms", "-1"),
        ],
    ),
}


@pytest.mark.parametrize(("changes", "expected"), BAD.values(), ids=BAD)
def test_bad(changes: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert faults_of(**changes) == expected


ONE = {
    "q": np.zeros((1, 1, 8, 32), np.uint8),
    "weights": np.zeros((1, 8), np.float32),
    "block_table": np.zeros((1, 10), np.int32),
}
SCHEDULES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "for [257], used with [256]": (
        {**ONE, "context_lens": lens(256), "num_sms": 2, "schedule": build([257], 2)},
        ["stale", "no_termination"],
    ),
    "for [600, 300], used with [200, 300]": (
        {"context_lens": lens(200, 300), "schedule": build([600, 300], 3)},
        ["stale", "no_termination"],
    ),
    "made with split 128": (
        {**ONE, "context_lens": lens(600), "schedule": table([0, 0], [0, 2], [0, 4], [1, 0])},
        ["stale", "no_termination"],
    ),
    "for B*next_n rows": (
        {"context_lens": lens(300, 300), "schedule": build([300] * 4, 3)},
        ["bounds"],
    ),
    "a row left out": ({"context_lens": lens(300, 300), "schedule": build([300], 3)}, ["missing"]),
    "twice": (
        {"context_lens": lens(256, 256), "schedule": table([0, 0], [1, 0], [0, 0], [2, 0])},
        ["no_termination", "duplicate"],
    ),
}


@pytest.mark.parametrize(("changes", "kinds"), SCHEDULES.values(), ids=SCHEDULES)
def test_bad_schedules(changes: dict[str, Any], kinds: list[str]) -> None:
    found = faults_of(max_context_len=None, **changes)
    assert [argument for argument, _ in found] == ["schedule"] * len(kinds)
    assert [value.split(":")[0] for _, value in found] == kinds


def test_nothing_large_is_allocated_to_find_out() -> None:
    """q and pages are views of one byte: 2**40 elements each that could not be copied."""
    q = np.broadcast_to(np.zeros(1, np.uint8), (2**30, 1, 8, 128))
    pool = np.broadcast_to(np.zeros(1, np.uint8), (2**28, 64 * 132))
    found = faults_of(q=q, kv_fused=pool, weights=np.broadcast_to(np.float32(0), (2**30, 8)), page=48)
    assert {argument for argument, _ in found} == {"context_lens", "block_table", "page", "max_context_len"}
