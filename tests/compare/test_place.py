"""Coordinates of single elements, worked out on paper from op.md's definitions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mqa_ref.compare.place import Place, Places, locate, owners
from mqa_ref.problem import Problem

MakeProblem = Callable[..., Problem]


def test_the_place_of_one_element(make_problem: MakeProblem) -> None:
    # 600 tokens: three splits, 300: two; five splits on two CTAs forward: CTA 0 takes three, CTA 1 two.
    problem = make_problem([600, 300], next_n=2, num_sms=2)
    at = locate(np.array([3, 0]), np.array([299, 130]), problem)
    assert at.one(0) == Place(
        row=3,
        column=299,
        b=1,
        t=1,
        tile=2,
        split=1,
        page_slot=4,
        page_id=14,
        page_token=43,
        cta=1,
        warp_group=0,
    )
    assert at.one(1) == Place(
        row=0,
        column=130,
        b=0,
        t=0,
        tile=1,
        split=0,
        page_slot=2,
        page_id=2,
        page_token=2,
        cta=0,
        warp_group=1,
    )
    assert at.tile_token.tolist() == [43, 2]
    assert at.one(0).as_dict() == {
        "row": 3,
        "column": 299,
        "b": 1,
        "t": 1,
        "tile": 2,
        "split": 1,
        "page_slot": 4,
        "page_id": 14,
        "page_token": 43,
        "cta": 1,
        "warp_group": 0,
    }
    assert {getattr(at, name).dtype for name in Places.__dataclass_fields__} == {np.dtype(np.int64)}


def test_owners_follow_the_schedule(make_problem: MakeProblem) -> None:
    problem = make_problem([600, 0, 300], num_sms=3)
    assert owners(problem).tolist() == [[0, 0, 1], [-1, -1, -1], [1, 2, -1]]
    assert owners(make_problem([256, 0])).tolist() == [[0], [-1]]
    assert owners(make_problem([0])).tolist() == [[-1]]


def test_a_place_in_words(make_problem: MakeProblem) -> None:
    words = str(locate(np.array([0]), np.array([64]), make_problem([65])).one(0))
    assert words == (
        "row 0 column 64 (b 0, t 0, tile 0, split 0, page slot 1 = page 1 token 0, CTA 0, warp group 0)"
    )


@pytest.mark.parametrize("page", [32, 64, 128])
def test_page_slot_and_token_make_up_the_column(make_problem: MakeProblem, page: int) -> None:
    columns = np.arange(500)
    at = locate(np.zeros(500, np.int64), columns, make_problem([500], page=page))
    assert (at.page_slot * page + at.page_token == columns).all()
    assert at.page_id.max() == -(-500 // page) - 1
