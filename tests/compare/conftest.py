from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mqa_ref.launch import Launch
from mqa_ref.problem import Problem

MakeProblem = Callable[..., Problem]
PerfectLaunch = Callable[..., Launch]


def build_problem(lengths: list[int], *, next_n: int = 1, num_sms: int = 2, page: int = 64) -> Problem:
    """A problem with 8 heads whose values are all zero; sequence b takes pages 10*b, 10*b + 1, ... of its
    own."""
    rows, width = len(lengths) * next_n, max(1, -(-max(lengths) // page))
    table = (10 * np.arange(len(lengths))[:, None] + np.arange(width)).astype(np.int32)
    return Problem(
        np.zeros((len(lengths), next_n, 8, 128), np.uint8),
        np.zeros((int(table.max()) + 1, page * 132), np.uint8),
        np.zeros((rows, 8), np.float32),
        table,
        np.array(lengths, np.int32),
        page=page,
        num_sms=num_sms,
    )


@pytest.fixture
def make_problem() -> MakeProblem:
    return build_problem


@pytest.fixture
def perfect_launch() -> PerfectLaunch:
    """A launch that wrote what was expected in the valid columns, and something else in the rest of every
    split."""

    def make(problem: Problem, expected: np.ndarray) -> Launch:
        shape = (problem.rows, problem.row_stride)
        logits = np.full(shape, 0x1234, expected.dtype)
        valid = problem.valid_mask()
        logits[:, : valid.shape[1]][valid] = expected[valid]
        columns = np.arange(shape[1])
        asked = np.repeat(-(-problem.context_lens // 256) * 256, problem.next_n)
        return Launch(logits, columns < asked[:, None], (), problem.num_sms, 0, 0.0)

    return make
