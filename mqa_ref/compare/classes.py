"""The classes of difference. An element has one class, the first that applies; two NaNs are equal, nothing
else is masked."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mqa_ref.compare.bits import Bits, Mask
from mqa_ref.numerics import Format, is_inf, is_nan, is_zero

Kind = Literal["unwritten", "nan", "inf", "inf_sign", "zero_sign", "value"]
"""``unwritten``: the launch never stored the element. ``nan``: one side is NaN, the other is not. ``inf``:
one side is an infinity, the other is finite. ``inf_sign``: one infinity against the other. ``zero_sign``: +0
against -0. ``value``: two finite numbers."""

KINDS: tuple[Kind, ...] = get_args(Kind)
EQUAL = -1


def code(kind: Kind) -> int:
    """The number that stands for a class in arrays."""
    return KINDS.index(kind)


def classify(actual: Bits, expected: Bits, written: Mask, fmt: Format) -> NDArray[np.int8]:
    """The class of every element as an index into ``KINDS``, ``EQUAL`` where there is no difference.

    All arguments have one shape; ``actual`` and ``expected`` are patterns of the format ``fmt``. NaN is one
    class because the PTX ISA leaves the payload open (standing: doc).
    """
    nan_actual, nan_expected = is_nan(actual, fmt), is_nan(expected, fmt)
    inf_actual, inf_expected = is_inf(actual, fmt), is_inf(expected, fmt)
    zeros = is_zero(actual, fmt) & is_zero(expected, fmt)
    same = (actual == expected) | (nan_actual & nan_expected)
    kinds = np.select(
        [
            ~written,
            same,
            nan_actual != nan_expected,
            inf_actual & inf_expected,
            inf_actual | inf_expected,
            zeros,
        ],
        [code("unwritten"), EQUAL, code("nan"), code("inf_sign"), code("inf"), code("zero_sign")],
        code("value"),
    )
    return kinds.astype(np.int8)
