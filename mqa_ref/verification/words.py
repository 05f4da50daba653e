"""Random numbers that are the same everywhere, for ever: own mappings over the raw 64-bit words of Philox.

NumPy promises the words of a bit generator, not the values of its distributions. So only the words are taken
from it, and every mapping here is integer arithmetic, or one correctly rounded IEEE operation, which no
platform computes differently.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

BELL_SIGMA = 209.0
"""The sum of eight uniform bytes has the standard deviation sqrt(8 * (256**2 - 1) / 12) = 209.02."""

_EVEN_BYTES, _ONES = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0001000100010001)
"""Four fields of 16 bits: the bytes at even places, and what sums the four fields into the highest one."""


def words(label: str, count: int) -> NDArray[np.uint64]:
    """``count`` words, uint64 [count], that depend on ``label`` alone: its SHA-256 is the key of
    Philox4x64."""
    key = int.from_bytes(hashlib.sha256(label.encode()).digest()[:16], "little")
    return np.random.Philox(key=key).random_raw(count)


def below(label: str, count: int, bound: int) -> NDArray[np.int64]:
    """Integers 0..bound-1, int64 [count]: the top 32 bits times ``bound``, divided by 2^32 (bound at most
    2^31)."""
    top = words(label, count) >> np.uint64(32)
    return ((top * np.uint64(bound)) >> np.uint64(32)).astype(np.int64)


def bell(label: str, count: int) -> NDArray[np.float32]:
    """Numbers near the standard normal, float32 [count]: the sum of a word's eight bytes, less its mean 1020,
    over 209.

    Their greatest magnitude is 1020/209 = 4.88. No logarithm and no cosine: those are not bit-stable across
    platforms.
    """
    drawn = words(label, count)
    pairs = (drawn & _EVEN_BYTES) + ((drawn >> np.uint64(8)) & _EVEN_BYTES)
    eight = ((pairs * _ONES) >> np.uint64(48)).astype(np.int32)
    return np.asarray((eight - 1020).astype(np.float32) / np.float32(BELL_SIGMA))


def permutation(label: str, count: int) -> NDArray[np.int64]:
    """A permutation of 0..count-1, int64 [count]: the order that sorts ``count`` words."""
    return np.argsort(words(label, count), kind="stable").astype(np.int64)


def binary_scaled(label: str, count: int, low: int, high: int) -> NDArray[np.float32]:
    """Positive numbers with 24 random significant bits and exponents low..high, each equally likely: float32
    [count]."""
    drawn = words(label, count)
    fraction = (drawn & np.uint64(0x7FFFFF)).astype(np.uint32)
    span = np.uint64(high - low + 1)
    exponent = (((drawn >> np.uint64(32)) * span) >> np.uint64(32)).astype(np.int64) + (low + 127)
    return ((exponent.astype(np.uint32) << np.uint32(23)) | fraction).view(np.float32)


def signs(label: str, count: int) -> NDArray[np.float32]:
    """+1 or -1, float32 [count]."""
    return np.where(below(label, count, 2) == 1, np.float32(-1), np.float32(1))
