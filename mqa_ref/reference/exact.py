"""The true logits: the infinitely precise value of the operation on the inputs as given, rounded once.

    logit = scale * sum over heads of weight * max(0, dot)

with the fp32 weights and scales themselves, in every flow, and no rounding before the last. Beyond the numbers it is
the arithmetic of IEEE 754: NaN in the key, in a query head of the row (whatever its weight), in a weight or in the
scale gives NaN; so do 0 * inf (an infinite weight on a dot that is not positive, an infinite scale on a sum of 0) and
inf - inf; what else is infinite stays so. A sum of exactly 0 counts as +0, so a zero logit has the sign of the scale.

Three ways, each for what the one before leaves open (proof in each function): float64 with a bound on its error, where
both ends round to the same code; ``expansions``, sums without error, where float64 is too short; Python integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.errors import Fault, InputError
from mqa_ref.numerics import E4M3_VALUE, FORMATS, cvt_bf16_f32
from mqa_ref.problem import Problem
from mqa_ref.reference.expansions import integer_logits, long_sums
from mqa_ref.reference.runs import Run, runs

F64 = NDArray[np.float64]
OUTPUTS = ("fp32", "fp16", "bf16")

_GATHERED = 1 << 14
"""Logits in work at once in the second and third way."""


def exact_logits(problem: Problem, out: str = "fp32") -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The true logits of ``problem``, correctly rounded once to ``out`` ("fp32", "fp16", "bf16"), to nearest even with
    subnormals and overflow to inf.

    Returns bit patterns, uint32 (fp32) or uint16 [rows, max_context_len], NaN canonical, 0 in columns that are not
    valid, and the mask of the valid ones. InputError for another ``out``. Standing: proof; what counts as true is the
    definition in op.md, with this module's rules for NaN, inf and zero.
    """
    if out not in OUTPUTS:
        raise InputError([Fault("out", repr(out), "one of " + ", ".join(OUTPUTS))])
    mask = problem.valid_mask()
    bits: NDArray[Any] = np.zeros(mask.shape, np.uint32 if out == "fp32" else np.uint16)
    for run in runs(problem):
        bits[run.rows, run.columns] = _run_logits(run, out)
    bits[~mask] = 0
    return bits, mask


def exact_relu(queries: NDArray[np.uint8], keys: NDArray[np.uint8]) -> F64:
    """max(0, dot) of every query [N, D] and key [T, D], exact: a multiple of 2**-18 below 2**25. NaN where a code is.

    float64 holds every partial sum of D <= 128 products of e4m3fn numbers, in any order.
    """
    return np.maximum(E4M3_VALUE.take(queries) @ E4M3_VALUE.take(keys).T, 0.0)


def sum_radius(heads: int, magnitude: F64) -> F64:
    """How far a float64 sum of ``heads`` products, of which the magnitudes sum to ``magnitude``, may be off, times two.

    In any order, fused or not, the error is at most gamma = H * 2**-53 / (1 - H * 2**-53) of the exact sum of
    magnitudes (Higham, Accuracy and Stability, 3.1), which the computed one misses by gamma again. (H + 8) * 2**-52
    is twice that and more, which leaves room for the few operations that follow.
    """
    return magnitude * ((heads + 8) * 2.0**-52)


def float64_sums(positive: F64, weights: F64) -> tuple[F64, F64]:
    """sum over h of w*x for ``positive`` [n, H, T] and ``weights`` [n, H], and the same of magnitudes; [n, T] each."""
    total = np.matmul(weights[:, None, :], positive)[:, 0] + 0.0  # a sum of -0 counts as +0
    return total, np.matmul(np.abs(weights)[:, None, :], positive)[:, 0]


def round_float64(values: F64, out: str) -> NDArray[Any]:
    """float64 numbers, rounded once to the codes of ``out``; NaN canonical."""
    with np.errstate(all="ignore"):
        if out == "fp32":
            bits: NDArray[Any] = values.astype(np.float32).view(np.uint32)
        elif out == "fp16":
            bits = values.astype(np.float16).view(np.uint16)
        else:
            # To odd in fp32 (toward zero, the last bit set where that was inexact), which has the exponents of bf16 and
            # 16 bits more; the second rounding is then the only one (Boldo & Melquiond, IEEE TC 57(4), 2008).
            near = values.astype(np.float32)
            code = near.view(np.uint32) - (np.abs(near.astype(np.float64)) > np.abs(values))
            inexact = code.view(np.float32).astype(np.float64) != values
            bits = cvt_bf16_f32(code | inexact)
    bits[np.isnan(values)] = FORMATS[out].canonical_nan
    return bits


def _run_logits(run: Run, out: str) -> NDArray[Any]:
    """The logits [next_n, tokens] of one run."""
    next_n, heads = run.weights.shape
    weights = run.weights.view(np.float32).astype(np.float64)
    scales = run.scales.view(np.float32).astype(np.float64)
    with np.errstate(all="ignore"):
        positive = exact_relu(run.queries, run.keys).reshape(next_n, heads, -1)
        total, magnitude = float64_sums(positive, weights)
        # Where the sum is inf or NaN, IEEE 754 has said so; a sum of finite products is far below float64's limit.
        radius = np.where(np.isfinite(total), sum_radius(heads, magnitude), 0.0)
        low = round_float64((total - radius) * scales, out)
        high = round_float64((total + radius) * scales, out)
        rows, tokens = np.nonzero(low != high)
        for start in range(0, rows.size, _GATHERED):
            at = rows[start : start + _GATHERED], tokens[start : start + _GATHERED]
            low[at] = _long_logits(positive[at[0], :, at[1]], weights[at[0]], scales[at[1]], out)
    return low


def _long_logits(positive: F64, weights: F64, scales: F64, out: str) -> NDArray[Any]:
    """The logits of gathered places: ``positive``, ``weights`` [count, H], ``scales`` [count]; all sums finite."""
    infinite = np.isinf(scales)
    low, high = long_sums(positive, weights, np.where(infinite, np.copysign(1.0, scales), scales))
    # The sign of the sum, or its being 0, decides under an infinite scale.
    bits, other = (round_float64(np.where(infinite, end * np.inf, end), out) for end in (low, high))
    rest = np.flatnonzero(bits != other)
    bits[rest] = integer_logits(positive[rest], weights[rest], scales[rest], FORMATS[out])
    return bits
