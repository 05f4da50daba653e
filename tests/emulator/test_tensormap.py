"""Tensor maps: every field found again in the maps that compiled host code builds for shapes that differ in one thing,
and tile loads against a plain loop over coordinates.
"""

from __future__ import annotations

import itertools
import struct
from functools import lru_cache

import numpy as np
import pytest

from mqa_ref.emulator import HostFunction, parse
from mqa_ref.emulator.tensormap import TensorMap, decode_tensor_map, swizzled, tile_rows
from mqa_ref.errors import EmulatorError
from mqa_ref.flow import Flow
from mqa_ref.kernel.compile import CompiledKernel, compile_kernel
from mqa_ref.kernel.sm100 import PagedMqaLogitsSm100

ADDRESSES = {"kv_fused": 0x7_1230_0000_0000, "b": 0x7_4560_0000_0100, "weights": 0x7_7890_0000_0200}
MAP_BYTES = 128


@lru_cache(maxsize=8)
def compiled(page: int, heads: int, next_n: int) -> tuple[CompiledKernel, HostFunction]:
    kernel = compile_kernel(
        PagedMqaLogitsSm100,
        page=page,
        num_heads=heads,
        head_dim=128,
        next_n=next_n,
        num_sms=4,
        flow=Flow.parse("fp32-fp32-fp32"),
    )
    return kernel, HostFunction(
        kernel.host_object, kernel.host_symbol, kernel.init_symbol, kernel.load_symbol
    )


def maps(page: int, heads: int, next_n: int, pages: int, batch: int) -> list[TensorMap]:
    """The tensor maps of a launch with these shapes, in the order of the kernel's parameters."""
    kernel, host = compiled(page, heads, next_n)
    sizes = {"kv_fused": {0: pages}, "b": {2: batch}, "weights": {1: batch}, "logits": {0: 4, 1: 512}}
    sizes |= {"block_table": {0: batch, 1: 3}, "context_lens": {0: batch}, "schedule_meta": {0: 5}}
    raw = []
    for layout in kernel.arguments:
        if layout.kind == "tensor":
            data = struct.pack("<Q", ADDRESSES.get(layout.name, 0x7_0000_0000_0000))
            data += b"".join(struct.pack("<i", sizes[layout.name][mode]) for mode in layout.shape_modes)
            data += bytes(-len(data) % 8) + struct.pack("<q", 512) * len(layout.stride_modes)
        else:
            data = struct.pack("<q", pages if layout.name == "num_phys_blocks" else batch)
        raw.append(data)
    program = parse(kernel.ptx)
    call = host.call(raw, program)
    assert (call.grid, call.block, call.overlaps) == ((1, 1, 4), (384, 1, 1), True)
    found = [p for p in program.parameters if p.size == MAP_BYTES]
    return [decode_tensor_map(call.parameters[p.offset : p.offset + MAP_BYTES]) for p in found]


@pytest.mark.parametrize(
    ("page", "heads", "next_n", "pages", "batch"),
    [
        (64, 64, 1, 10, 3),
        (128, 64, 1, 10, 3),
        (64, 32, 1, 10, 3),
        (64, 64, 2, 10, 3),
        (64, 64, 1, 70_000, 3),
        (64, 64, 1, 10, 9),
    ],
)
def test_fields_of_the_compiled_maps(page: int, heads: int, next_n: int, pages: int, batch: int) -> None:
    """What op.md says of each input, and nothing else, is in the map that the host code made for it."""
    n, pitch = next_n * heads, page * 132
    expected = {
        TensorMap(ADDRESSES["kv_fused"], 1, (128, page, pages), (128, pitch), (128, page, 1), 3),
        TensorMap(ADDRESSES["b"], 1, (128, n, batch), (128, n * 128), (128, n, 1), 3),
        TensorMap(ADDRESSES["weights"], 4, (n, batch), (n * 4,), (n, 1), 0),
        TensorMap(ADDRESSES["kv_fused"] + page * 128, 4, (page, pages), (pitch,), (page, 1), 0),
    }
    found = maps(page, heads, next_n, pages, batch)
    assert len(found) == 4
    assert set(found) == expected


def plain_tile(tensor: TensorMap, memory: np.ndarray, at: tuple[int, ...]) -> tuple[np.ndarray, int]:
    """The box element by element."""
    size = tensor.element_bytes
    box = np.zeros((*tensor.box[::-1], size), np.uint8)
    filled = 0
    for place in itertools.product(*[range(b) for b in tensor.box]):
        position = [p + c for p, c in zip(place, at, strict=True)]
        if all(0 <= p < s for p, s in zip(position, tensor.sizes, strict=True)):
            address = tensor.address + position[0] * size
            address += sum(p * s for p, s in zip(position[1:], tensor.strides, strict=True))
            box[place[::-1]] = memory[address : address + size]
        else:
            filled += size
    return box.reshape(-1), filled


@pytest.mark.parametrize(
    ("tensor", "corners"),
    [
        (
            TensorMap(3, 1, (20, 7, 3), (32, 320), (8, 4, 2), 0),
            [(0, 0, 0), (16, 5, 2), (-3, -2, -1), (20, 0, 0), (4, 6, 9)],
        ),
        (TensorMap(0, 4, (10, 5), (48,), (4, 3), 0), [(0, 0), (8, 4), (-2, 3), (6, -1), (100, 100)]),
        (TensorMap(5, 2, (9,), (), (4,), 0), [(0,), (7,), (-1,), (9,)]),
    ],
)
def test_tile_loads_against_a_loop(tensor: TensorMap, corners: list[tuple[int, ...]]) -> None:
    memory = np.random.default_rng(3).integers(1, 256, 4000).astype(np.uint8)
    for at in corners:
        rows = tile_rows(tensor, at)
        box = np.zeros(tensor.box_bytes, np.uint8)
        for source, target in zip(rows.source.tolist(), rows.target.tolist(), strict=True):
            box[target : target + rows.length] = memory[source : source + rows.length]
        expected, filled = plain_tile(tensor, memory, at)
        assert box.tolist() == expected.tolist(), at
        assert rows.filled == filled, at


def test_the_128_byte_swizzle_on_paper() -> None:
    """In each 1024 bytes, the 16-byte chunk c of the 128-byte line r is found at chunk c xor r."""
    addresses = np.arange(4096, 8192)
    line, chunk, byte = addresses % 1024 // 128, addresses % 128 // 16, addresses % 16
    expected = addresses // 1024 * 1024 + line * 128 + (chunk ^ line) * 16 + byte
    assert swizzled(addresses, 3).tolist() == expected.tolist()
    assert swizzled(addresses, 0).tolist() == addresses.tolist()


def test_maps_that_are_not_modelled_are_refused() -> None:
    good = struct.pack(
        "<16I", 0, 7, 2 << 4 | 3 << 13, 8, 16, 0, 0, 0, 127, 63, 9, 0, 0, 127 << 24, 63, 0
    ) + bytes(64)
    assert decode_tensor_map(good).sizes == (128, 64, 10)
    for word, value in (
        (2, 7 << 4),
        (2, 15 << 7),
        (7, 1),
        (15, 1),
        (13, 127 << 24 | 1),
    ):
        bad = good[: word * 4] + struct.pack("<I", value) + good[word * 4 + 4 :]
        with pytest.raises(EmulatorError, match="not modelled"):
            decode_tensor_map(bad)
    with pytest.raises(EmulatorError, match="128 bytes"):
        decode_tensor_map(b"short")
