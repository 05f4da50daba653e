"""One launch against error bounds: for a kernel that adds in another order, or a machine that no model gives bit for
bit. Every element is held against its own bound; there is no score over all."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
from numpy.typing import NDArray

from mqa_ref.compare.bits import Bits, Mask
from mqa_ref.compare.classes import EQUAL, code
from mqa_ref.compare.comparison import Comparison
from mqa_ref.compare.families import Sample
from mqa_ref.compare.inputs import check
from mqa_ref.compare.measures import Scores, values_of
from mqa_ref.compare.outcome import Judged, assemble
from mqa_ref.compare.patterns import constants, shared_quotient
from mqa_ref.compare.place import Index
from mqa_ref.errors import Fault, InputError
from mqa_ref.flow import Flow
from mqa_ref.launch import Launch
from mqa_ref.numerics import FORMATS, Format, MachineModel, is_inf, is_nan
from mqa_ref.problem import Problem
from mqa_ref.reference import ErrorBounds, Generation, reference_logits
from mqa_ref.reference.exact import round_float64
from mqa_ref.reference.runs import runs

_ROWS = 64


def compare_within(
    launch: Launch,
    problem: Problem,
    flow: Flow,
    bounds: ErrorBounds,
    factor: float = 1.0,
    *,
    machine: str | MachineModel = "sm100",
    generation: Generation = "folded",
) -> Comparison:
    """Compare what a launch wrote with the true logits, each within ``factor`` times its error bound.

    ``bounds``: ``any_order_bounds`` for a kernel that adds in another order, ``own_order_bounds`` for one with the
    order of the reference, both of the same ``problem``, ``flow``, ``machine`` and ``generation``. The expected words
    of the result are those of the true logits, rounded to the output; ``max_ratio`` is the greatest error as a share of
    its bound over all elements, wrong or not.

    Classes (docs/bounds.md, "What is bounded"): where no intermediate result may overflow, NaN and inf are wrong. Where
    one may, every value passes, and ``unbounded`` counts them; an element that was not written is wrong there too.
    Logits that depend on NaN or inf in the inputs are held against the class that the flow's own reference gives:
    finite where that is finite, NaN where it is NaN, and where the inputs hold an inf, which order and rounding
    can turn into NaN (inf * 0) or back, neither finite nor, unless the scale is infinite, the other infinity.

    Raises InputError when shapes or dtypes do not fit, and for a factor that is not a number of at least 0.
    """
    if not 0 <= factor < np.inf:
        raise InputError([Fault("factor", repr(factor), "a finite number, at least 0")])
    arrays = {"bounds.mask": (bounds.mask, "bool"), "bounds.value": (bounds.value, "float64")}
    arrays |= {"bounds.bound": (bounds.bound, "float64"), "bounds.special": (bounds.special, "bool")}
    check(arrays | {"bounds.may_overflow": (bounds.may_overflow, "bool")}, launch, problem, flow)
    fmt = FORMATS[flow.out]
    got = launch.logits[:, : bounds.mask.shape[1]]
    special = bounds.special & bounds.mask & ~bounds.may_overflow
    kinds = np.full(got.shape, EQUAL, np.int8)
    expected = np.zeros(got.shape, flow.bits_dtype)
    scores, top, also = Scores(), -1.0, None
    for first in range(0, len(got), _ROWS):
        at = slice(first, first + _ROWS)
        part = _rows_of(bounds, at)
        expected[at] = round_float64(part.value, flow.out)
        shares = part.ratios(got[at], flow.out)
        kinds[at][shares > factor] = code("value")
        most = np.unravel_index(int(np.argmax(shares)), shares.shape)
        if shares[most] > top:
            top, also = float(shares[most]), (first + int(most[0]), int(most[1]))
        bounded = part.mask & ~part.special & ~part.may_overflow
        truth = values_of(expected[at][bounded], fmt)
        scores += Scores.of(values_of(got[at][bounded], fmt), truth)
    if special.any():
        own = reference_logits(problem, flow, machine, generation=generation)[0]
        expected[special] = own[special]
        _judge_special(got, expected, special, _infinite(problem, special.shape), kinds, fmt)
    wrong = kinds == code("value")
    kinds[wrong & is_nan(got, fmt)] = code("nan")
    kinds[wrong & is_inf(got, fmt) & ~is_inf(expected, fmt)] = code("inf")
    kinds[wrong & is_inf(got, fmt) & is_inf(expected, fmt)] = code("inf_sign")
    kinds[wrong & is_nan(expected, fmt)] = code("nan")
    kinds[wrong & is_inf(expected, fmt) & ~is_inf(got, fmt) & ~is_nan(got, fmt)] = code("inf")
    kinds[bounds.mask & ~launch.written[:, : got.shape[1]]] = code("unwritten")

    def ratios(rows: Index, columns: Index) -> NDArray[np.float64]:
        at = rows, columns
        one = replace(bounds, **{field.name: getattr(bounds, field.name)[at] for field in fields(bounds)})
        no_bound = ~one.mask | one.special | one.may_overflow
        return np.where(no_bound, np.nan, one.ratios(got[at], flow.out))

    def explain(sample: Sample, _: Sample) -> tuple[str, ...]:
        named = constants(sample.found, fmt)
        if named:
            return named
        at = sample.rows, sample.columns
        slack = 2.0 * bounds.bound[at] / np.abs(bounds.value[at])
        quotient = shared_quotient(values_of(sample.found, fmt), bounds.value[at], slack)
        return () if quotient is None else (f"the right logits times {quotient}, within the bounds",)

    judged = Judged(
        *(kinds, got, expected, bounds.mask, scores, ratios, explain, also, float(factor)),
        unbounded=int(np.count_nonzero(bounds.mask & bounds.may_overflow)),
    )
    with np.errstate(all="ignore"):
        return assemble(judged, launch, problem, flow)


def _rows_of(bounds: ErrorBounds, at: slice) -> ErrorBounds:
    return replace(bounds, **{field.name: getattr(bounds, field.name)[at] for field in fields(bounds)})


def _judge_special(
    got: Bits,
    expected: Bits,
    special: Mask,
    infinite: tuple[Mask, Mask],
    kinds: NDArray[np.int8],
    fmt: Format,
) -> None:
    """Marks the ``special`` elements whose class is wrong. ``infinite``: where a weight, and where the scale is inf."""
    in_weights, in_scale = infinite
    nan, inf = is_nan(got, fmt), is_inf(got, fmt)
    nan_expected, inf_expected = is_nan(expected, fmt), is_inf(expected, fmt)
    same = (nan == nan_expected) & (inf == inf_expected)
    signs_agree = ((got ^ expected) & fmt.sign_mask) == 0
    loose = (nan | inf) & (nan_expected | inf_expected) & (in_weights | in_scale)
    wrong = np.asarray(special & ~np.where(inf & inf_expected, signs_agree | in_scale, same | loose))
    kinds[wrong] = code("value")


def _infinite(problem: Problem, shape: tuple[int, ...]) -> tuple[Mask, Mask]:
    """Where a weight of the row, and where the scale of the token is inf: [rows, 1] and [rows, columns]."""
    weights = np.any(np.isinf(problem.weights), axis=1, keepdims=True)
    scales = np.zeros(shape, np.bool_)
    for run in runs(problem):
        scales[run.rows, run.columns] = np.isinf(run.scales.view(np.float32))
    return weights, scales
