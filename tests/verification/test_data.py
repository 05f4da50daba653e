"""The crafted values do what they are for, by exact arithmetic that shares nothing with the package."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from mqa_ref.flow import Flow
from mqa_ref.problem import Problem
from mqa_ref.reference import reference_logits
from mqa_ref.verification.problems import quick

Fma = Callable[[np.float32, np.float32, np.float32], np.float32]
FLOW = Flow.parse("fp32-fp32-fp32")


@pytest.fixture(scope="module")
def problems() -> dict[str, Problem]:
    return {one.name: one.problem for one in quick()}


def values(codes: np.ndarray) -> list[Fraction]:
    return [Fraction(float(x)) for x in codes.view(ml_dtypes.float8_e4m3fn).astype(np.float64)]


def key(problem: Problem, b: int, token: int) -> tuple[np.ndarray, np.float32]:
    page, slot = int(problem.block_table[b, token // problem.page]), token % problem.page
    raw = problem.kv_fused[page]
    scale = raw[problem.page * 128 :][4 * slot : 4 * slot + 4].view("<f4")[0]
    return raw[slot * 128 : (slot + 1) * 128], scale


def nearest(exact: Fraction) -> np.float32:
    """fp32 nearest to an exact number, ties to even, by looking at the neighbours of a first guess."""
    guess = np.float32(float(exact))
    near = [np.nextafter(guess, np.float32(-np.inf)), guess, np.nextafter(guess, np.float32(np.inf))]
    return min(near, key=lambda x: (abs(Fraction(float(x)) - exact), int(np.float32(x).view(np.uint32)) & 1))


def folded(problem: Problem, row: int, token: int, fma: Fma) -> float:
    """One logit of the folded form with exact dot products and the given multiply-add; the final sum is exact
    here."""
    b, t = divmod(row, problem.next_n)
    codes, scale = key(problem, b, token)
    k = values(codes)
    sums = [np.float32(0)] * 4
    for head in range(problem.heads):
        dot = sum((x * y for x, y in zip(values(problem.q[b, t, head]), k, strict=True)), Fraction(0))
        twice = np.float32(float(dot + abs(dot)))
        assert Fraction(float(twice)) == dot + abs(dot)
        sums[head % 4] = fma(twice, problem.weights[row, head], sums[head % 4])
    assert sum(part != 0 for part in sums) == 1
    return float(sum(sums)) / 2 * float(scale)


def once(x: np.float32, y: np.float32, z: np.float32) -> np.float32:
    return nearest(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)))


def through_float64(x: np.float32, y: np.float32, z: np.float32) -> np.float32:
    return np.float32(float(x) * float(y) + float(z))


def unfused(x: np.float32, y: np.float32, z: np.float32) -> np.float32:
    return np.float32(np.float32(x * y) + z)


@pytest.mark.parametrize("place", [(0, 0), (1, 299), (2, 77), (3, 150)])
def test_fma_ties_tell_one_rounding_from_two(problems: dict[str, Problem], place: tuple[int, int]) -> None:
    problem = problems["fma-ties"]
    right = folded(problem, *place, once)
    assert folded(problem, *place, through_float64) != right
    assert folded(problem, *place, unfused) != right
    bits, valid = reference_logits(problem, FLOW)
    assert valid[place]
    assert float(bits[place].view(np.float32)) == right


def test_the_folded_half_overflows_where_the_max_form_does_not(problems: dict[str, Problem]) -> None:
    problem = problems["overflow"]
    # The last row has one weight, FLT_MAX at head 0, whose score is the key's first element times 1.
    row, greatest = problem.rows - 1, float(np.finfo(np.float32).max)
    assert problem.weights[row].tolist() == [greatest] + [0.0] * 31
    folded_bits, valid = reference_logits(problem, FLOW)
    max_bits, _ = reference_logits(problem, FLOW, generation="max")
    columns = np.flatnonzero(valid[row])
    scores = np.array([float(values(key(problem, 1, int(c))[0][:1])[0]) for c in columns])
    assert set(scores.tolist()) == {1.0, -1.0, 0.5, 2.0**-6}
    folded_values, max_values = (
        folded_bits[row, columns].view(np.float32),
        max_bits[row, columns].view(np.float32),
    )
    assert np.isposinf(folded_values[scores == 1]).all()
    scale = np.array([key(problem, 1, int(c))[1] for c in columns], np.float32)
    small = (scores == 1) & (scale < 1)
    assert small.any()
    assert (max_values[small] == np.float32(greatest) * scale[small]).all()
    assert (folded_values[scores == -1] == 0).all()


def test_kinds_of_special_scales(problems: dict[str, Problem]) -> None:
    problem = problems["special-scales"]
    scales = np.array([key(problem, 0, token)[1] for token in range(257)], np.float32)
    tiny = np.finfo(np.float32).smallest_subnormal
    assert np.isnan(scales).any()
    assert {np.inf, -np.inf, tiny, -tiny} <= set(scales[~np.isnan(scales)].tolist())
    zero = scales[scales == 0]
    assert set(np.signbit(zero).tolist()) == {True, False}


def test_nan_lies_where_it_was_put(problems: dict[str, Problem]) -> None:
    bits, valid = reference_logits(problems["nan-query"], FLOW)
    nan = np.isnan(bits.view(np.float32)) & valid
    assert nan.any(axis=1).tolist() == [False, False, True, False]
    assert (nan[2] == valid[2]).all()
    keys = problems["nan-keys"]
    bits, valid = reference_logits(keys, FLOW)
    for row in range(keys.rows):
        spoiled = [
            bool(np.isin(key(keys, row, c)[0], [0x7F, 0xFF]).any()) for c in range(int(valid[row].sum()))
        ]
        assert np.isnan(bits[row, : len(spoiled)].view(np.float32)).tolist() == spoiled
        assert 0 < sum(spoiled) < len(spoiled)


def test_amax_scaling_fills_the_range(problems: dict[str, Problem]) -> None:
    problem = problems["thousand"]
    assert (np.abs(problem.q.view(ml_dtypes.float8_e4m3fn).astype(np.float32)).max(axis=-1) == 448).all()
