"""The shared-memory matrix descriptors of tcgen05.mma and wgmma.mma_async, and the instruction descriptor.

Source: PTX ISA, "tcgen05: Shared memory descriptor" and "Instruction descriptor" (kind::f8f6f4). Only what
the kernels of this family use is modelled; everything else is refused with the field's name. Standing: doc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mqa_ref.emulator.tensormap import SWIZZLE_32, SWIZZLE_64, SWIZZLE_128, SWIZZLE_NONE, swizzled
from mqa_ref.errors import EmulatorError

_SWIZZLES_100 = {0: SWIZZLE_NONE, 2: SWIZZLE_128, 4: SWIZZLE_64, 6: SWIZZLE_32}
_SWIZZLES_90 = {0: SWIZZLE_NONE, 1: SWIZZLE_128, 2: SWIZZLE_64, 3: SWIZZLE_32}
PIECE = 16
"""Bytes of one row of a core matrix, which the swizzle moves as a whole."""


@dataclass(frozen=True)
class MatrixDescriptor:
    """A K-major operand: start address, stride of groups of eight rows and, with no swizzle, of the 16-byte pieces of a
    row (``leading``), in bytes. ``base_offset`` is subtracted from the number of the 128-byte line before the swizzle.
    """

    start: int
    stride: int
    swizzle: int
    leading: int = PIECE
    base_offset: int = 0


def decode_matrix(bits: int) -> MatrixDescriptor:
    """Of tcgen05.mma: bits 0-13 start address >> 4, 32-45 stride byte offset >> 4, 46-48 version (1), 49-51 base
    offset, 61-63 swizzle.
    """
    version, base_offset, swizzle = bits >> 46 & 7, bits >> 49 & 7, bits >> 61 & 7
    if version != 1:
        raise EmulatorError(f"matrix descriptor {bits:#x}: version {version}, expected 1")
    if base_offset or bits >> 52 & 1:
        raise EmulatorError(
            f"matrix descriptor {bits:#x}: base offset or absolute leading offset are not modelled"
        )
    if _SWIZZLES_100.get(swizzle) != SWIZZLE_128:
        raise EmulatorError(f"matrix descriptor {bits:#x}: swizzle mode {swizzle} is not modelled")
    return MatrixDescriptor((bits & 0x3FFF) << 4, (bits >> 32 & 0x3FFF) << 4, SWIZZLE_128)


def decode_matrix_sm90(bits: int) -> MatrixDescriptor:
    """Of wgmma.mma_async: bits 0-13 start address >> 4, 16-29 leading byte offset >> 4, 32-45 stride byte offset >> 4,
    49-51 base offset, 62-63 swizzle (PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout"; standing of
    the swizzles and of the base offset: hw, an H200).
    """
    swizzle, base_offset = _SWIZZLES_90[bits >> 62 & 3], bits >> 49 & 7
    if base_offset and swizzle == SWIZZLE_NONE:
        raise EmulatorError(f"matrix descriptor {bits:#x}: a base offset without a swizzle is not modelled")
    if bits & 0x3FF1_C000_C000_C000:
        raise EmulatorError(f"matrix descriptor {bits:#x}: bits that have no meaning are set")
    return MatrixDescriptor(
        (bits & 0x3FFF) << 4,
        (bits >> 32 & 0x3FFF) << 4,
        swizzle,
        (bits >> 16 & 0x3FFF) << 4,
        base_offset,
    )


def operand_addresses(descriptor: MatrixDescriptor, rows: int, width: int) -> NDArray[np.int64]:
    """Shared-memory addresses [rows, width] of the bytes of a K-major operand: groups of eight rows, a row as long as
    the swizzle's period; with no swizzle pieces of 16 bytes.
    """
    row = np.arange(rows, dtype=np.int64)
    column = np.arange(width, dtype=np.int64)
    if descriptor.swizzle == SWIZZLE_NONE:
        column = column // PIECE * descriptor.leading + column % PIECE
    address = descriptor.start + (row >> 3) * descriptor.stride + (row & 7) * (PIECE << descriptor.swizzle)
    address = address[:, None] + column
    line = descriptor.base_offset << 7
    places: NDArray[np.int64] = address ^ swizzled(address - line, descriptor.swizzle) ^ (address - line)
    return places


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
