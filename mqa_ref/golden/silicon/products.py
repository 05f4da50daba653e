"""Operands of the tensor-core steps that were given to real hardware: tiles of 64 x 64 results with K = 128."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mqa_ref.verification.codes import quantise, random_codes, wide_codes
from mqa_ref.verification.words import bell, below, words

ROWS, DEPTH, TILES = 64, 128, 11
"""Rows of A and of B in one tile, K, and tiles of each class."""

Codes = NDArray[np.uint8]


@dataclass(frozen=True)
class Products:
    """``a``, ``b`` uint8 [tiles, 64, 128], ``c`` uint32 [tiles, 64, 64] fp32 accumulators to start from (0 =
    +0), and the class of each tile.
    """

    a: Codes
    b: Codes
    c: NDArray[np.uint32]
    names: tuple[str, ...]


def _bell(label: str, count: int) -> Codes:
    return quantise(bell(label, count))


def _small(label: str, count: int) -> Codes:
    """Zeros, subnormals and the smallest normal numbers, of both signs."""
    codes = below(label, count, 16).astype(np.uint8)
    return codes | (below(f"{label}/sign", count, 2).astype(np.uint8) << np.uint8(7))


def _rare_nan(label: str, count: int) -> Codes:
    """Uniform codes, one in about 400 a NaN of either sign."""
    codes = random_codes(label, count).copy()
    hit = below(f"{label}/nan", count, 400) == 0
    codes[hit] = np.where(below(f"{label}/which", count, 2)[hit] == 0, 0x7F, 0xFF)
    return codes


CLASSES: dict[str, Callable[[str, int], Codes]] = {
    "bell": _bell,
    "wide": wide_codes,
    "bits": random_codes,
    "nan": _rare_nan,
    "small": _small,
    "cancel": random_codes,
    "accumulate": random_codes,
}


def products() -> Products:
    """All tiles: 7 classes of 11, 315,392 results in all."""
    a, b, c, names = [], [], [], []
    for name, draw in CLASSES.items():
        for tile in range(TILES):
            label = f"silicon/products/{name}/{tile}"
            first = draw(f"{label}/a", ROWS * DEPTH).reshape(ROWS, DEPTH).copy()
            second = draw(f"{label}/b", ROWS * DEPTH).reshape(ROWS, DEPTH).copy()
            start = np.zeros((ROWS, ROWS), np.uint32)
            if name == "cancel":
                first[:, DEPTH // 2 + 3 :] = first[:, : DEPTH // 2 - 3]
                second[:, DEPTH // 2 + 3 :] = second[:, : DEPTH // 2 - 3] ^ 0x80
            if name == "accumulate":
                start = _accumulators(f"{label}/c")
            a.append(first)
            b.append(second)
            c.append(start)
            names.append(name)
    return Products(np.array(a), np.array(b), np.array(c), tuple(names))


def _accumulators(label: str) -> NDArray[np.uint32]:
    """fp32 values of 2^-20 to 2^20, one in 64 infinite, NaN, zero, subnormal or the greatest number."""
    drawn = words(label, ROWS * ROWS)
    value = (drawn >> np.uint64(32)).astype(np.uint32)
    exponent = np.uint32(107) + (drawn & np.uint64(0xFF)).astype(np.uint32) % np.uint32(41)
    out = (value & np.uint32(0x807FFFFF)) | exponent << np.uint32(23)
    specials = np.array(
        [0x7F800000, 0xFF800000, 0x7FC00000, 0x80000000, 0x00000001, 0x7F7FFFFF, 0xFF7FFFFF], np.uint32
    )
    hit = (drawn >> np.uint64(8)) % np.uint64(64) == 0
    out[hit] = specials[((drawn >> np.uint64(16)) % np.uint64(len(specials))).astype(np.intp)][hit]
    return out.reshape(ROWS, ROWS)


def half_accumulators(c: NDArray[np.uint32]) -> NDArray[np.uint16]:
    """The same accumulators for an fp16 product: fp32 to fp16, to nearest even; NaN as 0x7e00."""
    with np.errstate(over="ignore", invalid="ignore"):
        halves = c.view(np.float32).astype(np.float16).view(np.uint16)
    return np.where((halves & 0x7FFF) > 0x7C00, np.uint16(0x7E00), halves)
