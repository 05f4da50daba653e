"""The values of a named problem: queries, keys, scales and weights of one kind each, as functions of a label
and the sizes.

Every token of every page has its own scale and every row its own weights, so that data taken from the wrong
place shows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mqa_ref.verification.codes import NAN_CODES, Codes, quantise, random_codes, wide_codes
from mqa_ref.verification.words import bell, below, binary_scaled, signs

DIM = 128
FLT_MAX = np.float32(3.4028234663852886e38)


@dataclass(frozen=True)
class Sizes:
    """Rows are B * next_n queries of ``heads`` heads; ``tokens`` = pages * page keys."""

    rows: int
    heads: int
    tokens: int


@dataclass(frozen=True)
class Data:
    """``q`` uint8 [rows, heads, 128], ``k`` uint8 [tokens, 128], ``scales`` float32 [tokens], ``weights``
    [rows, heads]."""

    q: Codes
    k: Codes
    scales: NDArray[np.float32]
    weights: NDArray[np.float32]


def _rms_scaled(label: str, sizes: Sizes) -> Data:
    """Bell-shaped queries, keys and weights, scales in 1/2..2."""
    return Data(
        quantise(bell(f"{label}/q", sizes.rows * sizes.heads * DIM)).reshape(sizes.rows, sizes.heads, DIM),
        quantise(bell(f"{label}/k", sizes.tokens * DIM)).reshape(sizes.tokens, DIM),
        binary_scaled(f"{label}/scales", sizes.tokens, -1, 0),
        bell(f"{label}/weights", sizes.rows * sizes.heads).reshape(sizes.rows, sizes.heads),
    )


def _amax_scaled(label: str, sizes: Sizes) -> Data:
    """As production quantises: every query head and every key fills the range up to 448, a key's scale is its
    amax / 448."""

    def stretched(part: str, vectors: int) -> tuple[Codes, NDArray[np.float32]]:
        values = bell(f"{label}/{part}", vectors * DIM).reshape(vectors, DIM)
        amax = np.abs(values).max(axis=1, keepdims=True)
        return quantise(values * (np.float32(448) / amax)), (amax / np.float32(448)).reshape(-1)

    q, _ = stretched("q", sizes.rows * sizes.heads)
    k, scales = stretched("k", sizes.tokens)
    weights = bell(f"{label}/weights", sizes.rows * sizes.heads).reshape(sizes.rows, sizes.heads)
    return Data(q.reshape(sizes.rows, sizes.heads, DIM), k, scales, weights)


def _wide(label: str, sizes: Sizes) -> Data:
    """Products of very unlike sizes, weights and scales over 40 binary orders of magnitude."""
    count = sizes.rows * sizes.heads
    weights = binary_scaled(f"{label}/weights", count, -20, 20) * signs(f"{label}/signs", count)
    return Data(
        wide_codes(f"{label}/q", count * DIM).reshape(sizes.rows, sizes.heads, DIM),
        wide_codes(f"{label}/k", sizes.tokens * DIM).reshape(sizes.tokens, DIM),
        binary_scaled(f"{label}/scales", sizes.tokens, -20, 20),
        weights.reshape(sizes.rows, sizes.heads),
    )


def _bits(label: str, sizes: Sizes) -> Data:
    """Uniform codes without NaN, signed weights and scales within 2^8 of 1."""
    count = sizes.rows * sizes.heads
    weights = binary_scaled(f"{label}/weights", count, -8, 8) * signs(f"{label}/signs", count)
    scale_signs = signs(f"{label}/scale signs", sizes.tokens)
    return Data(
        random_codes(f"{label}/q", count * DIM).reshape(sizes.rows, sizes.heads, DIM),
        random_codes(f"{label}/k", sizes.tokens * DIM).reshape(sizes.tokens, DIM),
        binary_scaled(f"{label}/scales", sizes.tokens, -8, 8) * scale_signs,
        weights.reshape(sizes.rows, sizes.heads),
    )


def _nan_keys(label: str, sizes: Sizes) -> Data:
    """As ``_bits``, and every seventh token has one NaN code in its key, 0x7f and 0xff in turn."""
    data = _bits(label, sizes)
    k, hit = data.k.copy(), np.arange(3, sizes.tokens, 7)
    k[hit, below(f"{label}/place", hit.size, DIM)] = np.array(NAN_CODES, np.uint8)[hit % 2]
    return replace(data, k=k)


def _nan_query(label: str, sizes: Sizes) -> Data:
    """As ``_bits``, and one head of the last row but one has a NaN code: that row is NaN throughout, no other
    is."""
    data = _bits(label, sizes)
    q = data.q.copy()
    q[max(0, sizes.rows - 2), sizes.heads // 2, 77] = 0xFF
    return replace(data, q=q)


def _special_scales(label: str, sizes: Sizes) -> Data:
    """As ``_rms_scaled``, with scales that are NaN of either sign, infinite, zero of either sign, subnormal,
    the greatest and least numbers, and huge and negative, in turn with ordinary ones."""
    specials = np.array(
        [
            *[0x7FC00000, 0xFFC00001, 0x7F800001, 0x7F800000, 0xFF800000, 0x00000000, 0x80000000],
            *[0x00000001, 0x80000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x71800000, 0xC0400000],
        ],
        np.uint32,
    ).view(np.float32)
    data = _rms_scaled(label, sizes)
    scales = data.scales.copy()
    scales[::2] = np.resize(specials, scales[::2].size)
    return replace(data, scales=scales)


def _plain_scales(label: str, sizes: Sizes) -> Data:
    """As ``_rms_scaled`` with finite scales from 2^-149 to 2^120, negative ones and zeros among them."""
    data = _rms_scaled(label, sizes)
    scales = binary_scaled(f"{label}/scales", sizes.tokens, -126, 120) * signs(f"{label}/signs", sizes.tokens)
    scales[5::11] = np.float32(2.0**-149)
    scales[7::11] = np.float32(0.0)
    scales[9::11] = np.float32(-0.0)
    return replace(data, scales=scales)


def _overflowing_weights(label: str, sizes: Sizes) -> Data:
    """Scores of +1 and -1 by head, weights among 1, FLT_MAX, FLT_MAX / 2, zero of either sign and their
    negatives.

    Score 1, weight FLT_MAX, scale 1/2: the folded form (x + |x|) * w overflows before the final half, the
    form with max(x, 0) does not; scores 1 and -1 with weights 1 and 1 give 1 only when the ReLU comes before
    the sum (op.md).
    """
    q = np.zeros((sizes.rows, sizes.heads, DIM), np.uint8)
    q[:, :, 0] = np.where(np.arange(sizes.heads) % 3 == 2, 0xB8, 0x38)
    k = np.zeros((sizes.tokens, DIM), np.uint8)
    k[:, 0] = np.array([0x38, 0xB8, 0x30, 0x08], np.uint8)[np.arange(sizes.tokens) % 4]
    choices = np.array([0.0, -0.0, 1.0, FLT_MAX / 2, FLT_MAX, -FLT_MAX, -1.0, 2.0**-126], np.float32)
    drawn = below(f"{label}/weights", sizes.rows * sizes.heads, choices.size).reshape(sizes.rows, sizes.heads)
    sparse = below(f"{label}/sparse", sizes.rows * sizes.heads, 8).reshape(sizes.rows, sizes.heads)
    weights = choices[np.where(sparse == 0, drawn, drawn % 3)]
    weights[-1] = 0
    weights[-1, 0] = FLT_MAX
    return Data(q, k, binary_scaled(f"{label}/scales", sizes.tokens, -2, 0), weights)


def _fma_ties(label: str, sizes: Sizes) -> Data:
    """Sums in which one rounding and two roundings of a fused multiply-add differ, at every token.

    Head g has the score 1/2, so that (x + |x|) * w is its weight c exactly, an odd multiple of its last place
    u. The heads after it in the same partial sum have the score 2^7 - 2^-16: (x + |x|) * w = u/2 * (1 -
    2^-46) when w = u * 2^-9 * (1 + 2^-23). That is just below half a last place, so the sum stays c; a
    product that is rounded to fp32 first, or a sum that goes through float64, ends on the tie and moves to
    the even neighbour. Standing: proof; the kind is numerics.md's "Rounding traps". A row's other three
    partial sums are zero, so nothing later hides it, and a token's key is scaled by a power of two, which
    scales the whole sum.
    """
    steps = np.arange(23)
    q = np.zeros((sizes.rows, sizes.heads, DIM), np.uint8)
    ties = quantise(np.ldexp(np.float32(1), 3 - steps // 2).astype(np.float32))
    q[:, 4:, :23] = ties
    q[:, :4, 127] = quantise(np.array([0.5], np.float32))[0]
    weights = np.zeros((sizes.rows, sizes.heads), np.float32)
    odd = binary_scaled(f"{label}/odd", sizes.rows, -3, 3).view(np.uint32) | np.uint32(1)
    for row in range(sizes.rows):
        c = odd[row : row + 1].view(np.float32)[0]
        last_place = np.ldexp(np.float32(1), int(np.frexp(c)[1]) - 24)
        weights[row, row % 4] = c
        weights[row, 4 + row % 4 :: 4] = np.ldexp(last_place, -9) * np.float32(1 + 2.0**-23)
    shift = below(f"{label}/shift", sizes.tokens, 7) - 1
    k = np.zeros((sizes.tokens, DIM), np.uint8)
    exponents = 3 - (steps[None, :] + 1) // 2 + shift[:, None]
    k[:, :23] = quantise(np.ldexp(np.float32(1), exponents).astype(np.float32))
    k[:, 127] = quantise(np.ldexp(np.float32(1), shift).astype(np.float32))
    return Data(q, k, np.ldexp(np.float32(1), shift).astype(np.float32), weights)


def _greatest_codes(label: str, sizes: Sizes) -> Data:
    """Every code is +448 or -448: dot products from -128 * 448^2 to 128 * 448^2, most of them sums that cancel."""
    count = sizes.rows * sizes.heads
    ends = np.array([0x7E, 0xFE], np.uint8)
    return Data(
        ends[below(f"{label}/q", count * DIM, 2)].reshape(sizes.rows, sizes.heads, DIM),
        ends[below(f"{label}/k", sizes.tokens * DIM, 2)].reshape(sizes.tokens, DIM),
        binary_scaled(f"{label}/scales", sizes.tokens, -20, 0),
        bell(f"{label}/weights", count).reshape(sizes.rows, sizes.heads),
    )


def _cancelling(label: str, sizes: Sizes) -> Data:
    """As ``_bits``, but the second half of every query is the negative of the first and a key repeats itself, up to
    eight elements: large products cancel and what is left is small."""
    data = _bits(label, sizes)
    q, k, half = data.q.copy(), data.k.copy(), DIM // 2
    q[:, :, half:] = q[:, :, :half] ^ 0x80
    k[:, half:] = k[:, :half]
    k[:, DIM - 8 :] = quantise(bell(f"{label}/rest", sizes.tokens * 8)).reshape(sizes.tokens, 8)
    return replace(data, q=q, k=k)


def _subnormals(label: str, sizes: Sizes) -> Data:
    """Codes below 2^-6, of either sign; weights and scales from subnormal to 2^-100, so that products vanish."""
    count = sizes.rows * sizes.heads

    def small(part: str, number: int) -> Codes:
        drawn = below(f"{label}/{part}", number, 16)
        return np.asarray((drawn & 7) | ((drawn & 8) << 4), np.uint8)

    weights = np.ldexp(binary_scaled(f"{label}/weights", count, -40, 0), -100).astype(np.float32)
    return Data(
        small("q", count * DIM).reshape(sizes.rows, sizes.heads, DIM),
        small("k", sizes.tokens * DIM).reshape(sizes.tokens, DIM),
        np.ldexp(binary_scaled(f"{label}/scales", sizes.tokens, -30, 0), -10).astype(np.float32),
        (weights * signs(f"{label}/signs", count)).reshape(sizes.rows, sizes.heads),
    )


def _all_zero(label: str, sizes: Sizes) -> Data:
    """Zeros of either sign in every code, weight and scale."""
    count = sizes.rows * sizes.heads

    def zeros(part: str, number: int) -> Codes:
        return np.asarray(below(f"{label}/{part}", number, 2) << 7, np.uint8)

    return Data(
        zeros("q", count * DIM).reshape(sizes.rows, sizes.heads, DIM),
        zeros("k", sizes.tokens * DIM).reshape(sizes.tokens, DIM),
        np.float32(0) * signs(f"{label}/scales", sizes.tokens),
        (np.float32(0) * signs(f"{label}/weights", count)).reshape(sizes.rows, sizes.heads),
    )


def _special_weights(label: str, sizes: Sizes) -> Data:
    """As ``_rms_scaled``, with rows of which some weights are NaN, infinite, zero of either sign, subnormal, FLT_MAX,
    and those that fp16 makes 0 or infinite; every other row has ordinary ones only."""
    specials = np.array(
        [
            *[0x7FC00000, 0xFFC00001, 0x7F800000, 0xFF800000, 0x00000000, 0x80000000, 0x00000001, 0x807FFFFF],
            *[0x7F7FFFFF, 0xFF7FFFFF, 0x477FF000, 0xC77FE000, 0x33000000, 0x387FC000],
        ],
        np.uint32,
    ).view(np.float32)
    data = _rms_scaled(label, sizes)
    weights = data.weights.copy()
    chosen = below(f"{label}/chosen", weights.size, specials.size).reshape(weights.shape)
    sparse = below(f"{label}/sparse", weights.size, 16).reshape(weights.shape) == 0
    sparse[1::2] = False
    return replace(data, weights=np.where(sparse, specials[chosen], weights))


def _counting(label: str, sizes: Sizes) -> Data:
    """Small whole numbers whose logits are exact in every flow but for the last rounding: every token has a key and a
    scale of its own, so that one taken from elsewhere shows."""
    count, tokens = sizes.rows * sizes.heads, np.arange(sizes.tokens)
    q = np.zeros((sizes.rows, sizes.heads, DIM), np.uint8)
    q[:, :, 0] = 0x38
    k = np.zeros((sizes.tokens, DIM), np.uint8)
    k[:, 0] = 0x38 + (tokens % 16)
    scales = np.asarray(1 + tokens // 16 % 1024, np.float32) * np.float32(2.0**-10)
    weights = np.asarray(below(f"{label}/weights", count, 8) + 1, np.float32)
    return Data(q, k, scales, weights.reshape(sizes.rows, sizes.heads))


KINDS: dict[str, Callable[[str, Sizes], Data]] = {
    "rms": _rms_scaled,
    "amax": _amax_scaled,
    "wide": _wide,
    "bits": _bits,
    "nan_keys": _nan_keys,
    "nan_query": _nan_query,
    "special_scales": _special_scales,
    "plain_scales": _plain_scales,
    "overflow": _overflowing_weights,
    "fma_ties": _fma_ties,
    "greatest_codes": _greatest_codes,
    "cancelling": _cancelling,
    "subnormals": _subnormals,
    "all_zero": _all_zero,
    "special_weights": _special_weights,
    "counting": _counting,
}


def fill(kind: str, label: str, sizes: Sizes) -> Data:
    """Data of one of ``KINDS``."""
    return KINDS[kind](label, sizes)
