"""Claims become bit patterns as other libraries make them, and arguments that are views make the same problem."""

from __future__ import annotations

import math
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqa_ref.golden import CASES, Claim, LogitsCase, by_name
from mqa_ref.golden.draft import through_views
from mqa_ref.golden.record import problem_of, record
from mqa_ref.golden.views import VIEWS

FLOATS = st.floats(width=32, allow_nan=False) | st.sampled_from([65519.0, 65520.0, 2.0**-25, -0.0])


@given(FLOATS)
@settings(deadline=None)
def test_encode(value: float) -> None:
    kinds = {"fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16}
    codes = {"fp32": np.uint32, "fp16": np.uint16, "bf16": np.uint16}
    with np.errstate(over="ignore", under="ignore"):
        for view in VIEWS:
            out = view.flow.out
            wanted = np.array([value], np.float32).astype(kinds[out]).view(codes[out])[0]
            assert view.encode(value) == wanted


def test_encode_nan_is_canonical() -> None:
    assert {view.encode(math.nan) for view in VIEWS} == {0x7FFFFFFF, 0x7FFF}


def test_names_of_views() -> None:
    names = [view.name for view in VIEWS]
    assert len(set(names)) == len(names) == 36
    assert "fp32-fp32-bf16.sm90.max" in names
    assert "fp32-fp16-fp16.sm100" in names
    assert "fp32-fp16-fp16.sm100.folded" not in names


@pytest.mark.parametrize("name", ["peer-18-padded-pool", "shape-zero-rows", "shape-context-below-next-n"])
def test_views_of_larger_arrays_make_the_same_problem(name: str) -> None:
    (case,) = by_name([name])
    assert isinstance(case, LogitsCase)
    problem = problem_of(case)
    assert through_views(problem).case_id == problem.case_id


def test_every_crafted_case_claims_something_in_every_view() -> None:
    """A recording alone says what the reference gave, a claim what is right."""
    from fnmatch import fnmatchcase

    for case in CASES:
        if isinstance(case, LogitsCase) and case.edit:
            silent = [v.name for v in VIEWS if not any(fnmatchcase(v.name, c.where) for c in case.claims)]
            assert silent == [], case.name


def test_a_claim_is_not_vacuous() -> None:
    """Every claim with its value changed is contradicted."""
    for case in CASES:
        if isinstance(case, LogitsCase) and case.edit and case.recipe.lengths[0] <= 8:
            wrong = [replace(claim, value=-3.0) for claim in case.claims]
            broken = record(replace(case, claims=tuple(wrong))).broken
            assert len(broken) >= len(wrong)
    (one,) = by_name(["value-one"])
    assert isinstance(one, LogitsCase)
    assert record(replace(one, claims=(Claim(0, 0, 1.0, "no-such-view"),))).broken == ()


def test_edits_that_nobody_uses_are_gone() -> None:
    from mqa_ref.golden.edits import EDITS
    from mqa_ref.golden.model import RefusedCase
    from mqa_ref.golden.refusals import REFUSALS

    assert {case.edit for case in CASES if isinstance(case, LogitsCase)} - {""} == set(EDITS)
    assert {case.attempt for case in CASES if isinstance(case, RefusedCase)} == set(REFUSALS)
