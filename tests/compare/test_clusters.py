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
    "second half of every tile": (
        lambda at: at.tile_token >= 64,
        "every compared element of tokens 64 to 127 of the tile and no other",
    ),
    "first token of every split": (
        lambda at: at.column % 256 == 0,
        "every compared element of token 0 of the split and no other",
    ),
    "pages": (lambda at: at.page_id >= 10, "every compared element of pages 10 to 14 and no other"),
    "part of a row": (
        lambda at: (at.row == 2) & (at.column % 7 == 3),
        "all in row 2 (43 of its 299 compared elements)",
    ),
}


def compared(problem: Problem) -> Places:
    rows, columns = np.nonzero(problem.valid_mask())
    return locate(rows, columns, problem)


def told(problem: Problem, wrong: np.ndarray) -> tuple[str, ...]:
    """The sentences about some of the compared elements, given in row-major order."""
    valid = problem.valid_mask()
    mask = np.zeros_like(valid)
    mask[valid] = wrong
    return where(problem, valid, mask)


@pytest.mark.parametrize("name", PATTERNS)
def test_the_sentence_of_a_pattern(make_problem: MakeProblem, name: str) -> None:
    problem = make_problem([600, 300], next_n=2, num_sms=3)
    at = compared(problem)
    pattern, sentence = PATTERNS[name]
    assert sentence in told(problem, pattern(at))


def test_complete_patterns_come_first(make_problem: MakeProblem) -> None:
    problem = make_problem([600, 300], next_n=2)
    at = compared(problem)
    assert (
        told(problem, (at.tile == 1) & (at.row == 3))[0]
        == "every compared element of tile 1 of row 3 and no other"
    )


def test_one_element_is_told_by_its_place(make_problem: MakeProblem) -> None:
    problem = make_problem([600, 300])
    at = compared(problem)
    assert told(problem, np.arange(at.row.size) == 605) == (f"one element: {at.one(605)}",)


def test_everything_and_nothing(make_problem: MakeProblem) -> None:
    problem = make_problem([600, 300])
    assert told(problem, np.ones(900, np.bool_)) == ("every compared element",)
    assert told(problem, np.zeros(900, np.bool_)) == ()


def test_scattered_elements_have_no_common_place(make_problem: MakeProblem) -> None:
    wrong = np.zeros(900, np.bool_)
    wrong[::7] = True
    assert told(make_problem([600, 300], num_sms=3), wrong) == (
        "spread over 2 of 2 rows, 5 of 5 tiles, 3 of 3 CTAs and 2 of 2 warp groups, no common place",
    )


def test_what_cannot_be_otherwise_is_not_said(make_problem: MakeProblem) -> None:
    # One row, one CTA, one tile: only tokens can differ.
    problem = make_problem([100], num_sms=1)
    sentences = told(problem, compared(problem).column < 64)
    assert "every compared element except those of tokens 64 to 99 of the tile" in sentences
    assert not any(
        word in sentence for sentence in sentences for word in ("row ", "CTA", "tile 0", "warp group 0")
    )


def test_of_equally_telling_sentences_the_wider_coordinate_comes_first(make_problem: MakeProblem) -> None:
    problem = make_problem([600, 300])
    assert told(problem, compared(problem).row == 1)[:2] == (
        "every compared element of sequence 1 and no other",
        "every compared element of row 1 and no other",
    )


def test_one_place_that_holds_all_comes_before_several(make_problem: MakeProblem) -> None:
    problem = make_problem([600, 600], num_sms=1)
    at = compared(problem)
    lane = at.column % 32
    sentences = told(problem, (at.row == 0) & (lane >= 3) & (lane <= 9) & (at.column % 5 == 1))
    assert sentences[0].startswith("all in sequence 0 (")
    assert sentences[1].startswith("all in row 0 (")
    assert sentences.index("all in lanes 3 to 9 of the warps") > 1


def test_a_few_places_that_hold_some_are_not_told(make_problem: MakeProblem) -> None:
    problem = make_problem([600, 600], num_sms=1)
    at = compared(problem)
    for slots in ([1, 2, 3, 4], [0, 3, 5, 9]):
        sentences = told(problem, np.isin(at.page_slot, slots) & (at.column % 7 == 1))
        assert not any("page slot" in sentence for sentence in sentences)
    # More of them that follow each other are.
    sentences = told(problem, np.isin(at.page_slot, [1, 2, 3, 4, 5]) & (at.column % 7 == 1))
    assert "all in page slots 1 to 5" in sentences


def test_up_to_four_are_listed(make_problem: MakeProblem) -> None:
    problem = make_problem([130] * 6)
    at = compared(problem)
    for rows, words in (([0, 2, 5], "0, 2 and 5"), ([0, 2, 3, 5], "0, 2, 3 and 5")):
        assert f"every compared element of rows {words} and no other" in told(problem, np.isin(at.row, rows))
    pairs = [(0, 1), (1, 0), (3, 0), (4, 1), (5, 0)]
    for count in (3, 4, 5):
        wrong = np.zeros(at.row.size, np.bool_)
        for row, tile in pairs[:count]:
            wrong |= (at.row == row) & (at.tile == tile)
        listed = [f"tile {tile} of row {row}" for row, tile in pairs[:count]]
        sentence = f"every compared element of {', '.join(listed[:-1])} and {listed[-1]} and no other"
        sentences = told(problem, wrong)
        assert (sentence in sentences) == (count <= 4)
        assert any(listed[0] in one for one in sentences) == (count <= 4)


def test_the_last_page_is_a_page_like_others(make_problem: MakeProblem) -> None:
    problem = make_problem([600, 600])
    at = compared(problem)
    assert "every compared element of page slot 9 and no other" in told(problem, at.page_slot == 9)
    assert "every compared element of page 9 and no other" in told(
        problem, (at.page_slot == 9) & (at.row == 0)
    )


def test_what_there_is_one_of_is_not_spread_over(make_problem: MakeProblem) -> None:
    wrong = np.zeros(600, np.bool_)
    wrong[::7] = True
    assert told(make_problem([600], num_sms=1), wrong) == (
        "spread over 5 of 5 tiles and 2 of 2 warp groups, no common place",
    )
    assert told(make_problem([100], num_sms=1), wrong[:100]) == ("no common place",)
