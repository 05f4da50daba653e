"""One logit step by step: a right kernel agrees in every step, and the numbers are those of exact arithmetic."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mqa_ref.errors import InputError
from mqa_ref.explain.run import Explained
from mqa_ref.report.schema import faults_of_json


@pytest.fixture(scope="module")
def right(explained: Any) -> Explained:
    told: Explained = explained("wide", row=3, column=150)
    return told


@pytest.mark.parametrize("flow", ["fp16-fp16-fp16", "fp32-fp16-bf16"])
def test_a_right_kernel_agrees_in_every_step(explained: Any, of: Any, flow: str) -> None:
    told = explained("wide", flow, row=1, column=69)
    found = of(told)
    assert (told.status, told.exit_code, found.parts_at, found.agrees) == ("pass", 0, None, True)
    assert all(row.agrees for row in found.rows if row.both)
    assert [row.name for row in found.rows if row.kernel is None] == []
    assert found.verdict == "the kernel agrees with the reference in every step"


def test_the_steps_of_a_right_kernel(of: Any, right: Explained) -> None:
    told = right
    found = of(told)
    assert told.status == "pass"
    # 64 heads: 4 K steps, |x|, x + |x| and an fma each; then three sums, the half and the scale.
    assert len(found.rows) == 64 * 4 + 64 * 3 + 5
    assert found.rows[0].name == "head 0: dot product, K step 1 of 4"
    names = [row.name for row in found.rows[-5:]]
    assert names[0] == "add: heads 0, 4 ... 60 and heads 1, 5 ... 61"
    assert names[-2:] == ["heads 0, 1 ... 63: mul"] * 2
    assert (found.place.row, found.place.b, found.place.t) == (3, 1, 1)
    case = told.report.case_list[0]
    assert case.comparison is not None
    assert case.comparison.equal
    assert faults_of_json(json.loads(told.to_json())) == ()


def nearest_fp32(value: Fraction) -> int:
    """The bits of the fp32 number nearest to a rational, ties to even, found by looking at both neighbours."""
    guess = np.float32(float(value))
    near = [np.nextafter(guess, np.float32(-np.inf)), guess, np.nextafter(guess, np.float32(np.inf))]
    words = [int(one.view(np.uint32)) for one in near]
    pairs = zip(near, words, strict=True)
    return min(pairs, key=lambda pair: (abs(Fraction(float(pair[0])) - value), pair[1] & 1))[1]


def fp32(word: str) -> Fraction:
    return Fraction(float(np.uint32(int(word, 16)).view(np.float32)))


EXACT: dict[str, Callable[..., Fraction]] = {
    "fma": lambda a, b, c: a * b + c,
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "abs": abs,
}


def test_every_operation_is_what_exact_arithmetic_gives(of: Any, right: Explained) -> None:
    tried = 0
    for row in of(right).rows:
        if row.k is not None:
            continue
        for side in (row.reference, row.kernel):
            assert side is not None
            found = re.fullmatch(r"([a-z]+)[._a-z0-9]*\((.*)\)", side.how)
            assert found is not None, side.how
            exact = EXACT[found[1]](*(fp32(word) for word in found[2].split(", ")))
            if exact:
                assert side.bits == nearest_fp32(exact), side
                assert side.number == float(np.uint32(side.bits).view(np.float32))
                tried += 1
    assert tried > 300


def e4m3(code: int) -> Fraction:
    return Fraction(float(np.uint8(code).view(ml_dtypes.float8_e4m3fn)))


def test_every_term_is_what_exact_arithmetic_gives(explained: Any, of: Any, problem: Any) -> None:
    """The products are those of ml_dtypes' numbers, cut toward zero; their sum, cut to 24 bits, is the accumulator."""
    found = of(explained("wide", row=2, column=17, head=5))
    assert (found.head, len(found.terms)) == (5, 4)
    case = problem("wide").problem
    cut = 0
    before = Fraction(0)
    for k, (reference, kernel) in enumerate(found.terms):
        terms, unit = reference
        assert kernel == reference
        assert unit is not None
        assert len(terms) == 33
        grid = Fraction(2) ** unit
        for one in terms[:-1]:
            assert one.value == e4m3(one.key) * e4m3(one.query)
        assert terms[-1].value == before
        for one in terms:
            assert one.value is not None
            assert one.kept == int(one.value / grid) * grid
            cut += one.cut
        assert [one.query for one in terms[:-1]] == case.q[1, 0, 5, 32 * k : 32 * k + 32].tolist()
        total = sum((one.kept or Fraction(0) for one in terms), Fraction(0))
        (step,) = [row for row in found.rows if row.heads == (5,) and row.k == k]
        assert step.reference is not None
        before = Fraction(step.reference.number)
        exponent = (abs(before).numerator.bit_length() - abs(before).denominator.bit_length()) - 24
        assert abs(before) <= abs(total) < abs(before) + Fraction(2) ** (exponent + 2)
        assert f"{sum(one.cut for one in terms)} cut to multiples of 2^{unit}" in step.reference.how
    assert cut > 0


def test_another_tensor_core_parts_in_a_product(explained: Any, of: Any) -> None:
    found = of(explained("wide", machine="sm90", row=0, column=7))
    assert found.parts_at is not None
    assert found.rows[found.parts_at].k is not None
    assert "the same codes, summed otherwise" in found.verdict


def test_bad_places_all_at_once(explained: Any) -> None:
    with pytest.raises(InputError) as error:
        explained("ties", row=0, column=40, head=64)
    assert [fault.argument for fault in error.value.faults] == ["column", "head"]
    with pytest.raises(InputError, match="row"):
        explained("ties", row=1)
    with pytest.raises(InputError, match="a row beside it"):
        explained("ties", column=1)
