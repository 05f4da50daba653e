"""Tile loads under every name that the kernels spell, executed, against a plain loop over coordinates."""

from __future__ import annotations

import itertools
import struct

import numpy as np
import pytest

from mqa_ref import emulator
from mqa_ref.golden.silicon import PROGRAMS, load, output_bytes
from mqa_ref.golden.silicon.bodies import Tile
from mqa_ref.golden.silicon.programs import Program
from mqa_ref.verification.words import words

_STEM = "cp.async.bulk.tensor"
_TAIL = "mbarrier::complete_tx::bytes.L2::cache_hint"
STARTS = {
    "tile-hinted-3d": ((0, 0, 0), (0, 12, 2), (0, -5, 1)),
    "tile-hinted-2d": ((0, 0), (8, 6), (-4, -1)),
    "tile-cta-3d": ((0, 2, 0), (0, 9, 2), (0, -3, 1)),
    "tile-cta-2d": ((0, 1), (4, 6), (-8, -1)),
}
SPELLED = {
    "tile-hinted-3d": f"{_STEM}.3d.shared::cluster.global.{_TAIL}",
    "tile-hinted-2d": f"{_STEM}.2d.shared::cluster.global.{_TAIL}",
    "tile-cta-3d": f"{_STEM}.3d.shared::cta.global.tile.{_TAIL}",
    "tile-cta-2d": f"{_STEM}.2d.shared::cta.global.tile.{_TAIL}",
}
AROUND = ("cvta.param.u64", "fence.mbarrier_init.release.cluster")
"""What the same programs need besides: the address of the map, and a barrier that the copies see."""
NAMES = frozenset((*SPELLED.values(), *AROUND))


def box(tile: Tile, data: bytes, start: tuple[int, ...]) -> bytes:
    """The bytes of one box in shared memory that begins at a multiple of 1024: what is out of range is zero, and in
    128-byte rows the 16-byte pieces are exchanged by the row's number modulo 8."""
    size = tile.element_bytes
    out = bytearray(size * int(np.prod(tile.box)))
    # The first dimension is the fastest, so it is the last of the product.
    for at, place in enumerate(itertools.product(*(range(extent) for extent in reversed(tile.box)))):
        where = [first + one for first, one in zip(start, reversed(place), strict=True)]
        target = at * size
        if tile.swizzle == 3:
            target ^= (target >> 7 & 7) << 4
        if all(0 <= one < extent for one, extent in zip(where, tile.sizes, strict=True)):
            pitches = (size, *tile.strides)
            source = sum(one * pitch for one, pitch in zip(where, pitches, strict=True))
            out[target : target + size] = data[source : source + size]
    return bytes(out)


@pytest.mark.parametrize("name", STARTS)
@pytest.mark.parametrize("order", ["eager", "lazy"])
def test_tiles(name: str, order: str) -> None:
    (program,) = [one for one in PROGRAMS if one.name == name]
    assert isinstance(program, Program)
    tile = program.tile
    assert tile is not None
    assert {SPELLED[name], *AROUND} <= {one.opcode for one in emulator.parse(program.ptx).instructions}
    data = words(f"silicon/program/{name}", program.words).tobytes()
    memory = emulator.GlobalMemory()
    source = memory.add("in", np.frombuffer(data, np.uint8).copy(), writable=False)
    out = np.zeros(output_bytes(program), np.uint8)
    target = memory.add("out", out, writable=True)
    raw = struct.pack("<Q", source.address) + load("programs").tensors[f"{name}.map"].tobytes()[8:]
    parameters = struct.pack("<QQ", source.address, target.address) + bytes(48) + raw
    call = emulator.LaunchCall((1, 1, 1), (program.threads, 1, 1), program.shared, parameters)
    code = emulator.decode(emulator.parse(program.ptx))
    outcome = emulator.run_grid(code, call, memory, order=order, budget=100_000)
    assert {finding.kind for finding in outcome.findings} == {"tma_out_of_range_fill"}
    boxes = [box(tile, data, start) for start in STARTS[name]]
    pitch = -(-len(boxes[0]) // 1024) * 1024
    expected = b"".join(each.ljust(pitch, b"\0") for each in boxes)
    assert out.tobytes() == expected.ljust(len(out), b"\0")
