"""One launch against the expected bits: the same flow on the same machine, so that one wrong bit is an error."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mqa_ref.compare.bits import Bits, Mask
from mqa_ref.compare.classes import EQUAL, classify
from mqa_ref.compare.comparison import Comparison
from mqa_ref.compare.families import Sample
from mqa_ref.compare.gather import bound_ratios
from mqa_ref.compare.inputs import check
from mqa_ref.compare.measures import Scores, values_of
from mqa_ref.compare.outcome import Judged, assemble
from mqa_ref.compare.place import Index
from mqa_ref.compare.suspects import Case, suspects
from mqa_ref.flow import Flow
from mqa_ref.launch import Launch
from mqa_ref.numerics import FORMATS, Format, MachineModel
from mqa_ref.problem import Problem
from mqa_ref.reference import Generation, own_order_bounds

_ROWS = 64
"""Rows in work at once."""


def compare(
    expected: Bits,
    valid: Mask,
    launch: Launch,
    problem: Problem,
    flow: Flow,
    *,
    machine: str | MachineModel = "sm100",
    generation: Generation = "folded",
) -> Comparison:
    """Compare what a launch wrote with what it had to write.

    ``expected``: patterns of the flow's output format [rows, columns], ``valid``: bool, same shape, the
    elements that mean something (both as ``reference_logits`` gives them). ``launch.logits`` may have longer
    rows. Every valid element is compared, finite or not; nothing else is. ``machine``, ``generation``: those of the
    reference, to find out what gives the wrong bits. Raises InputError when shapes or dtypes do not fit.
    """
    check({"expected": (expected, str(flow.bits_dtype)), "valid": (valid, "bool")}, launch, problem, flow)
    fmt = FORMATS[flow.out]
    got = launch.logits[:, : expected.shape[1]]
    kinds = np.full(expected.shape, EQUAL, np.int8)
    scores = Scores()
    for first in range(0, len(expected), _ROWS):
        at = slice(first, first + _ROWS)
        written = launch.written[at, : expected.shape[1]]
        scores += _judge(got[at], expected[at], written, valid[at], kinds[at], fmt)

    def ratios(rows: Index, columns: Index) -> NDArray[np.float64]:
        options = {"machine": machine, "generation": generation}
        return bound_ratios(own_order_bounds, problem, flow, (rows, columns), got[rows, columns], **options)

    def explain(wrong: Sample, right: Sample) -> tuple[str, ...]:
        return suspects(Case(problem, flow, machine, generation, wrong, right, expected, valid))

    return assemble(Judged(kinds, got, expected, valid, scores, ratios, explain), launch, problem, flow)


def _judge(
    got: Bits, expected: Bits, written: Mask, valid: Mask, kinds: NDArray[np.int8], fmt: Format
) -> Scores:
    """Classify some rows, into ``kinds``, and give their scores."""
    differ = ((got != expected) | ~written) & valid
    whole = bool(valid.all())
    right = values_of((expected if whole else expected[valid]).reshape(-1), fmt)
    if not differ.any():
        return Scores.of(right, right)
    at = np.nonzero(differ)
    kinds[at] = classify(got[at], expected[at], written[at], fmt)
    return Scores.of(values_of((got if whole else got[valid]).reshape(-1), fmt), right)
