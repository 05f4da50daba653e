"""Questions about whole arrays of codes, and the 256 values of e4m3fn as tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.numerics.formats import E4M3FN, Format

BitArray = NDArray[np.unsignedinteger[Any]]
BoolArray = NDArray[np.bool_]


def is_nan(bits: BitArray, fmt: Format) -> BoolArray:
    """Where the codes ``bits`` (any shape) are NaN of any sign and payload; bool, same shape."""
    magnitude = _magnitude(bits, fmt)
    if fmt.has_inf:
        return np.asarray(magnitude > fmt.exponent_mask)
    return np.asarray(magnitude == fmt.exponent_mask | fmt.fraction_mask)


def is_inf(bits: BitArray, fmt: Format) -> BoolArray:
    """Where the codes ``bits`` (any shape) are an infinity; bool, same shape, all False for e4m3fn."""
    if not fmt.has_inf:
        return np.zeros(np.shape(bits), np.bool_)
    return np.asarray(_magnitude(bits, fmt) == fmt.exponent_mask)


def is_zero(bits: BitArray, fmt: Format) -> BoolArray:
    """Where the codes ``bits`` (any shape) are +0 or -0; bool, same shape."""
    return np.asarray(_magnitude(bits, fmt) == 0)


def canonical_nan(bits: BitArray, fmt: Format) -> BitArray:
    """A copy of ``bits`` with every NaN replaced by the format's canonical NaN, so that NaN compares as one
    class."""
    out = np.array(bits)
    out[is_nan(out, fmt)] = fmt.canonical_nan
    return out


def to_float64(bits: BitArray, fmt: Format) -> NDArray[np.float64]:
    """The values of the codes ``bits`` (any shape), exact in float64 for all four formats; NaN and inf as
    themselves."""
    wide = np.asarray(bits).astype(np.int64)
    field = (wide & fmt.exponent_mask) >> fmt.fraction_bits
    significand = (wide & fmt.fraction_mask) | np.where(field == 0, 0, 1 << fmt.fraction_bits)
    value = np.ldexp(significand.astype(np.float64), np.maximum(field, 1) - fmt.bias - fmt.fraction_bits)
    value = np.where(is_inf(bits, fmt), np.inf, np.where(is_nan(bits, fmt), np.nan, value))
    return np.where(wide & fmt.sign_mask != 0, -value, value)


def _magnitude(bits: BitArray, fmt: Format) -> BitArray:
    array = np.asarray(bits)
    return np.asarray(array & array.dtype.type(fmt.sign_mask - 1))


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


_CODES = np.arange(256, dtype=np.uint8)
_FIELD = (_CODES.astype(np.int64) & E4M3FN.exponent_mask) >> E4M3FN.fraction_bits

ZERO_EXPONENT = -300
"""Stands in for the exponent of a zero, so low that no sum of it with another exponent is ever the largest."""

E4M3_VALUE: NDArray[np.float64] = _read_only(to_float64(_CODES, E4M3FN))
"""float64 [256]: the value of each e4m3fn code; NaN for 0x7f and 0xff, -0.0 for 0x80."""

E4M3_SIGNIFICAND: NDArray[np.int64] = _read_only(
    np.where(_CODES & 0x80 != 0, -1, 1)
    * ((_CODES.astype(np.int64) & E4M3FN.fraction_mask) | np.where(_FIELD == 0, 0, 8))
    * np.where(is_nan(_CODES, E4M3FN), 0, 1)
)
"""int64 [256]: signed significand in eighths (8..15 normal, 0..7 subnormal); 0 for the two NaN codes."""

E4M3_EXPONENT: NDArray[np.int16] = _read_only(
    np.where(E4M3_VALUE == 0, ZERO_EXPONENT, np.maximum(_FIELD, 1) - E4M3FN.bias).astype(np.int16)
)
"""int16 [256]: exponent of each code, value = E4M3_SIGNIFICAND * 2**(E4M3_EXPONENT - 3); ZERO_EXPONENT for the
zeros."""
