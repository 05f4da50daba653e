"""What the vectorised operations share: their argument check and the constants they compare with.

The operations are called many thousands of times on 32 to 128 elements, where the number of NumPy calls is the
cost: an argument that is an array of the right dtype passes with one comparison, and constants are 0-d arrays
because NumPy converts a Python number anew at every call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mqa_ref.errors import Fault, InputError

U32: TypeAlias = NDArray[np.uint32]
U16: TypeAlias = NDArray[np.uint16]
F64: TypeAlias = NDArray[np.float64]

Operand32: TypeAlias = U32 | np.uint32 | int
"""What a vectorised operation takes as fp32 codes."""
Operand16: TypeAlias = U16 | np.uint16 | int
"""What a vectorised operation takes as fp16 codes."""

UINT32 = np.dtype(np.uint32)
UINT16 = np.dtype(np.uint16)


def as_u32(value: object, name: str = "operand") -> U32:
    """``value`` as an array of fp32 codes. Accepts a uint32 array, a NumPy uint32 scalar, or a Python int that
    fits."""
    if type(value) is np.ndarray and value.dtype == UINT32:
        return value
    return _convert(value, name, UINT32)


def as_u16(value: object, name: str = "operand") -> U16:
    """``value`` as an array of 16-bit codes. Accepts a uint16 array, a NumPy uint16 scalar, or a Python int that
    fits."""
    if type(value) is np.ndarray and value.dtype == UINT16:
        return value
    return _convert(value, name, UINT16)


def _convert(value: object, name: str, dtype: np.dtype[Any]) -> NDArray[Any]:
    expected = f"an array of {dtype.name} codes or one Python int of {8 * dtype.itemsize} bits"
    if isinstance(value, (np.ndarray, np.generic)):
        if value.dtype == dtype:
            return np.asarray(value)
        raise InputError([Fault(name, f"dtype {value.dtype}", expected)])
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << (8 * dtype.itemsize):
        return np.asarray(value, dtype)
    raise InputError([Fault(name, repr(value), expected)])


def shape_faults(shapes: Sequence[tuple[str, tuple[int, ...], tuple[int | None, ...]]]) -> list[Fault]:
    """The arguments (name, shape, expected shape with None for any size) whose shape is not the expected one."""
    faults = []
    for name, shape, expected in shapes:
        if len(shape) != len(expected) or any(
            e is not None and e != s for s, e in zip(shape, expected, strict=True)
        ):
            wanted = ", ".join("any" if size is None else str(size) for size in expected)
            faults.append(Fault(name, f"shape {list(shape)}", f"shape [{wanted}]"))
    return faults
