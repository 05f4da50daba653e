"""Planted patterns of wrong elements, and the sentence that names each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mqa_ref.compare.clusters import where
from mqa_ref.compare.place import Places, locate
from mqa_ref.problem import Problem

MakeProblem = Callable[..., Problem]
Pattern = Callable[[Places], np.ndarray]

PATTERNS: dict[str, tuple[Pattern, str]] = {
    "row": (lambda at: at.row == 2, "every compared element of row 2 and no other"),
    "rows": (lambda at: (at.row == 1) | (at.row == 3), "every compared element of rows 1 and 3 and no other"),
    "sequence": (lambda at: at.b == 1, "every compared element of sequence 1 and no other"),
    "tile": (lambda at: at.tile == 3, "every compared element of tile 3 and no other"),
    "tile of a row": (
        lambda at: (at.tile == 1) & (at.row == 3),
        "every compared element of tile 1 of row 3 and no other",
    ),
    "cta": (lambda at: at.cta == 1, "every compared element of CTA 1 and no other"),
    "warp group": (lambda at: at.tile % 2 == 1, "every compared element of warp group 1 and no other"),
    "next_n": (lambda at: at.t == 1, "every compared element of next_n position 1 and no other"),
    "page": (lambda at: at.page_id == 11, "every compared element of page 11 and no other"),
    "only token 0 of a page": (
        lambda at: at.page_token != 0,
        "every compared element except those of token 0 of the page",
    ),
    "lane": (lambda at: at.column % 32 == 5, "every compared element of lane 5 of the warps and no other"),
    "part of a row": (
        lambda at: (at.row == 2) & (at.column % 7 == 3),
        "all in row 2 (43 of its 299 compared elements)",
    ),
}


def compared(problem: Problem) -> Places:
    rows, columns = np.nonzero(problem.valid_mask())
    return locate(rows, columns, problem)


@pytest.mark.parametrize("name", PATTERNS)
def test_the_sentence_of_a_pattern(make_problem: MakeProblem, name: str) -> None:
    at = compared(make_problem([600, 300], next_n=2, num_sms=3))
    pattern, sentence = PATTERNS[name]
    assert sentence in where(at, pattern(at))


def test_complete_patterns_come_first(make_problem: MakeProblem) -> None:
    at = compared(make_problem([600, 300], next_n=2))
    assert (
        where(at, (at.tile == 1) & (at.row == 3))[0]
        == "every compared element of tile 1 of row 3 and no other"
    )


def test_one_element_is_told_by_its_place(make_problem: MakeProblem) -> None:
    at = compared(make_problem([600, 300]))
    assert where(at, np.arange(at.row.size) == 5) == (f"one element: {at.one(5)}",)


def test_everything_and_nothing(make_problem: MakeProblem) -> None:
    at = compared(make_problem([600, 300]))
    assert where(at, np.ones(900, np.bool_)) == ("every compared element",)
    assert where(at, np.zeros(900, np.bool_)) == ()


def test_scattered_elements_have_no_common_place(make_problem: MakeProblem) -> None:
    at = compared(make_problem([600, 300], num_sms=3))
    wrong = np.zeros(900, np.bool_)
    wrong[::7] = True
    assert where(at, wrong) == (
        "spread over 2 of 2 rows, 5 of 5 tiles, 3 of 3 CTAs and 2 of 2 warp groups, no common place",
    )


def test_what_cannot_be_otherwise_is_not_said(make_problem: MakeProblem) -> None:
    # One row, one CTA, one tile: only tokens can differ.
    at = compared(make_problem([100], num_sms=1))
    told = where(at, at.column < 64)
    assert told
    assert not any(
        word in sentence for sentence in told for word in ("row ", "CTA", "tile 0", "warp group 0")
    )
