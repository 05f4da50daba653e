"""The shared-memory matrix descriptor and the instruction descriptor of tcgen05.mma.

Source: PTX ISA, "tcgen05: Shared memory descriptor" and "Instruction descriptor" (kind::f8f6f4). Only what
the kernels of this family use is modelled; everything else is refused with the field's name. Standing: doc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mqa_ref.emulator.tensormap import SWIZZLE_128, SWIZZLE_NONE, swizzled
from mqa_ref.errors import EmulatorError

_SWIZZLES = {0: SWIZZLE_NONE, 2: SWIZZLE_128}


@dataclass(frozen=True)
class MatrixDescriptor:
    """A K-major operand: start address and stride of groups of eight rows, in bytes."""

    start: int
    stride: int
    swizzle: int


def decode_matrix(bits: int) -> MatrixDescriptor:
    """Bits 0-13 start address >> 4, 32-45 stride byte offset >> 4, 46-48 version (1), 49-51 base offset,
    61-63 swizzle.
    """
    version, base_offset, swizzle = bits >> 46 & 7, bits >> 49 & 7, bits >> 61 & 7
    if version != 1:
        raise EmulatorError(f"matrix descriptor {bits:#x}: version {version}, expected 1")
    if base_offset or bits >> 52 & 1:
        raise EmulatorError(
            f"matrix descriptor {bits:#x}: base offset or absolute leading offset are not modelled"
        )
    if _SWIZZLES.get(swizzle) != SWIZZLE_128:
        raise EmulatorError(f"matrix descriptor {bits:#x}: swizzle mode {swizzle} is not modelled")
    return MatrixDescriptor((bits & 0x3FFF) << 4, (bits >> 32 & 0x3FFF) << 4, SWIZZLE_128)


def operand_addresses(descriptor: MatrixDescriptor, rows: int, width: int) -> NDArray[np.int64]:
    """Shared-memory addresses [rows, width] of the bytes of a K-major operand: rows of 128 bytes in groups of
    eight.
    """
    row = np.arange(rows, dtype=np.int64)
    address = descriptor.start + (row >> 3) * descriptor.stride + (row & 7) * 128
    return swizzled(address[:, None] + np.arange(width, dtype=np.int64), descriptor.swizzle)


N_STEP = 16
"""N of a product with M = 128 and one CTA is a multiple of this (PTX ISA, "tcgen05: Matrix shape")."""


@dataclass(frozen=True)
class MmaShape:
    """What an instruction descriptor asks for: D is [m, n], ``accumulator`` "fp32" or "fp16"."""

    m: int
    n: int
    accumulator: str


def decode_instruction(bits: int) -> MmaShape:
    """Bits 4-5 D format, 7-9 and 10-12 A and B format, 13-16 negate and transpose, 17-22 N >> 3, 24-28 M >> 4."""
    if bits & 0xF or bits >> 7 & 0x3FF or bits >> 23 & 1 or bits >> 29:
        raise EmulatorError(
            f"instruction descriptor {bits:#x}: only dense e4m3 x e4m3, not negated, not transposed, is modelled"
        )
    formats = {0: "fp16", 1: "fp32"}
    kind = bits >> 4 & 3
    m, n = (bits >> 24 & 31) << 4, (bits >> 17 & 63) << 3
    if kind not in formats or bits >> 6 & 1 or m != 128 or n % N_STEP or not N_STEP <= n <= 256:
        raise EmulatorError(
            f"instruction descriptor {bits:#x}: D format {kind} with M {m} and N {n} is not modelled"
        )
    return MmaShape(m, n, formats[kind])
