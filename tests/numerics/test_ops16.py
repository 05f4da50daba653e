"""fp16 operations: exhaustive in one operand where float64 is an exact judge, MPFR and the scalar twin elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqa_ref.errors import InputError
from mqa_ref.numerics import FP16, add_f16, fma_f16, max_f16, mul_f16, samples, scalar

EVERY = np.arange(1 << 16, dtype=np.uint16)
SPECIALS = np.array(samples.specials(FP16), np.uint16)
CODES16 = st.integers(0, 0xFFFF) | st.sampled_from(samples.specials(FP16))


def rounded_once(exact: Any) -> Any:
    """fp16 codes of float64 numbers that are exact, by NumPy's cast."""
    codes = exact.astype(np.float16).view(np.uint16)
    codes[np.isnan(exact)] = 0x7FFF
    return codes


def order_max(a: Any, b: Any) -> Any:
    """max.f16 as an order of integers: the codes in the order of the numbers, -0 below +0."""
    order = [np.where(x >> 15, -(x.astype(np.int64) & 0x7FFF) - 1, x.astype(np.int64)) for x in (a, b)]
    nan = [(x & np.uint16(0x7FFF)) > 0x7C00 for x in (a, b)]
    greater = np.where(order[0] >= order[1], a, b)
    return np.where(nan[0] & nan[1], np.uint16(0x7FFF), np.where(nan[0], b, np.where(nan[1], a, greater)))


def wide(codes: Any) -> Any:
    return codes.view(np.float16).astype(np.float64)


# Sums of two fp16 numbers span at most 40 places and products 22: float64 holds both exactly.
PAIRWISE: dict[str, tuple[Callable[..., Any], Callable[..., int], Callable[..., Any]]] = {
    "add": (add_f16, scalar.add_f16, lambda a, b: rounded_once(wide(a) + wide(b))),
    "mul": (mul_f16, scalar.mul_f16, lambda a, b: rounded_once(wide(a) * wide(b))),
    "max": (max_f16, scalar.max_f16, order_max),
}


@pytest.mark.parametrize("name", list(PAIRWISE))
def test_every_code_with_every_special(name: str, tried: Any) -> None:
    vector, slow, judge = PAIRWISE[name]
    a, b = (x.ravel() for x in np.meshgrid(EVERY, SPECIALS, indexing="ij"))
    for left, right in ((a, b), (b, a)):
        with np.errstate(all="ignore"):
            expected = judge(left, right)
        assert np.array_equal(vector(left, right), expected)
    sample = slice(None, None, 199)
    assert [slow(int(x), int(y)) for x, y in zip(b[sample], a[sample], strict=True)] == expected[
        sample
    ].tolist()
    tried(2 * a.size)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
@pytest.mark.parametrize("name", list(PAIRWISE))
def test_every_pair_of_codes(name: str, part: int, tried: Any) -> None:
    vector, _, judge = PAIRWISE[name]
    for code in range(part << 13, (part + 1) << 13):
        b = np.full(1 << 16, code, np.uint16)
        with np.errstate(all="ignore"):
            assert np.array_equal(vector(EVERY, b), judge(EVERY, b)), hex(code)
    tried(1 << 29)


@pytest.mark.parametrize("name", ["fma", "add", "mul"])
def test_against_mpfr(name: str, mpfr16: Any, tried: Any) -> None:
    """Random operands, and every pair or every fifth triple of specials; the scalar twin on the specials."""
    table: dict[str, tuple[Callable[..., Any], Callable[..., int], int]] = {
        "fma": (fma_f16, scalar.fma_f16, 3),
        "add": (add_f16, scalar.add_f16, 2),
        "mul": (mul_f16, scalar.mul_f16, 2),
    }
    vector, slow, arity = table[name]
    source = samples.Source(16)
    special = [codes[:: 5 if arity == 3 else 1] for codes in samples.crossed(FP16, arity)]
    operands = [
        np.concatenate([s, source.mixed(FP16, 60_000), source.uniform(FP16, 20_000)]) for s in special
    ]
    expected = mpfr16(name, *operands)
    assert np.array_equal(vector(*operands), expected)
    size = special[0].size
    assert [slow(*row) for row in zip(*(s.tolist() for s in special), strict=True)] == expected[
        :size
    ].tolist()
    tried(expected.size)


