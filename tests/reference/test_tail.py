"""Columns behind the valid ones, from pages whose logits are known by hand: page p holds the number p + 1."""

from __future__ import annotations

import numpy as np
import pytest

from mqa_ref.errors import InputError
from mqa_ref.flow import Flow
from mqa_ref.problem import Problem
from mqa_ref.reference.tail import TAILS, tail_logits

FP32 = Flow.parse("fp32-fp32-fp32")
PAGE, PAGES = 64, 6


def problem(lengths: list[int], table: list[list[int]], next_n: int = 1) -> Problem:
    q = np.zeros((len(lengths), next_n, 16, 128), np.uint8)
    q[..., 0, 0] = 0x38
    k = np.zeros((PAGES, PAGE, 128), np.uint8)
    k[:, :, 0] = 0x38
    scales = np.repeat(np.arange(1, PAGES + 1), PAGE).reshape(PAGES, PAGE).astype("<f4")
    pool = np.concatenate([k.reshape(PAGES, -1), scales.view(np.uint8)], axis=1)
    weights = np.ones((len(lengths) * next_n, 16), np.float32)
    entries = np.array(table, np.int32)
    return Problem(q, pool, weights, entries, np.array(lengths, np.int32), page=PAGE, num_sms=1)


def numbers(one: Problem, rule: str) -> tuple[list[list[float]], list[list[bool]]]:
    """At the first column of each page."""
    bits, known = tail_logits(one, FP32, rule)
    at = slice(PAGE - 1, None, PAGE)
    return bits.view(np.float32)[:, at].tolist(), known[:, at].tolist()


# Length 65 of pages 2 and 4: the last token of page 4 is none of the sequence's; the entries behind name 5 and 3. The
# first tile ends at column 128, so "entries" reads page 0 in the second one. Logits are page numbers plus 1.
ONE_TILE = {"zeros": [0.0, 5.0, 0.0, 0.0], "page_0": [0.0, 5.0, 1.0, 1.0], "entries": [0.0, 5.0, 1.0, 1.0]}
# Length 30 of page 2: behind it lie the entries 4, 5 and 3, the first of them in the tile of the length.
IN_TILE = {"zeros": [3.0, 0.0, 0.0, 0.0], "page_0": [3.0, 1.0, 1.0, 1.0], "entries": [3.0, 5.0, 1.0, 1.0]}


@pytest.mark.parametrize("rule", TAILS)
def test_which_page_is_read(rule: str) -> None:
    found, known = numbers(problem([65], [[2, 4, 5, 3]]), rule)
    assert (found, known) == ([ONE_TILE[rule]], [[False, True, True, True]])
    found, known = numbers(problem([30], [[2, 4, 5, 3]]), rule)
    assert (found, known) == ([IN_TILE[rule]], [[True] * 4])


def test_an_entry_that_is_no_page_brings_zeros_and_one_behind_the_row_is_not_known() -> None:
    assert numbers(problem([30], [[2, -7]]), "entries") == ([[3.0, 0.0, 1.0, 1.0]], [[True] * 4])
    assert numbers(problem([30], [[2, 99]]), "entries")[0] == [[3.0, 0.0, 1.0, 1.0]]
    assert numbers(problem([30], [[2]]), "entries") == (
        [[3.0, 0.0, 1.0, 1.0]],
        [[True, False, True, True]],
    )


def test_only_the_last_split_of_sequences_with_tokens() -> None:
    bits, known = tail_logits(problem([300, 0], [[2, 4, 5, 3, 1], [0] * 5]), FP32, "page_0")
    assert bits.shape == known.shape == (2, 512)
    assert known[0].tolist() == [False] * 300 + [True] * 212
    assert set(bits[0, 300:320].view(np.float32)) == {2.0}  # the rest of page 1
    assert set(bits[0, 320:].view(np.float32)) == {1.0}
    assert not known[1].any()
    assert not tail_logits(problem([0], [[0]]), FP32, "zeros")[1].any()


def test_every_query_token_has_its_own_end() -> None:
    bits, known = tail_logits(problem([70, 256], [[2, 4, 5, 3], [1, 0, 2, 5]], next_n=3), FP32, "page_0")
    assert [row.argmax() for row in known] == [68, 69, 70, 254, 255, 0]
    assert known.sum(axis=1).tolist() == [188, 187, 186, 2, 1, 0]
    assert set(bits[3][known[3]].view(np.float32)) == {6.0}


def test_a_rule_that_is_none() -> None:
    with pytest.raises(InputError, match="zeros, page_0, entries"):
        tail_logits(problem([1], [[0]]), FP32, "page 0")
