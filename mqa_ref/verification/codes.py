"""Turns float32 numbers into e4m3fn codes, and makes codes with chosen bit patterns, for the data of the
named problems."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mqa_ref.verification.words import below, words

Codes = NDArray[np.uint8]
E4M3_MAX = np.float32(448)
NAN_CODES = (0x7F, 0xFF)


def quantise(values: NDArray[np.float32]) -> Codes:
    """The e4m3fn code nearest to each finite value: ties to the even code, magnitudes above 448 become 448,
    -0 keeps its sign.

    This rule is the package's own; libraries differ on overflow (numerics.md, "Rounding traps").
    """
    magnitude = np.minimum(np.abs(values), E4M3_MAX).astype(np.float32)
    bits = magnitude.view(np.uint32)
    # fp32 has 20 more fraction bits, and exponents that are 120 greater.
    rounded = (
        (bits + ((bits >> np.uint32(20)) & np.uint32(1)) + np.uint32(0x7FFFF)) >> np.uint32(20)
    ) - np.uint32(960)
    subnormal = np.rint(magnitude * np.float32(512)).astype(np.uint32)
    code = np.where(magnitude < np.float32(2.0**-6), subnormal, rounded)
    signed: Codes = (code | (np.signbit(values).astype(np.uint32) << np.uint32(7))).astype(np.uint8)
    return signed


def random_codes(label: str, count: int) -> Codes:
    """Uniform over the 254 codes that are no NaN: uint8 [count]."""
    drawn = below(label, count, 254)
    return np.where(drawn < 127, drawn, drawn + 1).astype(np.uint8)


def wide_codes(label: str, count: int) -> Codes:
    """Codes of very unlike sizes: one in eight has an exponent field of 14 or 15, the others 0..4; no NaN.
    uint8 [count].

    A step of the tensor core cuts small products below the large ones, so this is where a wrong number of
    fraction bits shows (numerics.md, "Tensor-core step").
    """
    drawn = words(label, count)
    fraction, sign = drawn & np.uint64(7), (drawn >> np.uint64(3)) & np.uint64(1)
    small = ((drawn >> np.uint64(8)) & np.uint64(0xFF)) % np.uint64(5)
    large = np.uint64(14) + ((drawn >> np.uint64(16)) & np.uint64(1))
    field = np.where((drawn >> np.uint64(24)) % np.uint64(8) == 0, large, small)
    code = (sign << np.uint64(7)) | (field << np.uint64(3)) | fraction
    nan = (code & np.uint64(0x7F)) == 0x7F
    codes: Codes = np.where(nan, code - np.uint64(1), code).astype(np.uint8)
    return codes