def test_fma_where_the_float64_sum_is_inexact(mpfr16: Any, tried: Any) -> None:
    """The case the proof is about: products of subnormals, down to 2**-48, added to numbers up to 65504."""
    source = samples.Source(17)
    count = 40_000
    a = (source.words(count) % np.uint64(0x400)).astype(np.uint16) | np.uint16(1)
    b = (source.words(count) % np.uint64(0x800)).astype(np.uint16) | np.uint16(1)
    c = source.uniform(FP16, count)
    a |= (source.words(count) & np.uint64(0x8000)).astype(np.uint16)
    total = wide(a) * wide(b) + np.where(np.isfinite(wide(c)), wide(c), 0)
    lost = total - np.where(np.isfinite(wide(c)), wide(c), 0) != wide(a) * wide(b)
    assert np.count_nonzero(lost) > count // 100, "the operands miss what they are made for"
    assert np.array_equal(fma_f16(a, b, c), mpfr16("fma", a, b, c))
    tried(count)


def test_trap_fma_through_float32() -> None:
    a, b, c = np.array([0x4C02, 0x01FF, 0xBD35], np.uint16)
    assert int(fma_f16(0x4C02, 0x01FF, 0xBD35)) == 0xBD35 == scalar.fma_f16(0x4C02, 0x01FF, 0xBD35)
    x, y, z = (np.float32(np.uint16(v).view(np.float16)) for v in (a, b, c))
    assert int(np.float16(np.float32(x * y + z)).view(np.uint16)) == 0xBD34


@given(CODES16, CODES16, CODES16)
@settings(deadline=None)
def test_twins_agree_one_by_one(a: int, b: int, c: int) -> None:
    one = [np.array([x], np.uint16) for x in (a, b, c)]
    assert int(fma_f16(*one)[0]) == scalar.fma_f16(a, b, c)
    assert int(add_f16(*one[:2])[0]) == scalar.add_f16(a, b)
    assert int(mul_f16(*one[:2])[0]) == scalar.mul_f16(a, b)
    assert int(max_f16(*one[:2])[0]) == scalar.max_f16(a, b)


def test_rules_by_hand() -> None:
    nan, inf, largest, minus_zero = 0x7E01, 0x7C00, 0x7BFF, 0x8000
    assert int(max_f16(nan, 0)) == 0, "relu turns NaN into +0"
    assert int(max_f16(0xFC01, minus_zero)) == minus_zero
    assert int(max_f16(minus_zero, 0)) == 0
    assert int(max_f16(nan, 0xFFFF)) == 0x7FFF
    assert int(add_f16(largest, 0x4C00)) == inf, "65504 + 16 = 65520 is the tie that overflows"
    assert int(add_f16(largest, 0x4BFF)) == largest, "65504 + 15.99 is below it"
    assert int(mul_f16(0x5F00, 0x5F00)) == inf, "448 * 448 overflows fp16"
    assert int(mul_f16(inf, 0)) == 0x7FFF
    assert int(fma_f16(1, 0x3800, 0)) == 0, "half the smallest subnormal is a tie that goes to zero"
    assert int(fma_f16(3, 0x3800, 0)) == 2, "one and a half of it is a tie that goes to the even 2"
    assert int(fma_f16(0x8001, 0x3400, 0)) == minus_zero, "a negative sum that rounds to zero keeps its sign"


def test_shapes_and_wrong_operands() -> None:
    assert add_f16(np.zeros((4, 1), np.uint16), np.zeros(3, np.uint16)).shape == (4, 3)
    assert fma_f16(np.zeros(0, np.uint16), 0, 0).shape == (0,)
    for result in (
        fma_f16(0x3C00, 0x3C00, 0),
        add_f16(0x3C00, 0),
        mul_f16(0x3C00, 0x3C00),
        max_f16(0x3C00, 0),
    ):
        assert type(result) is np.ndarray
        assert result.shape == ()
        assert result == 0x3C00
    wrong: Any = np.zeros(3, np.uint32)
    with pytest.raises(InputError, match="b: got dtype uint32, expected an array of uint16 codes"):
        add_f16(0, wrong)
