"""The 128-byte tensor map (TMA descriptor) that the host code builds, decoded, and the tile loads it
describes.

NVIDIA documents the arguments of cuTensorMapEncodeTiled but not the descriptor's bits. The places of the
fields were derived by compiling shapes that differ in one thing (tests/emulator/test_tensormap.py repeats
that), standing: observed with nvidia-cutlass-dsl 4.8.1. Words are 32-bit:

    0, 1    global address
    2       bits 4-6 rank - 1, bits 7-10 element type (CUtensorMapDataType), bits 13-14 swizzle (CUtensorMapSwizzle)
    3 .. 6  strides of dimensions 1 .. 4 in units of 16 bytes
    8 .. 12 sizes of dimensions 0 .. 4, minus one
    13, 14, 15: the top byte of word 13 and the four bytes of word 14 are the box sizes of dimensions 0 .. 4, minus one

Words 16 to 31 are not part of the map (whatever was on the host's stack), bits 18 and 21 of word 2 do not
matter here.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mqa_ref.errors import EmulatorError

ELEMENT_BYTES = {0: 1, 1: 2, 2: 4, 3: 4, 4: 8, 5: 8, 6: 2, 7: 4, 8: 8, 9: 2}
"""CUtensorMapDataType -> bytes (CUDA driver API, cuda.h): uint8, uint16, uint32, int32, uint64, int64, fp16,
fp32, fp64, bf16.
"""
SWIZZLE_NONE, SWIZZLE_32, SWIZZLE_64, SWIZZLE_128 = 0, 1, 2, 3
"""CUtensorMapSwizzle: none, or the bytes after which the pattern of 16-byte pieces repeats along dimension 0."""
UINT8, FLOAT32 = 0, 7


@dataclass(frozen=True)
class TensorMap:
    """Dimension 0 is the contiguous one. ``strides`` are bytes of dimensions 1 .. rank-1."""

    address: int
    element_bytes: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int

    @property
    def box_bytes(self) -> int:
        """Bytes one tile load writes, whether in bounds or filled."""
        return int(np.prod(self.box)) * self.element_bytes


def decode_tensor_map(raw: bytes) -> TensorMap:
    """Decode 128 bytes. Raises EmulatorError for a form that is not modelled."""
    if len(raw) < 64:
        raise EmulatorError(f"a tensor map has 128 bytes, got {len(raw)}")
    words = struct.unpack("<16I", raw[:64])
    rank = (words[2] >> 4 & 7) + 1
    kind = words[2] >> 7 & 15
    swizzle = words[2] >> 13 & 3
    if kind not in ELEMENT_BYTES or rank > 5:
        raise EmulatorError(f"tensor map: element type {kind} or rank {rank} is not modelled")
    if words[7] or words[13] & 0xFFFFFF or words[15]:
        raise EmulatorError("tensor map: element strides, interleave or long strides are not modelled")
    boxes = raw[13 * 4 + 3 : 13 * 4 + 8]
    return TensorMap(
        address=words[0] | words[1] << 32,
        element_bytes=ELEMENT_BYTES[kind],
        sizes=tuple(words[8 + d] + 1 for d in range(rank)),
        strides=tuple(words[3 + d] * 16 for d in range(rank - 1)),
        box=tuple(boxes[d] + 1 for d in range(rank)),
        swizzle=swizzle,
    )


def encode_tensor_map(tensor: TensorMap, kind: int) -> bytes:
    """The 128 bytes that ``decode_tensor_map`` reads; ``kind``: CUtensorMapDataType. Only its fields are set, so these
    are not the bytes of a driver, which a GPU wants."""
    rank = len(tensor.sizes)
    words = [0] * 32
    words[0], words[1] = tensor.address & 0xFFFFFFFF, tensor.address >> 32
    words[2] = rank - 1 << 4 | kind << 7 | tensor.swizzle << 13
    for dimension, stride in enumerate(tensor.strides):
        words[3 + dimension] = stride // 16
    for dimension, size in enumerate(tensor.sizes):
        words[8 + dimension] = size - 1
    raw = bytearray(struct.pack("<32I", *words))
    for dimension, box in enumerate(tensor.box):
        raw[13 * 4 + 3 + dimension] = box - 1
    return bytes(raw)


def swizzled(address: NDArray[np.int64], mode: int) -> NDArray[np.int64]:
    """Shared-memory address after the swizzle: the 128-byte mode XORs address bits 4-6 with bits 7-9, the 64-byte mode
    bits 4-5 with 7-8, the 32-byte mode bit 4 with bit 7 (PTX ISA, "Swizzling modes").
    """
    if mode == SWIZZLE_NONE:
        return address
    return address ^ ((address >> 7 & (1 << mode) - 1) << 4)


@dataclass(frozen=True)
class Rows:
    """One tile as runs along dimension 0: global address, byte offset in the box and length of each run that
    is in bounds.
    """

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    length: int
    filled: int


def tile_rows(tensor: TensorMap, coordinates: tuple[int, ...]) -> Rows:
    """The in-bounds part of the tile at ``coordinates`` (elements, dimension 0 first); the rest is filled
    with zeros.
    """
    first = max(0, -coordinates[0])
    last = min(tensor.box[0], tensor.sizes[0] - coordinates[0])
    run = max(0, last - first) * tensor.element_bytes
    outer = [np.arange(box, dtype=np.int64) for box in tensor.box[1:]]
    grid = np.meshgrid(*outer[::-1], indexing="ij")[::-1] if outer else []
    inside = np.ones(grid[0].shape if grid else (1,), np.bool_)
    source = np.full(inside.shape, tensor.address + (coordinates[0] + first) * tensor.element_bytes, np.int64)
    target = np.full(inside.shape, first * tensor.element_bytes, np.int64)
    pitch = tensor.box[0] * tensor.element_bytes
    for dimension, place in enumerate(grid, start=1):
        position = place + coordinates[dimension]
        inside &= (position >= 0) & (position < tensor.sizes[dimension])
        source += position * tensor.strides[dimension - 1]
        target += place * pitch
        pitch *= tensor.box[dimension]
    keep = inside.ravel() & (run > 0)
    filled = tensor.box_bytes - int(keep.sum()) * run
    return Rows(source.ravel()[keep], target.ravel()[keep], run, filled)
