"""Counts by piece and by token, each against one loop over the elements."""

from __future__ import annotations

import numpy as np
import pytest

from mqa_ref.compare.tally import count


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 128), (5, 129), (64, 31), (65, 300), (200, 700)])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
def test_every_element_is_counted_once(rows: int, columns: int, share: float) -> None:
    mask = np.random.default_rng(rows).random((rows, columns)) < share
    tiles = (columns + 127) // 128
    pieces, tokens = np.zeros((rows, 4 * tiles), np.int64), np.zeros((2, 128), np.int64)
    for row, column in np.argwhere(mask).tolist():
        pieces[row, column // 32] += 1
        tokens[column // 128 % 2, column % 128] += 1
    told = count(mask)
    assert (told.pieces.dtype, told.tokens.dtype) == (np.dtype(np.int64), np.dtype(np.int64))
    assert np.array_equal(told.pieces, pieces)
    assert np.array_equal(told.tokens, tokens)
    assert told.all == int(mask.sum())
    assert type(told.all) is int


def test_blocks_of_rows_and_tiles_of_both_warp_groups_add_up() -> None:
    """130 rows of 520 elements: sixteen pieces of 32 and one of 8; tiles 0, 2 and 4 belong to the even warp group."""
    told = count(np.ones((130, 520), np.bool_))
    assert told.pieces.tolist() == [[32] * 16 + [8, 0, 0, 0]] * 130
    assert told.tokens.tolist() == [[3 * 130] * 8 + [2 * 130] * 120, [2 * 130] * 128]
