"""Conversions against struct, ml_dtypes, MPFR and torch: all inputs or all ties."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mqa_ref.errors import InputError
from mqa_ref.numerics import (
    BF16,
    FP16,
    FP32,
    canonical_nan,
    cvt_bf16_f32,
    cvt_f16_f32,
    cvt_f32_f16,
    is_nan,
    samples,
    scalar,
)

LOW_HALVES = np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)


def test_f32_from_every_f16(tried: Any) -> None:
    every = np.arange(1 << 16, dtype=np.uint16)
    got = cvt_f32_f16(every)
    for code in range(1 << 16):
        (value,) = struct.unpack("<e", code.to_bytes(2, "little"))
        expected = 0x7FFFFFFF if math.isnan(value) else int.from_bytes(struct.pack("<f", value), "little")
        assert got[code] == expected, hex(code)
    assert [scalar.cvt_f32_f16(c) for c in range(1 << 16)] == got.tolist()
    tried(1 << 16)


def test_bf16_every_upper_half_with_every_kind_of_low_half(tried: Any) -> None:
    """All ties, both neighbours of each, and all exact inputs; NaN included."""
    codes = ((np.arange(1 << 16, dtype=np.uint32) << np.uint32(16))[:, None] | LOW_HALVES).ravel()
    with np.errstate(all="ignore"):
        judged = codes.view(np.float32).astype(ml_dtypes.bfloat16).view(np.uint16)
    expected = canonical_nan(judged, BF16)
    got = cvt_bf16_f32(codes)
    assert np.array_equal(got, expected)
    sample = slice(None, None, 41)
    assert [scalar.cvt_bf16_f32(c) for c in codes[sample].tolist()] == got[sample].tolist()
    tried(codes.size)


def around_every_f16_tie() -> Any:
    """fp32 codes: every fp16 number, every midpoint, the fp32 numbers next to each, the edges; both signs."""
    finite = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    middle = (finite[:-1] + finite[1:]) / 2
    edge = np.array([65520.0, 65519.996, 65536.0, 3.4e38, np.inf], np.float32)
    codes = np.concatenate([finite, middle, edge]).view(np.uint32).astype(np.int64)
    near = np.concatenate([codes - 1, codes, codes + 1])
    near = near[(near >= 0) & (near <= 0x7F800001)].astype(np.uint32)
    return np.concatenate([near, near | np.uint32(0x80000000)])


def test_f16_around_every_tie(mpfr16: Any, tried: Any) -> None:
    codes = around_every_f16_tie()
    got = cvt_f16_f32(codes)
    expected = mpfr16("convert", codes)
    assert np.array_equal(got, expected)
    sample = slice(None, None, 31)
    assert [scalar.cvt_f16_f32(c) for c in codes[sample].tolist()] == got[sample].tolist()
    tried(codes.size)


def test_random_f16(mpfr16: Any, tried: Any) -> None:
    source = samples.Source(5)
    codes = np.concatenate([source.mixed(FP32, 50_000), source.centred(FP32, 50_000, 26)])
    assert np.array_equal(cvt_f16_f32(codes), mpfr16("convert", codes))
    tried(codes.size)


def test_overflow_and_nan_by_hand() -> None:
    cases = [
        (0x477FEFFF, 0x7BFF),
        (0x477FF000, 0x7C00),
        (0xC77FF000, 0xFC00),
        (0xFF800001, 0x7FFF),
        (0x33000000, 0),
        (0, 0),
        (0x80000000, 0x8000),
    ]
    for code, expected in [*cases, (0x33000001, 1), (0xB3000000, 0x8000)]:
        assert int(cvt_f16_f32(code)) == expected == scalar.cvt_f16_f32(code), hex(code)
    for code, expected in [
        (0x7F7F7FFF, 0x7F7F),
        (0x7F7F8000, 0x7F80),
        (0x7F800001, 0x7FFF),
        (0xFF800000, 0xFF80),
    ]:
        assert int(cvt_bf16_f32(code)) == expected == scalar.cvt_bf16_f32(code), hex(code)
    for code, expected in [(0, 0), (0x8000, 0x80000000), (1, 0x33800000), (0xFC00, 0xFF800000)]:
        assert int(cvt_f32_f16(code)) == expected == scalar.cvt_f32_f16(code), hex(code)


def test_trap_bf16_from_float64_rounds_twice() -> None:
    """float64 to bf16 through float32 turns a hair above a tie into the tie: only fp32 inputs are converted here."""
    value = 1 + 2.0**-8 + 2.0**-40
    assert BF16.encode(Fraction(value)) == 0x3F81
    assert int(np.float64(value).astype(ml_dtypes.bfloat16).view(np.uint16)) == 0x3F80
    through = np.float32(value)
    assert BF16.encode(Fraction(float(through))) == 0x3F80 == int(cvt_bf16_f32(through.view(np.uint32)))
    wrong: Any = np.array([value])
    with pytest.raises(InputError, match="dtype float64"):
        cvt_bf16_f32(wrong)


@pytest.mark.parametrize(
    ("convert", "codes"), [(cvt_f16_f32, np.uint32), (cvt_bf16_f32, np.uint32), (cvt_f32_f16, np.uint16)]
)
def test_shapes(convert: Callable[[Any], Any], codes: Any) -> None:
    assert convert(np.zeros((2, 3), codes)).shape == (2, 3)
    assert convert(np.zeros(0, codes)).shape == (0,)
    assert type(convert(0)) is np.ndarray
    assert convert(0).shape == ()
    wide = convert in (cvt_f32_f16,)
    assert convert(np.zeros(2, codes)).dtype == (np.uint32 if wide else np.uint16)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(16))
def test_every_fp32_code(part: int, tried: Any) -> None:
    """All 2**32 inputs of both narrowing conversions against torch, NaN as one class, in sixteen parts."""
    torch = pytest.importorskip("torch")
    chunk = 1 << 22
    for start in range(part << 28, (part + 1) << 28, chunk):
        codes = np.arange(start, start + chunk, dtype=np.uint64).astype(np.uint32)
        tensor = torch.from_numpy(codes.view(np.float32))
        for convert, dtype, fmt in ((cvt_f16_f32, torch.float16, FP16), (cvt_bf16_f32, torch.bfloat16, BF16)):
            expected = tensor.to(dtype).view(torch.int16).numpy().view(np.uint16)
            got = convert(codes)
            assert np.array_equal(got, canonical_nan(expected, fmt))
            assert np.array_equal(is_nan(got, fmt), is_nan(codes, FP32))
    tried(2 << 28)
