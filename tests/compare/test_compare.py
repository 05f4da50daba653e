"""The comparison as a whole: what is compared, what is counted, what is refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from mqa_ref.compare import compare
from mqa_ref.errors import InputError
from mqa_ref.flow import Flow
from mqa_ref.launch import Launch
from mqa_ref.problem import Problem
from mqa_ref.reference import own_order_bounds

MakeProblem = Callable[..., Problem]
PerfectLaunch = Callable[..., Launch]
FLOW = Flow.parse("fp32-fp32-fp32")


def distinct_bits(problem: Problem) -> np.ndarray:
    """Another positive number for every element: 1.0 and up, in steps of its last place."""
    shape = (problem.rows, problem.max_context_len)
    return (0x3F800000 + np.arange(shape[0] * shape[1])).reshape(shape).astype(np.uint32)


def test_a_perfect_launch(make_problem: MakeProblem, perfect_launch: PerfectLaunch) -> None:
    problem = make_problem([600, 0, 300], next_n=2)
    bits, valid = distinct_bits(problem), problem.valid_mask()
    told = compare(bits, valid, perfect_launch(problem, bits), problem, FLOW)
    assert told.equal
    assert (told.compared, told.mismatched) == (599 + 600 + 299 + 300, 0)
    assert (told.first, told.where, told.max_ulp, told.max_abs) == ((), (), None, None)
    # 768 + 768 and 512 + 512 columns are written for the two sequences with tokens, none for the one without.
    assert (told.tail_written, told.stray_written) == (2560 - told.compared, 0)
    assert told.calc_diff == pytest.approx(0.0)


def test_one_wrong_value(make_problem: MakeProblem, perfect_launch: PerfectLaunch) -> None:
    problem = make_problem([600, 300])
    bits = distinct_bits(problem)
    launch = perfect_launch(problem, bits)
    launch.logits[1, 257] += 3
    told = compare(bits, problem.valid_mask(), launch, problem, FLOW)
    assert told.counts == {"unwritten": 0, "nan": 0, "inf": 0, "inf_sign": 0, "zero_sign": 0, "value": 1}
    (one,) = told.first
    assert (one.kind, one.place.row, one.place.column, one.ulp) == ("value", 1, 257, 3)
    assert (told.max_ulp, told.max_abs) == (3, 3 * 2.0**-23)
    assert one.expected == f"0x{0x3F800000 + 857:08x}"
    assert one.expected_value == 1 + 857 * 2.0**-23
    assert "3 ULP, at row 1 column 257" in str(one)


@pytest.mark.parametrize("machine", ["sm100", "sm90"])
def test_the_ratio_is_that_of_the_bound_of_the_machine(
    make_problem: MakeProblem, perfect_launch: PerfectLaunch, machine: str
) -> None:
    """Dot products and weights of ones: a head has 128 of them, and the logit is 8 * 128 = 1024 on both machines."""
    plain = make_problem([40])
    ones = np.full_like(plain.q, 0x38)
    pool = np.full_like(plain.kv_fused, 0x38)
    pool[:, 64 * 128 :] = np.ones((len(pool), 64), "<f4").view(np.uint8)
    problem = dataclasses.replace(plain, q=ones, kv_fused=pool, weights=np.ones_like(plain.weights))
    bits = np.full((1, 40), 0x44800000, np.uint32)
    launch = perfect_launch(problem, bits)
    launch.logits[0, 7] += 1  # 2**-13 more
    told = compare(bits, problem.valid_mask(), launch, problem, FLOW, machine=machine)
    bound = float(own_order_bounds(problem, FLOW, machine).bound[0, 7])
    assert told.max_ratio == pytest.approx(2.0**-13 / bound)
    others = {float(own_order_bounds(problem, FLOW, name).bound[0, 7]) for name in ("sm90", "sm100")}
    assert len(others) == 2


def test_the_first_are_in_row_major_order_and_few(
    make_problem: MakeProblem, perfect_launch: PerfectLaunch
) -> None:
    problem = make_problem([600, 300])
    bits = distinct_bits(problem)
    launch = perfect_launch(problem, bits)
    launch.logits[:, 100:200] ^= 1
    told = compare(bits, problem.valid_mask(), launch, problem, FLOW)
    assert told.mismatched == 200
    assert [(one.place.row, one.place.column) for one in told.first] == [(0, 100 + i) for i in range(8)]


def test_columns_past_the_valid_ones_are_not_compared(
    make_problem: MakeProblem, perfect_launch: PerfectLaunch
) -> None:
    problem = make_problem([129], next_n=2)
    bits = distinct_bits(problem)
    launch = perfect_launch(problem, bits)
    launch.logits[0, 128:] = 0x7FFFFFFF
    launch.written[:, 129:] = False
    told = compare(bits, problem.valid_mask(), launch, problem, FLOW)
    assert (told.compared, told.mismatched, told.tail_written) == (128 + 129, 0, 1)


def test_columns_of_a_row_without_tokens_are_counted(
    make_problem: MakeProblem, perfect_launch: PerfectLaunch
) -> None:
    problem = make_problem([129, 0])
    bits = distinct_bits(problem)
    launch = perfect_launch(problem, bits)
    launch.written[1, :256] = True
    assert compare(bits, problem.valid_mask(), launch, problem, FLOW).stray_written == 256


def test_unequal_infinities_and_nan_leave_no_distance(
    make_problem: MakeProblem, perfect_launch: PerfectLaunch
) -> None:
    problem = make_problem([8])
    bits = distinct_bits(problem)
    launch = perfect_launch(problem, bits)
    launch.logits[0, :2] = [0x7F800000, 0x7FFFFFFF]
    told = compare(bits, problem.valid_mask(), launch, problem, FLOW)
    assert (told.max_ulp, told.max_abs) == (None, None)
    assert [one.ulp for one in told.first] == [None, None]
    assert np.isnan(told.calc_diff)


def test_every_bad_argument_is_refused_at_once(
    make_problem: MakeProblem, perfect_launch: PerfectLaunch
) -> None:
    problem = make_problem([600, 300])
    bits = distinct_bits(problem)
    launch = perfect_launch(problem, bits)
    bad = dataclasses.replace(launch, logits=launch.logits[:, :512].astype(np.uint16))
    with pytest.raises(InputError) as caught:
        compare(bits.astype(np.uint64), problem.valid_mask()[:, :5], bad, problem, FLOW)
    named = [fault.argument for fault in caught.value.faults]
    assert named == ["expected", "launch.logits", "valid", "launch.logits", "launch.written"]
