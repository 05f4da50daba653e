"""Which rows may have been taken for the right one: all of few, those near the first of many."""

from __future__ import annotations

import re

import numpy as np
import pytest

from mqa_ref.compare.families import other_rows
from mqa_ref.compare.gather import Source
from mqa_ref.problem import Problem


def many_rows() -> Source:
    return Source(
        Problem(
            np.zeros((20, 1, 8, 32), np.uint8),
            np.zeros((1, 32 * 36), np.uint8),
            np.zeros((20, 8), np.float32),
            np.zeros((20, 1), np.int32),
            np.full(20, 4, np.int32),
            page=32,
            num_sms=1,
        ),
        "fp32",
        "sm100",
    )


@pytest.mark.parametrize(
    ("most", "first", "told"),
    [
        (160, 10, range(20)),
        (6, 10, range(7, 13)),
        (7, 10, range(7, 14)),
        (6, 1, range(4)),
        (6, 18, range(15, 20)),
        (1, 10, range(10, 11)),
        (0, 10, range(10, 11)),
        (20, 10, range(20)),
        (19, 10, range(1, 20)),
        (20, 3, range(20)),
    ],
)
def test_of_many_rows_those_near_the_first_are_tried(
    monkeypatch: pytest.MonkeyPatch, most: int, first: int, told: range
) -> None:
    """``most`` rows of 8 heads, from ``most`` // 2 before the row of the first element, as far as there are rows."""
    monkeypatch.setattr("mqa_ref.compare.families._MOST_PRODUCTS", 8 * most)
    names, rows, possible = other_rows(many_rows(), np.array([first, 5]))
    found = ((re.search(r"row (\d+)\)?$", name), at) for at, name in enumerate(names))
    numbers = {int(match[1]): at for match, at in found if match}
    assert sorted(numbers) == list(told)
    for row, at in numbers.items():
        assert rows[at].tolist() == [row, row]
    assert rows.min() >= 0
    assert rows.max() < 20
    assert possible.shape == rows.shape


def test_the_right_row_is_no_other_row() -> None:
    names, rows, possible = other_rows(many_rows(), np.array([0, 0]))
    assert "row 0" not in names
    assert "the row with the number of the sequence" not in names
    assert names[:2] == ["the row before", "the row after (row 1)"]
    assert possible[0].tolist() == [False, False]
    assert possible[1:].all()
    assert (rows != 0).any(axis=1).tolist() == [False] + [True] * 19


def test_no_row_is_below_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers are kept within 0..19, also those of rows that do not exist."""
    monkeypatch.setattr("mqa_ref.compare.families._MOST_PRODUCTS", 8 * 6)
    names, rows, possible = other_rows(many_rows(), np.array([0, 19]))
    at = names.index("the row before")
    assert rows[at].tolist() == [0, 18]
    assert possible[at].tolist() == [False, True]
    assert "row -1" not in "".join(names)
