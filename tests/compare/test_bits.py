"""ULP distance against the steps NumPy takes with nextafter, and against the order of the values
themselves."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqa_ref.compare.bits import hex_word, ulp_distance
from mqa_ref.numerics import BF16, FP16, FP32, Format


@given(value=st.floats(width=32, allow_nan=False, allow_infinity=False), steps=st.integers(0, 40))
@settings(deadline=None)
def test_fp32_distance_is_the_number_of_steps(value: float, steps: int) -> None:
    start = end = np.float32(value)
    taken = 0
    for _ in range(steps):
        with np.errstate(over="ignore"):
            following = np.nextafter(end, np.float32(np.inf))
        if np.isinf(following):
            break
        end, taken = following, taken + 1
    pair = np.array([start, end], np.float32).view(np.uint32)
    assert ulp_distance(pair[:1], pair[1:], FP32).tolist() == [taken]
    assert ulp_distance(pair[1:], pair[:1], FP32).tolist() == [taken]


@pytest.mark.parametrize(("fmt", "dtype"), [(FP16, np.float16), (BF16, ml_dtypes.bfloat16)])
def test_every_finite_16_bit_number_is_one_step_from_the_next(fmt: Format, dtype: type) -> None:
    codes = np.arange(1 << 16, dtype=np.uint16)
    with np.errstate(invalid="ignore"):  # signalling NaN
        values = codes.view(dtype).astype(np.float64)
    finite = np.isfinite(values)
    codes, values = codes[finite], values[finite]
    order = np.lexsort((codes < 0x8000, values))
    steps = ulp_distance(codes[order][:-1], codes[order][1:], fmt)
    same = values[order][:-1] == values[order][1:]
    assert same.sum() == 1  # -0 and +0
    assert steps[same].tolist() == [0]
    assert (steps[~same] == 1).all()


def test_the_two_zeros_are_one_number_and_the_ends_are_far_apart() -> None:
    low, high = np.array([0xFF7FFFFF, 0x80000000], np.uint32), np.array([0x7F7FFFFF, 0], np.uint32)
    assert ulp_distance(low, high, FP32).tolist() == [2 * 0x7F7FFFFF, 0]


def test_hex_words_have_the_full_width() -> None:
    assert (hex_word(0x12, FP32), hex_word(0x12, FP16), hex_word(0xFF80, BF16)) == (
        "0x00000012",
        "0x0012",
        "0xff80",
    )
