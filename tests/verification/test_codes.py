"""Quantisation against ml_dtypes over every value and every tie of e4m3fn; the shapes of the random codes."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from mqa_ref.verification.codes import quantise, random_codes, wide_codes

FINITE = np.array([code for code in range(256) if code & 0x7F != 0x7F], np.uint8)
VALUES = FINITE.view(ml_dtypes.float8_e4m3fn).astype(np.float32)


def judge(values: np.ndarray) -> np.ndarray:
    """ml_dtypes from float32, where it rounds to nearest even; the saturation is ours and done before."""
    clipped = np.clip(values, -448, 448).astype(np.float32)
    return np.asarray(clipped.astype(ml_dtypes.float8_e4m3fn).view(np.uint8))


def test_every_code_is_its_own_nearest() -> None:
    assert quantise(VALUES).tolist() == FINITE.tolist()


def test_every_tie_and_its_two_neighbours() -> None:
    ordered = np.unique(VALUES)
    ties = (ordered[:-1] + ordered[1:]) / np.float32(2)
    around = np.concatenate(
        [ties, np.nextafter(ties, np.float32(np.inf)), np.nextafter(ties, np.float32(-np.inf))]
    )
    assert around.size == 3 * 252
    assert quantise(around).tolist() == judge(around).tolist()


def test_a_million_ordinary_values() -> None:
    values = np.random.default_rng(1).normal(0, 60, 1_000_000).astype(np.float32)
    assert (quantise(values) == judge(values)).all()


def test_overflow_saturates() -> None:
    values = np.array([448, 449, 464, 465, 1e30, -449, -3e38], np.float32)
    assert quantise(values).tolist() == [0x7E] * 5 + [0xFE] * 2


def test_zero_keeps_its_sign_also_when_rounded_to() -> None:
    tiny = np.float32(2.0**-11)
    assert quantise(np.array([0.0, -0.0, tiny, -tiny], np.float32)).tolist() == [0, 0x80, 0, 0x80]


def test_random_codes_are_every_code_but_nan() -> None:
    assert sorted(set(random_codes("r", 20_000).tolist())) == FINITE.tolist()


def test_wide_codes_have_two_ranges_of_exponents_and_no_nan() -> None:
    codes = wide_codes("w", 20_000)
    fields = (codes >> 3) & 15
    assert set(fields.tolist()) == {0, 1, 2, 3, 4, 14, 15}
    assert 0.1 < (fields >= 14).mean() < 0.15
    assert not ((codes & 0x7F) == 0x7F).any()
    assert 0.45 < (codes >> 7).mean() < 0.55
