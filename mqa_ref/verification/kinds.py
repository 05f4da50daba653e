"""What kind of element each place of an output is, told from the inputs alone: two kernels are held against each other
kind by kind, and a kind in which they never differ is worth saying, too.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mqa_ref.flow import Flow
from mqa_ref.numerics import E4M3FN, is_nan, to_float64
from mqa_ref.problem import Problem
from mqa_ref.reference.runs import Run, runs
from mqa_ref.report.model import KINDS, TAIL_KINDS
from mqa_ref.schedule import SPLIT_TOKENS

_LEAST: Mapping[str, float] = {"fp32": 2.0**-100, "fp16": 2.0**-14}
"""A product of two of the epilogue's numbers that is at least this is a whole number of its smallest steps (fp32: of
2^-146 and more), and so is every sum of such products. In fp16 only where no product is subnormal at all."""
_MOST: Mapping[str, float] = {"fp32": float(np.finfo(np.float32).max) * 0.999, "fp16": 65504.0 * 0.99}
_HALF_MOST = 65504.0
_STEP = 32
TILE_TOKENS = SPLIT_TOKENS // 2


def kinds(problem: Problem, flow: Flow) -> NDArray[np.int8]:
    """The kind of every element, an index into KINDS: int8 [rows, row_stride]."""
    valid, found = problem.valid_mask(), _tails(problem)
    for run in runs(problem):
        at = run.rows, run.columns
        with np.errstate(all="ignore"):
            np.copyto(found[at], _valid(run, flow), where=valid[at])
    return found


def _tails(problem: Problem) -> NDArray[np.int8]:
    """As if no column were valid."""
    lengths = np.repeat(problem.context_lens.astype(np.int64), problem.next_n)[:, None]
    columns = np.arange(problem.row_stride)
    found = np.full((problem.rows, problem.row_stride), KINDS.index("splits without a token"), np.int8)
    steps = (SPLIT_TOKENS, TILE_TOKENS, problem.page, 1)
    for kind, step in zip(reversed(TAIL_KINDS[:-1]), steps, strict=True):
        found[columns < -(-lengths // step) * step] = KINDS.index(kind)
    return found


def _valid(run: Run, flow: Flow) -> NDArray[np.int8]:
    """Of the logits of a run: int8 [next_n, tokens]."""
    next_n, heads = run.weights.shape
    q, k = to_float64(run.queries, E4M3FN), to_float64(run.keys, E4M3FN)
    steps = range(_STEP, q.shape[1] + 1, _STEP)
    # Every product is a multiple of 2^-18 and every sum below 2^26, so these are exact.
    prefixes = np.stack([q[:, :end] @ k[:, :end].T for end in steps])
    dots = prefixes[-1].reshape(next_n, heads, -1)
    weights = np.abs(run.weights.view(np.float32).astype(np.float64))
    scales = np.abs(run.scales.view(np.float32).astype(np.float64))
    products = np.maximum(dots, 0.0) * weights[:, :, None]
    total = products.sum(axis=1)
    small = np.any((products > 0) & (products < _LEAST[flow.epi]), axis=1)
    large = (2.0 * total >= _MOST[flow.epi]) | (total * scales >= _MOST[flow.epi])
    if flow.epi == "fp16":
        large |= np.any(weights >= _MOST["fp16"], axis=1)[:, None] | (scales >= _MOST["fp16"])
    beyond = np.abs(prefixes).max(axis=0).reshape(dots.shape).max(axis=1) >= _HALF_MOST
    beyond &= "fp16" in (flow.acc, flow.epi)
    special = np.any(~np.isfinite(weights), axis=1, keepdims=True) | ~np.isfinite(scales)
    codes = np.any(is_nan(run.queries, E4M3FN).reshape(next_n, -1), axis=1, keepdims=True)
    codes = codes | np.any(is_nan(run.keys, E4M3FN), axis=1)
    found = np.zeros(total.shape, np.int8)
    for kind, where in enumerate((small, large, beyond, special, codes), start=1):
        found[np.broadcast_to(where, found.shape)] = kind
    return found
