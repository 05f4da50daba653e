"""Formats: every code against ml_dtypes and NumPy, encode against them and against numbers worked out on paper."""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqa_ref.errors import InputError
from mqa_ref.numerics import BF16, E4M3FN, FORMATS, FP16, FP32, RNE, RZ, Format
from mqa_ref.numerics.formats import Overflow

NARROW = [
    (E4M3FN, ml_dtypes.float8_e4m3fn, np.uint8),
    (FP16, np.float16, np.uint16),
    (BF16, ml_dtypes.bfloat16, np.uint16),
]


def float_of(fmt: Format, code: int) -> float:
    decoded = fmt.decode(code)
    return float(decoded) * (-1.0 if decoded == 0 and fmt.sign(code) else 1.0)


@pytest.mark.parametrize(("fmt", "dtype", "codes"), NARROW, ids=lambda x: getattr(x, "name", ""))
def test_decode_every_code(fmt: Format, dtype: Any, codes: Any, tried: Any) -> None:
    every = np.arange(1 << fmt.bits, dtype=codes)
    with np.errstate(invalid="ignore"):  # signalling NaN
        expected = every.view(dtype).astype(np.float64).tolist()
    for code, value in enumerate(expected):
        got = float_of(fmt, code)
        assert struct.pack("d", got) == struct.pack("d", value) or (math.isnan(got) and math.isnan(value)), (
            hex(code)
        )
        assert fmt.is_nan(code) == math.isnan(value)
        assert fmt.is_inf(code) == math.isinf(value)
    tried(len(expected))


@given(st.integers(0, 2**32 - 1))
def test_decode_fp32(code: int) -> None:
    (expected,) = struct.unpack("<f", code.to_bytes(4, "little"))
    got = float_of(FP32, code)
    assert got == expected or (math.isnan(got) and math.isnan(expected))
    assert math.isnan(got) or math.copysign(1, got) == math.copysign(1, expected)


@pytest.mark.parametrize("fmt", [E4M3FN, FP16, BF16], ids=lambda f: f.name)
@pytest.mark.parametrize("rounding", [RNE, RZ])
def test_encode_gives_back_finite_codes(fmt: Format, rounding: Any, tried: Any) -> None:
    every = range(0, 1 << fmt.bits, 1 if fmt.bits == 8 else 3)
    finite = [c for c in every if not (fmt.is_nan(c) or fmt.is_inf(c) or c == fmt.sign_mask)]
    assert all(fmt.encode(fmt.value(code), rounding) == code for code in finite)
    tried(len(finite))


@pytest.mark.parametrize("fmt", [E4M3FN, FP16, BF16], ids=lambda f: f.name)
def test_encode_between_neighbours(fmt: Format, tried: Any) -> None:
    """Halfway goes to the even code, a hair to either side to the nearer one, RZ always to the lower; both signs."""
    hair = Fraction(1, 1 << 200)
    codes = range(fmt.max_finite_code) if fmt.bits == 8 else range(0, fmt.max_finite_code, 37)
    for low in codes:
        middle = (fmt.value(low) + fmt.value(low + 1)) / 2
        even = low + (low & 1)
        expected = [(middle, even, low), (middle - hair, low, low), (middle + hair, low + 1, low)]
        for value, nearest, toward_zero in expected:
            assert fmt.encode(value, RNE) == nearest
            assert fmt.encode(value, RZ) == toward_zero
            assert fmt.encode(-value, RNE) == nearest | fmt.sign_mask
            assert fmt.encode(-value, RZ) == toward_zero | fmt.sign_mask
    tried(12 * len(codes))


@given(st.floats(width=64, allow_nan=False, allow_infinity=False))
def test_encode_fp32_is_the_cast_from_float64(value: float) -> None:
    with np.errstate(over="ignore", under="ignore"):
        expected = int(np.float64(value).astype(np.float32).view(np.uint32))
    assert FP32.encode(Fraction(value)) == (expected if value else 0)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_encode_bf16_is_the_cast_from_float32(value: float) -> None:
    expected = int(np.float32(value).astype(ml_dtypes.bfloat16).view(np.uint16))
    assert BF16.encode(Fraction(value)) == (expected if value else 0)


def test_float64_to_narrow_needs_one_rounding() -> None:
    """The trap: through float32 first, 0x1.8020000000001p+0 would become a tie of fp16 and go down to the even code."""
    value = float.fromhex("0x1.8020000000001p+0")
    assert FP16.encode(Fraction(value)) == 0x3E01
    assert int(np.float64(value).astype(np.float16).view(np.uint16)) == 0x3E01
    assert int(np.float64(value).astype(np.float32).astype(np.float16).view(np.uint16)) == 0x3E00


@pytest.mark.parametrize(
    ("value", "overflow", "expected"),
    [
        (448, None, 0x7E),
        (464, None, 0x7E),  # a tie with the missing 480: 448 has the even code
        (464, "nan", 0x7E),
        (Fraction(46401, 100), None, 0x7E),
        (Fraction(46401, 100), "nan", 0x7F),
        (-480, "nan", 0xFF),
        (-480, "saturate", 0xFE),
        (10**9, None, 0x7E),
    ],
)
def test_e4m3fn_overflow(value: Fraction, overflow: Overflow | None, expected: int) -> None:
    assert E4M3FN.encode(value, overflow=overflow) == expected


