"""Tensor maps that this package makes itself for kernels without host code."""

from __future__ import annotations

import pytest

from mqa_ref.emulator import TensorMap
from mqa_ref.emulator.tensormap import (
    FLOAT32,
    SWIZZLE_128,
    SWIZZLE_NONE,
    UINT8,
    decode_tensor_map,
    encode_tensor_map,
)

MAPS = [
    (TensorMap(0x7_0000_0000_1230, 1, (128, 64, 9), (128, 8448), (128, 64, 1), SWIZZLE_128), UINT8),
    (TensorMap(0x10, 4, (64, 1 << 20), (8448,), (64, 1), SWIZZLE_NONE), FLOAT32),
    (TensorMap(1 << 47, 1, (256,), (), (256,), SWIZZLE_NONE), UINT8),
    (TensorMap(0, 1, (1, 2, 3, 4, 5), (16, 32, 48, 64), (1, 2, 3, 4, 256), SWIZZLE_NONE), UINT8),
]


@pytest.mark.parametrize(("tensor", "kind"), MAPS)
def test_the_decoder_reads_it(tensor: TensorMap, kind: int) -> None:
    """The decoder's places of the fields were derived from maps that the CUDA driver's encoder made."""
    raw = encode_tensor_map(tensor, kind)
    assert len(raw) == 128
    assert decode_tensor_map(raw) == tensor
