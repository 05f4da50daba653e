"""Tensor-core steps against MMA-Sim, an independent model of the same rules, and the exact machine against MPFR."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mqa_ref.numerics import E4M3_VALUE, FP16, FP32, MACHINES, mma, samples, to_float64

FORMAT = {"fp32": FP32, "fp16": FP16}


@pytest.mark.parametrize("acc", ["fp32", "fp16"])
@pytest.mark.parametrize("machine", ["sm90", "sm100"])
def test_against_mmasim(machine: str, acc: Any, mmasim: Any, tried: Any) -> None:
    """Chains of four steps over four kinds of codes, from no accumulator, any code, and common numbers."""
    source, fmt, count = samples.Source(7), FORMAT[acc], 0
    for kind in samples.E4M3_KINDS:
        a, b = samples.e4m3_codes(source, kind, 64, 128), samples.e4m3_codes(source, kind, 64, 128)
        zero = np.zeros((64, 64), samples.code_type(fmt))
        for c in (
            zero,
            source.mixed(fmt, 4096).reshape(64, 64),
            source.centred(fmt, 4096, 10).reshape(64, 64),
        ):
            expected = mmasim(machine, acc, a, b, c)
            assert np.array_equal(mma(a, b, machine=machine, acc=acc, c=c), expected)
            if c is zero:
                assert np.array_equal(mma(a, b, machine=machine, acc=acc), expected)
            count += expected.size
    tried(count)


@pytest.mark.parametrize("acc", ["fp32", "fp16"])
@pytest.mark.parametrize("machine", ["sm90", "sm100"])
def test_every_product_against_mmasim(machine: str, acc: Any, mmasim: Any, tried: Any) -> None:
    """All 256 x 256 pairs of codes, one product per element, beside nothing and beside two terms that cancel."""
    every = np.arange(256, dtype=np.uint8)
    a, b = np.zeros((256, 32), np.uint8), np.zeros((256, 32), np.uint8)
    a[:, 7], b[:, 7] = every, every
    c = np.zeros((256, 256), samples.code_type(FORMAT[acc]))
    for large in (0x00, 0x3F, 0x7E):
        a[:, 0], b[:, 0], a[:, 31], b[:, 31] = large, large, large | 0x80, large
        assert np.array_equal(mma(a, b, machine=machine, acc=acc, c=c), mmasim(machine, acc, a, b, c))
    tried(3 * c.size)


@pytest.mark.slow
@pytest.mark.parametrize("acc", ["fp32", "fp16"])
@pytest.mark.parametrize("machine", ["sm90", "sm100"])
def test_many_against_mmasim(machine: str, acc: Any, mmasim: Any, tried: Any) -> None:
    source, fmt, count = samples.Source(8), FORMAT[acc], 0
    for _ in range(25):
        for kind in samples.E4M3_KINDS:
            a, b = samples.e4m3_codes(source, kind, 128, 128), samples.e4m3_codes(source, kind, 128, 128)
            c = source.centred(fmt, 1 << 14, 12).reshape(128, 128)
            assert np.array_equal(mma(a, b, machine=machine, acc=acc, c=c), mmasim(machine, acc, a, b, c))
            count += c.size
    tried(count)


@pytest.mark.parametrize("acc", ["fp32", "fp16"])
def test_exact_machine_against_mpfr(acc: Any, tried: Any) -> None:
    """Every product exactly, summed at 400 bits, rounded once at the accumulator's precision."""
    import gmpy2

    source, fmt, count = samples.Source(9), FORMAT[acc], 0
    limits = gmpy2.context(
        precision=fmt.fraction_bits + 1,
        emax=fmt.bias + 1,
        emin=2 - fmt.bias - fmt.fraction_bits,
        subnormalize=True,
    )
    for kind in ("finite", "small", "sparse"):
        a, b = samples.e4m3_codes(source, kind, 16, 128), samples.e4m3_codes(source, kind, 16, 128)
        for draw in (
            None,
            source.centred(fmt, 256, 14),
            source.uniform(fmt, 256),
            source.centred(fmt, 256, 3),
        ):
            c = None if draw is None else draw.reshape(16, 16)
            got = to_float64(mma(a, b, machine="exact", acc=acc, c=c), fmt)
            for i, j in np.ndindex(16, 16):
                terms = (E4M3_VALUE[a[i]] * E4M3_VALUE[b[j]]).tolist()
                terms += [] if c is None else [float(to_float64(c[i : i + 1, j], fmt)[0])]
                with gmpy2.context(precision=400):
                    total = sum((gmpy2.mpfr(term) for term in terms), gmpy2.mpfr(0))
                with limits:
                    expected = float(gmpy2.mpfr(total, fmt.fraction_bits + 1)) + 0.0
                assert got[i, j] == expected or (np.isnan(got[i, j]) and np.isnan(expected))
                assert np.signbit(got[i, j]) == np.signbit(expected) or np.isnan(expected)
            count += got.size
    tried(count)


def exact_share(a: Any, b: Any, machine: Any) -> float:
    got = mma(a, b, machine=machine, acc="fp32")
    return float(np.mean(got == mma(a, b, machine="exact", acc="fp32")))


def normal_codes(source: samples.Source, rows: int) -> Any:
    """N(0,1) rounded to e4m3fn: sums of twelve uniform numbers, whose tails end at 6."""
    import ml_dtypes

    uniform = (source.words(rows * 128 * 12) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    normal = uniform.reshape(rows, 128, 12).sum(axis=2) - 6
    return normal.astype(np.float32).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)


def test_what_data_can_tell_machines_apart(tried: Any) -> None:
    """N(0,1) data is exact whatever F is: it validates nothing. Uniform finite codes tell F = 24, 25, 26 apart."""
    source = samples.Source(11)
    variants = [replace(MACHINES["sm100"], fraction_bits=bits) for bits in (24, 26)]
    a, b = normal_codes(source, 128), normal_codes(source, 64)
    base = mma(a, b, machine="sm100", acc="fp32")
    assert exact_share(a, b, "sm100") == 1.0
    assert [np.count_nonzero(mma(a, b, machine=v, acc="fp32") != base) for v in variants] == [0, 0]
    a, b = samples.e4m3_codes(source, "finite", 128, 128), samples.e4m3_codes(source, "finite", 64, 128)
    base = mma(a, b, machine="sm100", acc="fp32")
    assert 0.20 < exact_share(a, b, "sm100") < 0.26, "numerics.md records 23 %"
    changed = [np.count_nonzero(mma(a, b, machine=v, acc="fp32") != base) / base.size for v in variants]
    assert min(changed) > 0.25
    tried(6 * base.size)


def test_exactness_lemma(tried: Any) -> None:
    """While sum |a*b| < 64 over all K, sm100 gives the exact dot product; the bound holds for some elements here."""
    source = samples.Source(12)
    a, b = samples.e4m3_codes(source, "small", 256, 128), samples.e4m3_codes(source, "sparse", 256, 128)
    bound = np.abs(E4M3_VALUE[a]) @ np.abs(E4M3_VALUE[b]).T
    inside = bound < 64
    assert 0.1 < inside.mean() < 0.99
    exact = (E4M3_VALUE[a] @ E4M3_VALUE[b].T).astype(np.float32) + np.float32(0)
    got = mma(a, b, machine="sm100", acc="fp32")
    assert np.array_equal(got[inside], exact.view(np.uint32)[inside])
    tried(int(inside.sum()))
