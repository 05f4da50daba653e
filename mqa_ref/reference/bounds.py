"""How far a logit can rightly be from the true one: per element, for the kernel's own order and for any order.

docs/bounds.md derives both from the roundings one by one; the letters in comments are its names for them. ``exact``
defines the true value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mqa_ref.flow import Flow
from mqa_ref.numerics import FORMATS, MachineModel, is_nan, to_float64
from mqa_ref.numerics.formats import E4M3FN
from mqa_ref.problem import Problem
from mqa_ref.reference import dot_bounds
from mqa_ref.reference.dot_bounds import DotBound
from mqa_ref.reference.epilogue import Generation, checked_request
from mqa_ref.reference.exact import float64_sums, sum_radius
from mqa_ref.reference.head_bounds import Heads, SumBound, any_sum, own_sum
from mqa_ref.reference.roundoff import ROUNDINGS, UP, Rounding
from mqa_ref.reference.runs import Run, runs

F64 = NDArray[np.float64]
Scaled = Literal["sum", "parts"]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class ErrorBounds:
    """Arrays [rows, max_context_len]; what stands in columns that are not valid means nothing.

    ``value`` float64: the true logit, so near that ``bound`` covers the difference. ``bound`` float64: a right logit,
    as the flow stores it, is within this of ``value`` and of the true logit; inf where ``may_overflow``.
    ``may_overflow``: an intermediate result or the logit may rightly overflow; where it is False, inf and NaN are
    wrong. ``special``: an input of the logit is NaN or inf (docs/flows.md says what each flow makes of it), and the
    other arrays say nothing. ``mask``: the valid columns.
    """

    value: F64
    bound: F64
    may_overflow: Mask
    special: Mask
    mask: Mask

    def stored(self, out: str) -> ErrorBounds:
        """The bounds of the same logits after one more conversion, to ``out`` ("fp16" or "bf16"): docs/bounds.md, O."""
        rounding = ROUNDINGS[out]
        with np.errstate(all="ignore"):
            reach = np.abs(self.value) + self.bound
            may_overflow = self.may_overflow | rounding.overflows(reach)
            bound = np.where(may_overflow, np.inf, (self.bound + rounding.error(reach)) * UP)
        return replace(self, bound=bound, may_overflow=may_overflow)

    def ratios(self, bits: NDArray[Any], out: str) -> F64:
        """The error of logits ``bits``, codes of ``out`` [rows, max_context_len], as a share of the bound.

        At most 1 when right, inf for inf or NaN that cannot be. 0 where there is no bound: in columns that are not
        valid, ``special`` ones, and those that may overflow, for there any value can be right.
        """
        with np.errstate(all="ignore"):
            error = np.abs(to_float64(bits, FORMATS[out]) - self.value)
            share = np.where(error == 0, 0.0, np.where(np.isnan(error), np.inf, error / self.bound))
        return np.where(self.mask & ~self.special & ~self.may_overflow, share, 0.0)


def own_order_bounds(
    problem: Problem, flow: Flow, machine: str | MachineModel = "sm100", *, generation: Generation = "folded"
) -> ErrorBounds:
    """Bounds for a kernel that adds in the order of ``reference_logits``: its steps of 32 products, its four sums.

    Arguments and errors as there. Standing: proof from the machine's model, with the standing of that.
    """
    return _bounds(
        problem, flow, checked_request(machine, generation), generation, dot_bounds.own_order, own_sum
    )


def any_order_bounds(
    problem: Problem,
    flow: Flow,
    machine: str | MachineModel = "sm100",
    *,
    generation: Generation = "folded",
    scaled: Scaled = "sum",
) -> ErrorBounds:
    """Bounds for every kernel with the flow's formats, on that machine, that may add in any other order.

    Any way to deal a dot product's D products out to D / 32 tensor-core instructions and to join those by accumulator
    or addition; any tree over the heads, products fused with additions or rounded by themselves; ReLU before or after
    the conversion to fp16. ``scaled``: "sum" where the scale is applied to the sum, as in nearly every kernel, "parts"
    where it may be applied to partial sums before they are added, as DeepGEMM's SM90 kernel does (``orders``): this is
    the wider bound, which covers the other. Otherwise as ``own_order_bounds``.
    """
    model = checked_request(machine, generation)
    return _bounds(problem, flow, model, generation, dot_bounds.any_order, any_sum, parts=scaled == "parts")


def _bounds(
    problem: Problem,
    flow: Flow,
    model: MachineModel,
    generation: Generation,
    dots: Callable[..., DotBound],
    sums: Callable[..., SumBound],
    *,
    parts: bool = False,
) -> ErrorBounds:
    mask = problem.valid_mask()
    value, bound = np.zeros(mask.shape), np.zeros(mask.shape)
    may_overflow, special = np.zeros(mask.shape, np.bool_), np.zeros(mask.shape, np.bool_)
    factor = 2.0 if generation == "folded" and flow.epi == "fp32" else 1.0
    for run in runs(problem):
        at = run.rows, run.columns
        special[at] = _special(run)
        with np.errstate(all="ignore"):
            dot = dots(run.queries, run.keys, model, flow.acc)
            value[at], bound[at], may_overflow[at] = _run_bounds(run, flow, dot, factor, sums, parts)
    bound[may_overflow] = np.inf
    bounds = ErrorBounds(value, bound, may_overflow, special, mask)
    return bounds if flow.out in ("fp32", flow.epi) else bounds.stored(flow.out)


def _run_bounds(
    run: Run, flow: Flow, dot: DotBound, factor: float, sums: Callable[..., SumBound], parts: bool
) -> tuple[F64, F64, Mask]:
    next_n, heads = run.weights.shape
    rounding = ROUNDINGS[flow.epi]
    positive, error = (array.reshape(next_n, heads, -1) for array in (dot.positive, dot.error))
    overflow: Mask = np.any(dot.overflow.reshape(positive.shape), axis=1)
    if flow.acc != flow.epi:  # H
        reach = positive + error
        overflow |= rounding.overflows(reach).any(axis=1)
        error = error + rounding.error(reach)
    true_weights, true_scales = _finite(run.weights), _finite(run.scales)
    value, magnitude = float64_sums(positive, true_weights)
    value, radius = value * true_scales, sum_radius(heads, magnitude) * np.abs(true_scales)
    weights, scales, drift = true_weights, true_scales, 2.0 * radius
    if (
        flow.epi == "fp16"
    ):  # W and S: the rounded inputs are known, so is the true value of the operation on them
        weights, scales = _to_half(true_weights), _to_half(true_scales)
        overflow |= np.any(np.isinf(weights), axis=1)[:, None] | np.isinf(scales)
        weights, scales = (np.where(np.isinf(numbers), 0.0, numbers) for numbers in (weights, scales))
        rounded, magnitude = float64_sums(positive, weights)
        drift = drift + np.abs(rounded * scales - value) + sum_radius(heads, magnitude) * np.abs(scales)
    total = sums(Heads(positive, error, weights, magnitude), flow.epi, factor)
    overflow |= total.overflow
    size = np.abs(scales)
    reach = size * total.reach
    if parts:
        reach, scaling = _scaled_parts(heads, size, total, rounding)
    else:
        scaling = rounding.error(reach)
    overflow |= rounding.overflows(reach)
    bound = drift + size * total.error + scaling  # M
    return value, bound * UP, overflow


def _scaled_parts(heads: int, size: F64, total: SumBound, rounding: Rounding) -> tuple[F64, F64]:
    """Where the scale may come before the last additions: what no scaled sum exceeds, and what the roundings add to the
    sum's error times ``size`` (docs/bounds.md, "The scale on partial sums"; standing: proof).

    Up to ``heads`` parts are scaled. Their roundings change a normal product by u of it, a subnormal one by half a unit
    of the subnormals, and so may the halving in each part. The additions after the scale are rounded at the scaled
    magnitude, where a unit can be larger than the scaled unit of the sum, for which ``total.error`` has room.
    """
    reach = size * total.reach
    underflow = np.minimum(reach, heads * rounding.least)
    scaled = (reach + underflow) * (1.0 + rounding.relative) ** heads
    halving = size * np.minimum(total.reach, heads * rounding.least)
    additions = np.maximum(rounding.error(scaled) - size * rounding.error(total.reach), 0.0)
    return scaled, rounding.relative * reach + underflow + halving + (heads - 1) * additions


def _finite(codes: NDArray[np.uint32]) -> F64:
    """fp32 codes as float64, with 0 for inf and NaN (whose logits are special)."""
    numbers = codes.view(np.float32).astype(np.float64)
    return np.where(np.isfinite(numbers), numbers, 0.0)


def _to_half(numbers: F64) -> F64:
    return numbers.astype(np.float16).astype(np.float64)


def _special(run: Run) -> Mask:
    """Where a code, a weight or the scale of a logit is NaN or inf: [next_n, tokens]."""
    queries = np.any(is_nan(run.queries, E4M3FN).reshape(len(run.weights), -1), axis=1)
    weights = np.any(~np.isfinite(run.weights.view(np.float32)), axis=1)
    tokens = np.any(is_nan(run.keys, E4M3FN), axis=1) | ~np.isfinite(run.scales.view(np.float32))
    return np.asarray((queries | weights)[:, None] | tokens)
