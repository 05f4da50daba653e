"""Operands worth trying: special codes of every format and seeded random codes, the same on every NumPy version.

Random codes are mapped by hand from raw Philox words, because NumPy promises the words but not its distributions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.numerics.formats import E4M3FN, Format

Words = NDArray[np.uint64]


def specials(fmt: Format) -> tuple[int, ...]:
    """The special codes of a format, both signs, ascending: zeros, ends of the subnormals and normals, the numbers
    about one, inf and NaN with the smallest, a quiet and the canonical payload."""
    one = fmt.bias << fmt.fraction_bits
    smallest_normal = 1 << fmt.fraction_bits
    positive = {0, 1, 2, smallest_normal - 1, smallest_normal, smallest_normal + 1, one - 1, one, one + 1}
    positive |= {fmt.max_finite_code - 1, fmt.max_finite_code, fmt.canonical_nan}
    if fmt.has_inf:
        quiet = fmt.exponent_mask | (1 << (fmt.fraction_bits - 1))
        positive |= {fmt.exponent_mask, fmt.exponent_mask + 1, quiet}
    return tuple(sorted(positive | {code | fmt.sign_mask for code in positive}))


def crossed(fmt: Format, count: int) -> tuple[NDArray[Any], ...]:
    """Every ``count``-tuple of special codes as ``count`` flat arrays of the format's code type."""
    grids = np.meshgrid(*[np.array(specials(fmt), code_type(fmt))] * count, indexing="ij")
    return tuple(grid.ravel() for grid in grids)


def code_type(fmt: Format) -> type[np.unsignedinteger[Any]]:
    """The NumPy unsigned type that holds a code of the format."""
    types: dict[int, type[np.unsignedinteger[Any]]] = {8: np.uint8, 16: np.uint16, 32: np.uint32}
    return types[fmt.bits]


class Source:
    """A stream of seeded 64-bit words and the codes made of them."""

    def __init__(self, seed: int) -> None:
        self._philox = np.random.Philox(key=seed)

    def words(self, count: int) -> Words:
        """The next ``count`` uniform 64-bit words."""
        return np.asarray(self._philox.random_raw(count), np.uint64)

    def uniform(self, fmt: Format, count: int) -> NDArray[Any]:
        """Codes with uniform bits: all exponents, and inf and NaN as often as they are codes."""
        return (self.words(count) >> np.uint64(64 - fmt.bits)).astype(code_type(fmt))

    def centred(self, fmt: Format, count: int, width: int) -> NDArray[Any]:
        """Finite codes whose exponent field is within ``width`` of the bias, with 1 to all fraction bits in use:
        operands that meet each other, cancel and tie."""
        word = self.words(count)
        field = (fmt.bias + (word & np.uint64(0xFFFF)).astype(np.int64) % (2 * width + 1) - width).astype(
            np.int64
        )
        kept = (word >> np.uint64(16) & np.uint64(0xFF)).astype(np.int64) % fmt.fraction_bits + 1
        fraction = (word >> np.uint64(63 - fmt.fraction_bits)).astype(np.int64) & fmt.fraction_mask
        fraction &= -1 << (fmt.fraction_bits - kept)
        sign = (word >> np.uint64(63)).astype(np.int64) * fmt.sign_mask
        return (
            sign
            | np.clip(field, 0, (fmt.max_finite_code >> fmt.fraction_bits) - 1) << fmt.fraction_bits
            | fraction
        ).astype(code_type(fmt))

    def mixed(self, fmt: Format, count: int) -> NDArray[Any]:
        """Half uniform, a quarter centred within 12, an eighth near the smallest exponents, an eighth special;
        shuffled by word."""
        table = np.array(specials(fmt), code_type(fmt))
        tiny = self.uniform(fmt, count) & code_type(fmt)(fmt.sign_mask | (8 << fmt.fraction_bits) - 1)
        picked = table[(self.words(count) % np.uint64(len(table))).astype(np.int64)]
        kind = self.words(count) >> np.uint64(61)
        width = min(12, fmt.bias - 1)
        choices = [kind < 4, kind < 6, kind < 7]
        return np.select(choices, [self.uniform(fmt, count), self.centred(fmt, count, width), tiny], picked)


E4M3_KINDS = ("uniform", "finite", "small", "sparse")


def e4m3_codes(source: Source, kind: str, rows: int, columns: int) -> NDArray[np.uint8]:
    """e4m3fn codes [rows, columns]: "uniform" bits with NaN, "finite" uniform bits without, "small" exponents
    -6..-1 and subnormals, or "sparse" (seven of eight are zeros)."""
    codes = np.asarray(source.uniform(E4M3FN, rows * columns), np.uint8).reshape(rows, columns)
    if kind == "uniform":
        return codes
    codes = np.where(codes & 0x7F == 0x7F, codes ^ 1, codes).astype(np.uint8)
    if kind == "finite":
        return codes
    if kind == "small":
        return np.where(codes & 0x80, 0x80, 0).astype(np.uint8) | (codes & np.uint8(0x37))
    if kind == "sparse":
        keep = source.words(rows * columns).reshape(rows, columns) >> np.uint64(61) == 0
        return np.where(keep, codes, codes & np.uint8(0x80))
    raise ValueError(f"kind {kind!r}, expected one of {E4M3_KINDS}")
