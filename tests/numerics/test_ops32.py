"""fp32 operations: the vectorised against the scalar twin and both against MPFR, on special and on random operands."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqa_ref.errors import InputError
from mqa_ref.numerics import (
    FP32,
    abs_f32,
    add_f32,
    canonical_nan,
    fma_f32,
    max_f32,
    max_nan_f32,
    mul_f32,
    samples,
    scalar,
)

JUDGED: dict[str, tuple[Callable[..., Any], Callable[..., int], int]] = {
    "fma": (fma_f32, scalar.fma_f32, 3),
    "add": (add_f32, scalar.add_f32, 2),
    "mul": (mul_f32, scalar.mul_f32, 2),
}
CODES32 = st.integers(0, 2**32 - 1) | st.sampled_from(samples.specials(FP32))


def u32(*codes: int) -> Any:
    return np.array(codes, np.uint32)


@pytest.mark.parametrize("name", list(JUDGED))
def test_specials_crossed(name: str, mpfr32: Any, tried: Any) -> None:
    """Every pair, and every fifth triple, of 30 special codes, through three implementations."""
    vector, slow, arity = JUDGED[name]
    operands = [codes[:: 5 if arity == 3 else 1] for codes in samples.crossed(FP32, arity)]
    expected = mpfr32(name, *operands)
    assert np.array_equal(vector(*operands), expected)
    assert [slow(*row) for row in zip(*(o.tolist() for o in operands), strict=True)] == expected.tolist()
    tried(expected.size)


@pytest.mark.parametrize("draw", ["uniform", "mixed", "centred"])
@pytest.mark.parametrize("name", list(JUDGED))
def test_random(name: str, draw: str, mpfr32: Any, tried: Any) -> None:
    vector, slow, arity = JUDGED[name]
    source = samples.Source(32)
    count = 30_000
    drawn: dict[str, Callable[[], Any]] = {
        "uniform": lambda: source.uniform(FP32, count),
        "mixed": lambda: source.mixed(FP32, count),
        "centred": lambda: source.centred(FP32, count, 14),
    }
    operands = [drawn[draw]() for _ in range(arity)]
    expected = mpfr32(name, *operands)
    assert np.array_equal(vector(*operands), expected)
    few = [o[:3000].tolist() for o in operands]
    assert [slow(*row) for row in zip(*few, strict=True)] == expected[:3000].tolist()
    tried(count)


@pytest.mark.parametrize("fields", [0xF0, 1], ids=["all exponents", "subnormal"])
def test_fma_where_double_rounding_would_strike(fields: int, mpfr32: Any, tried: Any) -> None:
    """Products that put the sum on or a hair beside a tie of fp32, at every exponent down to the subnormals.

    a*b is half a unit of c less one part in 2**46 to 2**41, so the float64 sum is the tie and the exact sum is not.
    """
    source = samples.Source(33)
    count = 40_000
    field = (source.words(count) % np.uint64(fields)).astype(np.int64)
    c = (source.uniform(FP32, count) & np.uint32(0x807FFFFF)) | (field << 23).astype(np.uint32)
    half_unit = np.ldexp(1.0, np.maximum(field, 1) - 127 - 24)
    shift = np.where(field < 100, 40, 0)  # keeps both factors normal
    offset = (1 + source.words(count) % np.uint64(5)).astype(np.float64) * 2.0**-23
    sign = np.where(source.words(count) & np.uint64(1), -1.0, 1.0)
    a = np.ldexp(1 + offset, -shift).astype(np.float32)
    b = np.ldexp(half_unit * sign * (1 - offset), shift).astype(np.float32)
    expected = mpfr32("fma", a.view(np.uint32), b.view(np.uint32), c)
    naive = (a.astype(np.float64) * b + c.view(np.float32)).astype(np.float32).view(np.uint32)
    assert np.count_nonzero(naive != expected) > count // 100, "the operands miss what they are made for"
    assert np.array_equal(fma_f32(a.view(np.uint32), b.view(np.uint32), c), expected)
    alone = [
        int(fma_f32(a[i : i + 1].view(np.uint32), b[i : i + 1].view(np.uint32), c[i : i + 1])[0])
        for i in range(500)
    ]
    assert alone == expected[:500].tolist()
    tried(count + 500)


def test_fma_subnormal_and_overflow_edges(mpfr32: Any, tried: Any) -> None:
    """Every result near 2**-126 and 2**-149 from products of subnormals with numbers, and near 2**128."""
    near = [0x3F800000 + d for d in (-2, -1, 0, 1, 2)]
    small = [0x00000001, 0x00000003, 0x007FFFFF, 0x00800000, 0x00800001, 0x00FFFFFF, 0x80000001, 0x80800000]
    tiny = [0x33800000, 0x33000000, 0x33000001, 0x32FFFFFF, 0xB3000000, 0x25800000]
    large = [0x7F7FFFFF, 0x7F7FFFFE, 0xFF7FFFFF, 0x73000000, 0x72FFFFFF, 0x73800000, 0xF3000000]
    scale = [0x3F000000, 0x3F7FFFFF, 0x3F800001, 0x40000000]
    grid = np.array(near + small + tiny + large + scale, np.uint32)
    a, b, c = (x.ravel() for x in np.meshgrid(grid, grid, grid, indexing="ij"))
    expected = mpfr32("fma", a, b, c)
    assert np.array_equal(fma_f32(a, b, c), expected)
    tried(expected.size)


@given(CODES32, CODES32, CODES32)
@settings(deadline=None)
def test_twins_agree_one_by_one(a: int, b: int, c: int) -> None:
    one = [np.array([x], np.uint32) for x in (a, b, c)]
    assert int(fma_f32(*one)[0]) == scalar.fma_f32(a, b, c)
    assert int(add_f32(*one[:2])[0]) == scalar.add_f32(a, b)
    assert int(mul_f32(*one[:2])[0]) == scalar.mul_f32(a, b)
    assert int(max_f32(*one[:2])[0]) == scalar.max_f32(a, b)
    assert int(abs_f32(one[0])[0]) == scalar.abs_f32(a)


def test_trap_fma_through_float64() -> None:
    assert int(fma_f32(0x437FFFFE, 0xAD800001, 0xBD828D83)) == 0xBD828D83
    assert scalar.fma_f32(0x437FFFFE, 0xAD800001, 0xBD828D83) == 0xBD828D83
    a, b, c = u32(0x437FFFFE, 0xAD800001, 0xBD828D83).view(np.float32).astype(np.float64)
    assert int(np.float32(a * b + c).view(np.uint32)) == 0xBD828D84


def expected_max(a: Any, b: Any) -> Any:
    """max.f32 as an order of integers: the codes in the order of the numbers, -0 below +0."""
    order = [np.where(x >> 31, -(x.astype(np.int64) & 0x7FFFFFFF) - 1, x.astype(np.int64)) for x in (a, b)]
    nan = [(x & np.uint32(0x7FFFFFFF)) > 0x7F800000 for x in (a, b)]
    greater = np.where(order[0] >= order[1], a, b)
    return np.where(nan[0] & nan[1], np.uint32(0x7FFFFFFF), np.where(nan[0], b, np.where(nan[1], a, greater)))


def test_max(tried: Any) -> None:
    source = samples.Source(34)
    a, b = (np.concatenate([x, source.mixed(FP32, 100_000)]) for x in samples.crossed(FP32, 2))
    expected = expected_max(a, b)
    assert np.array_equal(max_f32(a, b), expected)
    # One element at a time NumPy takes another way (a signalling NaN once came back as NaN there only).
    assert [int(max_f32(a[i : i + 1], b[i : i + 1])[0]) for i in range(2000)] == expected[:2000].tolist()
    assert [scalar.max_f32(int(x), int(y)) for x, y in zip(a[:3000], b[:3000], strict=True)] == expected[
        :3000
    ].tolist()
    tried(a.size + 2000)


def test_max_nan_keeps_a_nan_of_either_side(tried: Any) -> None:
    """max.NaN.f32: as the order of integers says, but one NaN is enough."""
    source = samples.Source(35)
    a, b = (np.concatenate([x, source.mixed(FP32, 100_000)]) for x in samples.crossed(FP32, 2))
    nan = [(x & np.uint32(0x7FFFFFFF)) > 0x7F800000 for x in (a, b)]
    expected = np.where(nan[0] | nan[1], np.uint32(0x7FFFFFFF), expected_max(a, b))
    assert np.count_nonzero(expected != expected_max(a, b)) > 100
    assert np.array_equal(max_nan_f32(a, b), expected)
    twins = [scalar.max_nan_f32(int(x), int(y)) for x, y in zip(a[:3000], b[:3000], strict=True)]
    assert twins == expected[:3000].tolist()
    tried(a.size)


def test_max_rules_by_hand() -> None:
    nan, snan, inf, minus_zero = 0x7FC00123, 0xFF800001, 0x7F800000, 0x80000000
    cases = [(nan, 5, 5), (5, snan, 5), (nan, snan, 0x7FFFFFFF), (0, minus_zero, 0), (minus_zero, 0, 0)]
    cases += [(minus_zero, minus_zero, minus_zero), (nan, minus_zero, minus_zero), (inf, nan, inf), (1, 0, 1)]
    cases += [(0x80000001, 0x80000002, 0x80000001), (0x80000001, minus_zero, minus_zero)]
    for a, b, expected in cases:
        assert int(max_f32(a, b)) == expected == scalar.max_f32(a, b), (hex(a), hex(b))


def test_abs_every_upper_half(tried: Any) -> None:
    upper = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
    codes = (upper[:, None] | u32(0, 1, 0x8000, 0xFFFF)).ravel()
    expected = canonical_nan(codes & np.uint32(0x7FFFFFFF), FP32)
    assert np.array_equal(abs_f32(codes), expected)
    assert [scalar.abs_f32(int(c)) for c in codes[::97]] == expected[::97].tolist()
    tried(codes.size)


def test_minus_inf_folded_relu_is_nan() -> None:
    """x + |x| of -inf is NaN where max(x, 0) is 0: the two generations of the kernel differ there."""
    x = u32(0xFF800000, 0xC0000000, 0x7F800000)
    assert add_f32(x, abs_f32(x)).tolist() == [0x7FFFFFFF, 0, 0x7F800000]
    assert max_f32(x, 0).tolist() == [0, 0, 0x7F800000]


def test_shapes_and_operands() -> None:
    one, two = 0x3F800000, 0x40000000
    assert fma_f32(np.full((2, 1), one, np.uint32), np.full(3, two, np.uint32), 0).tolist() == [[two] * 3] * 2
    for empty in (add_f32(u32(), u32()), fma_f32(u32(), u32(), u32()), max_f32(u32(), u32())):
        assert empty.shape == (0,)
    for result in (fma_f32(one, one, 0), add_f32(one, 0), mul_f32(one, one), max_f32(one, 0), abs_f32(one)):
        assert type(result) is np.ndarray
        assert (result.shape, result.dtype) == ((), np.dtype(np.uint32))
        assert result == one
    strided = np.arange(one, one + 64, dtype=np.uint32).reshape(8, 8).T[::2]
    assert np.array_equal(fma_f32(strided, one, 0x80000000), strided)
    frozen = u32(0x7FC00001, one)
    frozen.flags.writeable = False
    assert add_f32(frozen, 0).tolist() == [0x7FFFFFFF, one] == max_f32(frozen, 0xFFC00000).tolist()
    assert frozen.tolist() == [0x7FC00001, one]


@pytest.mark.parametrize("operation", [fma_f32, add_f32, mul_f32, max_f32, abs_f32])
@pytest.mark.parametrize(
    "bad", [np.zeros(2, np.int64), np.zeros(2, np.float32), -1, 1 << 32, True, "1", math.pi]
)
def test_wrong_operands_are_refused(operation: Any, bad: Any) -> None:
    rest = {"fma_f32": 2, "abs_f32": 0}.get(operation.__name__, 1)
    with pytest.raises(InputError, match=r"a: got .*, expected an array of uint32 codes"):
        operation(bad, *[u32(0)] * rest)
