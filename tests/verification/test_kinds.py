"""Kinds of elements, from inputs whose kind is known by hand; and the probes, which have one kind each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mqa_ref.flow import Flow
from mqa_ref.launch import Launch
from mqa_ref.problem import Problem
from mqa_ref.reference import GENERATIONS, reference_logits
from mqa_ref.report.model import KINDS, VALID_KINDS
from mqa_ref.verification.differences import differences
from mqa_ref.verification.kinds import kinds
from mqa_ref.verification.probes import probes
from mqa_ref.verification.problems import quick

FP32, FP16 = Flow.parse("fp32-fp32-fp32"), Flow.parse("fp16-fp16-fp32")
PROBED = {
    "ab-ordinary": "ordinary data",
    "ab-overflow": "sums near the greatest number",
    "ab-subnormal": "sums near the subnormals",
    "ab-nan-key": "NaN codes",
    "ab-inf-weight": "NaN or inf among weights and scales",
    "ab-minus-inf": "dot products beyond fp16",
    "ab-behind": "ordinary data",
    "ab-last-page": "ordinary data",
    "ab-no-token": "ordinary data",
}


@pytest.mark.parametrize("case", probes(), ids=lambda case: case.name)
def test_the_valid_logits_of_a_probe_are_of_its_kind(case: Any) -> None:
    found = kinds(case.problem, case.flow or FP32)
    valid = np.zeros(found.shape, np.bool_)
    valid[:, : case.problem.max_context_len] = case.problem.valid_mask()
    assert {KINDS[kind] for kind in found[valid]} == {PROBED[case.name]}
    assert min(found[~valid]) >= len(VALID_KINDS)
    assert case.problem.num_sms == 1
    assert case.name == "ab-no-token" or case.problem.batch == 1


def test_a_dot_is_beyond_fp16_only_in_flows_with_fp16() -> None:
    (case,) = (one for one in probes() if one.name == "ab-minus-inf")
    assert KINDS[kinds(case.problem, FP32)[0, 0]] == "ordinary data"


def problem(length: int, next_n: int, page: int = 64) -> Problem:
    return Problem(
        np.full((1, next_n, 16, 128), 0x38, np.uint8),
        np.zeros((12, page * 132), np.uint8),
        np.ones((next_n, 16), np.float32),
        np.arange(12, dtype=np.int32)[None],
        np.array([length], np.int32),
        page=page,
        num_sms=1,
        max_context_len=600,
    )


def test_the_columns_that_mean_nothing_by_hand() -> None:
    """Length 70, two query tokens, pages of 64: the first query sees 69 tokens, the second all 70; the second page ends
    at 128, as does the tile; the other tile of the split ends at 256; the rest of 768 columns is nobody's."""
    found = kinds(problem(70, 2), FP32)
    ends = [(69, 70, 128, 128, 256, 768), (70, 70, 128, 128, 256, 768)]
    for row, limits in enumerate(ends):
        expected, start = [], 0
        for name, end in zip(("ordinary data", *KINDS[len(VALID_KINDS) :]), limits, strict=True):
            expected += [name] * (end - start)
            start = end
        assert [KINDS[kind] for kind in found[row]] == expected


def test_pages_behind_the_length_in_the_same_tile() -> None:
    found = kinds(problem(33, 1, page=32), FP32)
    assert [KINDS[kind] for kind in found[0, [32, 33, 63, 64, 127, 128]]] == [
        *["ordinary data", "rest of the last page", "rest of the last page"],
        *["pages behind the length", "pages behind the length", "tile behind the length"],
    ]


def test_ordinary_data_means_the_same_bits_in_every_generation(record_property: Any) -> None:
    """What the kind promises, on all named problems: 20,000 logits and more."""
    tried = 0
    for case in quick():
        ordinary = kinds(case.problem, FP32)[:, : case.problem.max_context_len] == 0
        first, *others = (
            reference_logits(case.problem, FP32, generation=generation)[0] for generation in GENERATIONS
        )
        assert all(np.array_equal(first[ordinary], other[ordinary]) for other in others)
        tried += int(ordinary.sum())
    assert tried > 20_000
    record_property("tried", tried)


def _launch(shape: tuple[int, int]) -> Launch:
    return Launch(np.zeros(shape, np.uint32), np.zeros(shape, np.bool_), (), 1, 1, 0.0)


def test_differences_are_counted_kind_by_kind() -> None:
    one = problem(70, 1)
    shape = (1, one.row_stride)
    own, other = _launch(shape), _launch(shape)
    own.written[0, :256] = other.written[0, :128] = True
    own.logits[0, 3], other.logits[0, 3] = 1, 2
    own.logits[0, 4], other.logits[0, 4] = 0x7FC00000, 0xFF800001  # NaN is one class
    own.logits[0, 100] = 5
    own.logits[0, 300] = 9  # written by nobody
    told = {result.kind: result for result in differences(own, other, one, FP32)}
    counts = {kind: (result.compared, result.differing, result.alone) for kind, result in told.items()}
    assert counts == {
        "ordinary data": (70, 1, 0),
        "rest of the last page": (58, 1, 0),
        "tile behind the length": (128, 128, 128),
    }
    assert told["ordinary data"].first == "row 0 column 3: 0x00000001 against 0x00000002"
    assert told["tile behind the length"].first == "row 0 column 128: 0x00000000 against not written"


def test_a_valid_logit_that_neither_kernel_wrote_is_compared() -> None:
    one = problem(70, 1)
    none = _launch((1, one.row_stride))
    (result,) = differences(none, replace(none), one, FP32)
    assert (result.kind, result.compared, result.differing) == ("ordinary data", 70, 0)
