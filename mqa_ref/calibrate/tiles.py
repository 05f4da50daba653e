"""Vectors dealt out to tiles: vector i of a tile is row i of the one operand, row i of the other, and its result stands
on the diagonal. What stands beside the diagonal are products of different vectors: they are predicted too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mqa_ref.calibrate.programs import N, TileProgram
from mqa_ref.calibrate.vectors import Vector
from mqa_ref.numerics import E4M3FN
from mqa_ref.numerics.machines import STEP_K
from mqa_ref.numerics.samples import Source

Codes = NDArray[np.uint8]
Words = NDArray[np.uint32]


@dataclass(frozen=True)
class Tiles:
    """``a`` [tiles, M, 32] and ``b`` [tiles, N, 32] e4m3fn codes, ``c`` [tiles, M, N] accumulator codes."""

    a: Codes
    b: Codes
    c: Words


Device = Callable[[Tiles, str], Words]
"""Runs tiles for an accumulator format: one step from the accumulators, codes [tiles, M, N] back."""


def deal(vectors: Sequence[Vector], rows: int) -> Tiles:
    """Tiles of ``rows`` x N with the vectors on their diagonals, N a tile; free places hold zeros."""
    count = -(-len(vectors) // N)
    a = np.zeros((count, rows, STEP_K), np.uint8)
    b = np.zeros((count, N, STEP_K), np.uint8)
    c = np.zeros((count, rows, N), np.uint32)
    for number, vector in enumerate(vectors):
        tile, place = divmod(number, N)
        a[tile, place], b[tile, place], c[tile, place, place] = vector.a, vector.b, vector.c
    return Tiles(a, b, c)


def diagonals(results: Words, count: int) -> list[int]:
    """The results of ``count`` vectors."""
    found: list[int] = results[:, np.arange(N), np.arange(N)].reshape(-1)[:count].tolist()
    return found


def random_tiles(count: int, rows: int, acc: str, seed: int) -> Tiles:
    """Tiles of uniform codes without NaN, and accumulators of exponents about those of the products."""
    source = Source(seed)

    def codes(*shape: int) -> Codes:
        drawn = source.uniform(E4M3FN, int(np.prod(shape))).astype(np.uint8).reshape(shape)
        return np.where(drawn & 0x7F == 0x7F, drawn ^ 1, drawn).astype(np.uint8)

    words = source.words(count * rows * N).reshape(count, rows, N)
    fraction, bias, bits = (23, 127, 32) if acc == "fp32" else (10, 15, 16)
    exponent = np.uint64(bias - 10) + (words >> np.uint64(40)) % np.uint64(24)
    c = (words & np.uint64((1 << fraction) - 1)) | exponent << np.uint64(fraction)
    c |= (words >> np.uint64(63)) << np.uint64(bits - 1)
    return Tiles(codes(count, rows, STEP_K), codes(count, N, STEP_K), c.astype(np.uint32))


def images(tiles: Tiles, program: TileProgram) -> tuple[Codes, Codes, NDArray[np.uint8]]:
    """The three arrays that a program reads, as bytes."""
    a = np.concatenate([program.image_a(tile) for tile in tiles.a])
    b = np.concatenate([program.image_b(tile) for tile in tiles.b])
    words = tiles.c.astype(np.uint32 if program.word_bytes == 4 else np.uint16)
    return a, b, np.ascontiguousarray(words).view(np.uint8).reshape(-1)


def results(raw: NDArray[np.uint8], tiles: Tiles, program: TileProgram, acc: str) -> Words:
    """Codes [tiles, M, N] of the bytes that a program wrote."""
    words = raw.view(np.uint32 if program.word_bytes == 4 else np.uint16).reshape(tiles.c.shape)
    # A 16-bit accumulator in a 32-bit column is its low half; nothing is promised about the high one.
    return words.astype(np.uint32) & np.uint32(0xFFFF if acc == "fp16" else 0xFFFFFFFF)
