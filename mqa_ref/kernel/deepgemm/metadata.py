"""DeepGEMM's schedule metadata: what its own metadata kernels write, for the lengths of a problem.

Source: scheduler/sm90_paged_mqa_logits.cuh and scheduler/sm100_paged_mqa_logits.cuh of sgl-deep-gemm 0.1.5. The tests
run these kernels and compare.

SM90: ``mqa_ref.schedule.build`` in its reversed form, entry for entry: the last CTAs take one split more, the end is
(B, 0). SM100: a split counts once for each query token, the first CTAs take the rest, a CTA starts at the split its
share falls into, and rows are told by their first query token (``row * next_n``).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mqa_ref.kernel.deepgemm.shape import SPLIT_KV, Arch
from mqa_ref.problem import Problem
from mqa_ref.schedule import build


def schedule_rows(problem: Problem, arch: Arch) -> NDArray[np.int32]:
    """The metadata as (row, split) of each CTA's start, int32 [num_sms + 1, 2], as ``mqa_ref.schedule`` tells it."""
    if arch == "sm_90a":
        return build(problem.context_lens, problem.num_sms, "reversed")
    splits = -(-problem.context_lens.astype(np.int64) // SPLIT_KV)
    ends = np.cumsum(splits * problem.next_n)
    share, rest = divmod(int(ends[-1]), problem.num_sms)
    cta = np.arange(problem.num_sms + 1)
    start = cta * share + np.minimum(cta, rest)
    row = np.searchsorted(ends, start, side="right")
    inside = np.minimum(row, problem.batch - 1)
    split = (start - (ends - splits * problem.next_n)[inside]) // problem.next_n
    return np.stack([row, np.where(row < problem.batch, split, 0)], axis=1).astype(np.int32)


def metadata(problem: Problem, arch: Arch) -> NDArray[np.int32]:
    """The metadata as the kernel reads it, int32 [num_sms + 1, 2]."""
    rows = schedule_rows(problem, arch)
    return rows if arch == "sm_90a" else rows * np.array([problem.next_n, 1], np.int32)


def lengths_2d(problem: Problem) -> NDArray[np.int32]:
    """The lengths as the kernel takes them, int32 [B, next_n]: what each query token sees. Only the last column, the
    context length, is read by either kernel; nothing else is a valid length of a token before the context's begin."""
    last = problem.context_lens.astype(np.int64)[:, None] - problem.next_n + 1 + np.arange(problem.next_n)
    lengths: NDArray[np.int32] = np.maximum(last, 0).astype(np.int32)
    return lengths
