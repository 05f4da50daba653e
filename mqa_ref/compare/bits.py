"""Distance in ULP and the spelling of bit patterns; what a pattern means is ``mqa_ref.numerics``'s
business."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.numerics import Format

Bits = NDArray[np.unsignedinteger[Any]]
Mask = NDArray[np.bool_]


def dtype_of(fmt: Format) -> np.dtype[np.unsignedinteger[Any]]:
    """The unsigned dtype that holds one pattern of an output format."""
    return np.dtype(f"uint{fmt.bits}")


def ulp_distance(one: Bits, other: Bits, fmt: Format) -> NDArray[np.int64]:
    """How many representable numbers lie between two finite ones, one of the two included; +0 and -0 are one
    number.

    ``one``, ``other``: patterns of one shape; int64, same shape. Patterns order as sign and magnitude
    (standing: doc, IEEE 754).
    """

    def rank(bits: Bits) -> NDArray[np.int64]:
        wide = bits.astype(np.int64)
        magnitude = wide & (fmt.sign_mask - 1)
        return np.where(wide & fmt.sign_mask, -magnitude, magnitude)

    return np.asarray(np.abs(rank(one) - rank(other)))


def hex_word(pattern: int, fmt: Format) -> str:
    """One pattern as a hex word of the format's full width."""
    return f"0x{pattern:0{fmt.bits // 4}x}"
