"""Whole-array questions and the e4m3fn tables, every code, against ml_dtypes and NumPy."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mqa_ref import numerics
from mqa_ref.numerics import BF16, E4M3FN, FP16, FP32, Format
from mqa_ref.numerics.tables import ZERO_EXPONENT

EVERY = [
    (E4M3FN, np.arange(1 << 8, dtype=np.uint8), ml_dtypes.float8_e4m3fn),
    (FP16, np.arange(1 << 16, dtype=np.uint16), np.float16),
    (BF16, np.arange(1 << 16, dtype=np.uint16), ml_dtypes.bfloat16),
    (FP32, np.arange(0, 1 << 32, 65521, dtype=np.uint32), np.float32),
]


@pytest.mark.parametrize(("fmt", "codes", "dtype"), EVERY, ids=["e4m3fn", "fp16", "bf16", "fp32"])
def test_questions(fmt: Format, codes: Any, dtype: Any, tried: Any) -> None:
    with np.errstate(invalid="ignore"):
        values = codes.view(dtype).astype(np.float64)
    assert np.array_equal(numerics.is_nan(codes, fmt), np.isnan(values))
    assert np.array_equal(numerics.is_inf(codes, fmt), np.isinf(values))
    assert np.array_equal(numerics.is_zero(codes, fmt), values == 0)
    questions = numerics.is_nan, numerics.is_inf, numerics.is_zero
    assert {question(codes, fmt).dtype for question in questions} == {np.dtype(np.bool_)}
    got = numerics.to_float64(codes, fmt)
    assert np.array_equal(got, values, equal_nan=True)
    assert np.array_equal(np.signbit(got)[~np.isnan(values)], np.signbit(values)[~np.isnan(values)])
    canonical = numerics.canonical_nan(codes, fmt)
    assert np.array_equal(canonical, np.where(np.isnan(values), codes.dtype.type(fmt.canonical_nan), codes))
    tried(5 * codes.size)


def test_e4m3_tables(tried: Any) -> None:
    for code in range(256):
        if E4M3FN.is_nan(code):
            assert np.isnan(numerics.E4M3_VALUE[code])
            continue
        value = E4M3FN.value(code)
        assert Fraction(float(numerics.E4M3_VALUE[code])) == value
        significand, exponent = int(numerics.E4M3_SIGNIFICAND[code]), int(numerics.E4M3_EXPONENT[code])
        assert significand * Fraction(2) ** (exponent - 3) == value
        assert exponent == ZERO_EXPONENT if value == 0 else -6 <= exponent <= 8
        assert abs(significand) in range(8, 16) or exponent in (-6, ZERO_EXPONENT)
    tried(256)


def test_tables_cannot_be_written() -> None:
    for table in (numerics.E4M3_VALUE, numerics.E4M3_SIGNIFICAND, numerics.E4M3_EXPONENT):
        with pytest.raises(ValueError, match="read-only"):
            table[0] = 1


def test_canonical_nan_is_a_copy() -> None:
    codes = np.array([0x7C01, 0x3C00], np.uint16)
    out = numerics.canonical_nan(codes, FP16)
    assert codes.tolist() == [0x7C01, 0x3C00]
    assert out.tolist() == [0x7FFF, 0x3C00]


def test_the_tables_cannot_be_written() -> None:
    for table in (
        numerics.tables.E4M3_VALUE,
        numerics.tables.E4M3_SIGNIFICAND,
        numerics.tables.E4M3_EXPONENT,
    ):
        with pytest.raises(ValueError, match="read-only"):
            table[0] = 1
