"""From a recipe to a problem: drawn data, then an edit that overwrites some of it with crafted values.

Drawing is ``mqa_ref.verification.problems``; nothing here is random.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.problem import Problem
from mqa_ref.verification.problems import Recipe, make


@dataclass
class Draft:
    """The arrays of a problem, writable. ``q`` uint8 [B, next_n, H, D], ``weights`` float32 [B*next_n, H],
    ``codes`` uint8 [pages, page, D], ``scales`` float32 [pages, page], ``table`` int32 [B, width], ``lengths``
    int32 [B]."""

    q: NDArray[np.uint8]
    weights: NDArray[np.float32]
    codes: NDArray[np.uint8]
    scales: NDArray[np.float32]
    table: NDArray[np.int32]
    lengths: NDArray[np.int32]

    @classmethod
    def of(cls, problem: Problem, dim: int) -> Draft:
        """The arrays of ``problem``, copied, with the first ``dim`` elements of each query head and key."""
        return cls(
            problem.q[..., :dim].copy(),
            problem.weights.copy(),
            problem.key_codes[..., :dim].copy(),
            problem.scale_bits.view("<f4").astype(np.float32),
            problem.block_table.copy(),
            problem.context_lens.copy(),
        )

    def places(self, sequence: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Page and slot of every token of one sequence, indices into ``codes`` and ``scales``."""
        token = np.arange(self.lengths[sequence], dtype=np.int64)
        page = self.codes.shape[1]
        return self.table[sequence, token // page].astype(np.int64), token % page

    def problem(self, like: Problem) -> Problem:
        """The problem of these arrays, with the numbers and the schedule of ``like``."""
        return Problem(
            self.q,
            fuse(self.codes, self.scales),
            self.weights,
            self.table,
            self.lengths,
            page=like.page,
            num_sms=like.num_sms,
            max_context_len=like.max_context_len,
            schedule=like.schedule,
        )


def fuse(codes: NDArray[np.uint8], scales: NDArray[np.float32]) -> NDArray[np.uint8]:
    """The pages of a cache, uint8 [pages, page*(D+4)]: all codes, then all scales, little-endian (op.md)."""
    raw = np.ascontiguousarray(scales, "<f4").view(np.uint8)
    return np.concatenate([codes.reshape(len(codes), -1), raw.reshape(len(codes), -1)], axis=1)


def build(recipe: Recipe, dim: int, edit: Callable[[Draft], None] | None) -> Problem:
    """The problem of ``recipe`` with heads cut to ``dim`` elements, after ``edit``."""
    drawn = make(recipe).problem
    if edit is None and dim == drawn.head_dim:
        return drawn
    draft = Draft.of(drawn, dim)
    if edit is not None:
        edit(draft)
    return draft.problem(drawn)


def through_views(problem: Problem) -> Problem:
    """The same problem, made from arguments that are slices of larger arrays: offsets, strides, and a pool
    whose pages lie further apart than they are long (peers.md, report 18)."""

    def inside(array: NDArray[Any], poison: int) -> NDArray[Any]:
        shape = tuple(2 * size + 3 for size in array.shape)
        larger = np.full(shape, poison, array.dtype)
        window = larger[tuple(slice(2, 2 + 2 * size, 2) for size in array.shape)]
        window[...] = array
        return window

    return Problem(
        inside(problem.q, 0x7F),
        inside(problem.kv_fused, 0x7F),
        inside(problem.weights, -7),
        inside(problem.block_table, -1),
        inside(problem.context_lens, -1),
        page=problem.page,
        num_sms=problem.num_sms,
        max_context_len=problem.max_context_len,
        schedule=inside(problem.schedule, -1),
    )
