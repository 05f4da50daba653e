"""How many elements were compared and how many are wrong, by row and piece of 32 tokens and by the token's number
within its tile: small tables that every sentence about the place is read from, however large the output is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mqa_ref.compare.bits import Mask
from mqa_ref.compare.place import Index
from mqa_ref.schedule import TILE_TOKENS

PIECE = 32
"""Tokens of a piece: the smallest page, and a warp's share of a tile."""
_ROWS = 64


@dataclass(frozen=True)
class Counts:
    """Numbers of elements. ``pieces`` [rows, columns / 32, rounded up to whole tiles]: by row and piece.
    ``tokens`` [2, 128]: by warp group (tiles of even and odd number) and the token's number within its tile."""

    pieces: Index
    tokens: Index

    @property
    def all(self) -> int:
        """All of them."""
        return int(self.pieces.sum())


def count(mask: Mask) -> Counts:
    """The numbers of the elements that ``mask`` (bool [rows, columns]) selects."""
    rows, columns = mask.shape
    tiles = -(-columns // TILE_TOKENS)
    pieces = np.zeros((rows, tiles * (TILE_TOKENS // PIECE)), np.int64)
    tokens = np.zeros((2, TILE_TOKENS), np.int64)
    for first in range(0, rows, _ROWS):
        part = mask[first : first + _ROWS]
        block: NDArray[np.uint8] = np.zeros((len(part), tiles * TILE_TOKENS), np.uint8)
        block[:, :columns] = part
        lanes = block.reshape(len(part), -1, PIECE)
        # Eight bytes at a time: sums of ones stay below 256 within a piece.
        words = lanes.view(np.uint64).sum(axis=2)
        pieces[first : first + len(part)] = words.view(np.uint8).reshape(*words.shape, 8).sum(axis=2)
        by_tile = block.reshape(len(part), tiles, TILE_TOKENS)
        for group in range(2):
            tokens[group] += by_tile[:, group::2].sum(axis=(0, 1), dtype=np.uint32)
    return Counts(pieces, tokens)