def test_e4m3fn_overflow_rules_of_ml_dtypes_and_torch() -> None:
    """The trap: ml_dtypes gives NaN above 464 and torch saturates; ours says which by ``overflow``."""
    torch = pytest.importorskip("torch")
    for value in (448.0, 463.9, 464.0, 464.1, 480.0, 1e6):
        by_ml_dtypes = int(np.float32(value).astype(ml_dtypes.float8_e4m3fn).view(np.uint8))
        by_torch = int(torch.tensor(value).to(torch.float8_e4m3fn).view(torch.uint8))
        assert E4M3FN.encode(Fraction(np.float32(value).item()), overflow="nan") == by_ml_dtypes
        assert E4M3FN.encode(Fraction(np.float32(value).item()), overflow="saturate") == by_torch


@pytest.mark.parametrize(
    ("fmt", "below", "first"),
    [
        (FP16, 65519, 65520),
        (FP32, 2**128 - 2**103 - 1, 2**128 - 2**103),
        (BF16, 2**128 - 2**119 - 1, 2**128 - 2**119),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_overflow_to_inf(fmt: Format, below: int, first: int) -> None:
    assert fmt.encode(below) == fmt.max_finite_code
    assert fmt.encode(first) == fmt.exponent_mask == fmt.inf(0)
    assert fmt.encode(-first) == fmt.inf(1)
    assert fmt.encode(first, RZ) == fmt.max_finite_code
    assert fmt.encode(first, overflow="saturate") == fmt.max_finite_code


def test_small_numbers_keep_their_sign_and_zero_has_none() -> None:
    for fmt in FORMATS.values():
        smallest = fmt.value(1)
        assert fmt.encode(0) == 0
        assert fmt.encode(-smallest / 2) == fmt.sign_mask  # the tie with zero goes to zero, the even one
        assert fmt.encode(smallest * Fraction(3, 4)) == 1
        assert fmt.encode(smallest * Fraction(3, 4), RZ) == 0


def test_names_and_parameters() -> None:
    assert [(f.name, f.bits, f.bias, f.min_exponent) for f in FORMATS.values()] == [
        ("e4m3fn", 8, 7, -6),
        ("fp16", 16, 15, -14),
        ("bf16", 16, 127, -126),
        ("fp32", 32, 127, -126),
    ]
    assert [f.max_finite for f in (E4M3FN, FP16)] == [448, 65504]
    assert [f.canonical_nan for f in FORMATS.values()] == [0x7F, 0x7FFF, 0x7FFF, 0x7FFFFFFF]
    assert (FP16.exponent(0x03FF), FP16.exponent(0x3C00), E4M3FN.exponent(0x7E)) == (-14, 0, 8)


def test_what_has_no_answer_is_refused() -> None:
    with pytest.raises(InputError, match="code: got 256, expected an integer of 8 bits"):
        E4M3FN.decode(256)
    with pytest.raises(InputError):
        FP32.decode(-1)
    with pytest.raises(ValueError, match="not finite"):
        FP16.value(0x7C00)
    with pytest.raises(ValueError, match="no infinity"):
        E4M3FN.encode(1000, overflow="inf")


def test_numbers_that_are_no_binary_fractions() -> None:
    """Thirds and tenths as IEEE 754 tables list them; their exponents lie between the lengths of the two integers."""
    cases = [(Fraction(1, 3), 0x3555, 0x3EAAAAAB), (Fraction(2, 3), 0x3955, 0x3F2AAAAB)]
    cases += [(Fraction(1, 10), 0x2E66, 0x3DCCCCCD), (Fraction(10, 3), 0x42AB, 0x40555555)]
    cases += [(Fraction(7, 5), 0x3D9A, 0x3FB33333), (Fraction(1000, 3), 0x5D35, 0x43A6AAAB)]
    for value, half, single in cases:
        assert (FP16.encode(value), FP32.encode(value)) == (half, single)
        assert (FP16.encode(-value), FP32.encode(-value)) == (half | 0x8000, single | 0x80000000)


def test_what_an_overflow_gives_unless_something_is_asked_for() -> None:
    assert [FP16.encode(x) for x in (65519, 65520, -70000)] == [0x7BFF, 0x7C00, 0xFC00]
    assert [FP16.encode(x, RZ) for x in (70000, -70000)] == [0x7BFF, 0xFBFF]
    assert [E4M3FN.encode(x) for x in (464, 465, -500)] == [0x7E, 0x7E, 0xFE]
    assert [E4M3FN.encode(x, RZ) for x in (500, -500)] == [0x7E, 0xFE]
    assert [FP16.encode(x, RZ, "inf") for x in (70000, -70000)] == [0x7C00, 0xFC00]
    assert [FP16.encode(x, RNE, "nan") for x in (70000, -70000)] == [0x7FFF, 0xFFFF]
    assert [FP16.encode(x, RNE, "saturate") for x in (70000, -70000)] == [0x7BFF, 0xFBFF]
