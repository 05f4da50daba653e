"""How sure a suspect must be: evidence in bits, right elements beside the wrong ones, candidates that survive."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mqa_ref.compare.families import Family, Sample
from mqa_ref.compare.gather import Elements
from mqa_ref.compare.recipes import right
from mqa_ref.compare.suspects import Case, _explains, _survivors, evidence, other_machines, suspects, take
from mqa_ref.flow import Flow
from mqa_ref.numerics import FP16, FP32, MACHINES, canonical_nan

FLOW = Flow.parse("fp32-fp32-fp32")
ONE, NAN, INF = 0x3F800000, 0x7FFFFFFF, 0x7F800000


def sample(found: list[int], expected: list[int] | None = None, dtype: Any = np.uint32) -> Sample:
    at = np.arange(len(found))
    right_words = [ONE] * len(found) if expected is None else expected
    return Sample(np.zeros_like(at), at, np.array(found, dtype), np.array(right_words, dtype))


@pytest.mark.parametrize(
    ("found", "expected", "bits"),
    [
        ([], [], 0.0),
        ([ONE + 1], [ONE], 1.0),
        ([ONE + 3, ONE - 7], [ONE, ONE], 5.0),
        ([ONE + 4094], [ONE], float(np.log2(4095))),
        ([ONE + 4095], [ONE], 12.0),
        ([ONE + 4096], [ONE], 12.0),
        ([ONE + (1 << 22)] * 3, [ONE] * 3, 12.0),  # found thrice, told once
        ([0, 0x80000000, ONE + 1], [ONE] * 3, 1.0),
        ([NAN], [ONE], 1.0),
        ([INF], [ONE], 1.0),
        ([ONE], [NAN], 1.0),
        ([ONE + 9], [INF], 1.0),
        ([NAN, INF, 0xFF800000], [ONE] * 3, 3.0),
    ],
)
def test_bits_of_evidence(found: list[int], expected: list[int], bits: float) -> None:
    assert evidence(sample(found, expected), FP32) == pytest.approx(bits, abs=1e-12)


def test_narrow_elements_are_worth_at_most_five_bits() -> None:
    words = [0x3C01, 0x3C00 + 30, 0x3C00 + 31, 0x3C00 + 900]
    told = evidence(sample(words, [0x3C00] * 4, np.uint16), FP16)
    assert told == pytest.approx(1 + np.log2(31) + 5 + 5)


def test_other_machines() -> None:
    def names(machine: Any) -> list[str]:
        return [model.name for model in other_machines(machine)]

    assert names("sm100") == ["sm90", "exact", "F = 24", "F = 26"]
    assert names(MACHINES["sm90"]) == ["sm100", "exact", "F = 24", "F = 26"]
    variant = replace(MACHINES["sm100"], name="F = 26", fraction_bits=26)
    assert names(variant) == ["sm90", "sm100", "exact", "F = 24"]
    bits = {model.name: model.fraction_bits for model in other_machines("exact")}
    assert bits == {"sm90": 13, "sm100": 25, "F = 24": 24, "F = 26": 26}


def test_positions_are_taken_evenly() -> None:
    assert take(np.arange(16)).tolist() == list(range(16))
    assert take(np.arange(100, 117)).tolist() == [100 + int(at) for at in np.linspace(0, 16, 16)]
    assert take(np.arange(9), 3).tolist() == [0, 4, 8]
    assert take(np.arange(3), 3).tolist() == [0, 1, 2]


def family(table: list[list[float]], possible: list[list[bool]] | None = None) -> Family:
    """Candidates whose logit of element i is ``table[candidate][i]``: one head of 1 * 1, and that for a scale."""
    scales = np.array(table, np.float32).view(np.uint32)

    def probe(i: int, chosen: np.ndarray) -> Elements:
        acc, weights = np.zeros((chosen.size, 8), np.uint32), np.zeros((chosen.size, 8), np.uint32)
        acc[:, 0] = weights[:, 0] = ONE
        return Elements(acc, weights, scales[chosen, i])

    names = [f"c{at}" for at in range(len(table))]
    return Family(names, probe, None if possible is None else np.array(possible))


def left(found: list[float], given: Family) -> list[str]:
    words = canonical_nan(np.array(found, np.float32).view(np.uint32), FP32).tolist()
    return _survivors(given, right(FLOW, "folded"), sample(words), FP32)


def test_candidates_that_give_every_element_survive() -> None:
    assert left([1.0, 2.0, 3.0], family([[1, 2, 3], [1, 2, 4], [5, 2, 3], [1, 2, 3]])) == ["c0", "c3"]
    assert left([1.0, 2.0, 3.0], family([[1, 2, 4], [5, 2, 3]])) == []
    assert left([float("nan")], family([[float("nan")], [1.0]])) == ["c0"]
    three, many = family([[1.0]] * 3), family([[1.0]] * 5 + [[2.0]])
    assert left([1.0], three) == ["c0", "c1", "c2"]
    assert left([1.0], many) == ["c0", "c1", "c2 (and 2 more that give the same bits)"]


def test_a_candidate_may_say_nothing_of_half_the_elements() -> None:
    table = [[1.0, 2.0, 9.0, 9.0], [1.0, 9.0, 9.0, 9.0], [1.0, 3.0, 9.0, 9.0]]
    some = [[True, True, False, False], [True, False, False, False], [True, True, False, False]]
    assert left([1.0, 2.0, 3.0, 4.0], family(table, some)) == ["c0"]
    whole = [*table, [1.0, 2.0, 3.0, 4.0]]
    assert left([1.0, 2.0, 3.0, 4.0], family(whole, [*some, [True] * 4])) == ["c3"]
    assert left([1.0, 2.0, 3.0, 4.0], family(table, [[True] * 4] * 3)) == []


def case(right_words: list[int]) -> Case:
    nothing: Any = None
    return Case(nothing, FLOW, "sm100", "folded", sample([]), sample(right_words), nothing, nothing)


def explains(known: float, gives: dict[str, list[int]], right_words: list[int]) -> bool:
    wrong = sample([ONE + 1, ONE + 2, NAN])

    def give(asked: Sample) -> np.ndarray:
        return np.array(gives["wrong" if asked is wrong else "right"], np.uint32)

    return _explains(give, case(right_words), wrong, known, FP32)


def test_little_evidence_needs_the_right_elements_too() -> None:
    wrong, four = [ONE + 1, ONE + 2, 0x7FC00001], [ONE, ONE + 5, ONE + 6, ONE + 7]
    assert explains(12.0, {"wrong": wrong}, four)
    assert not explains(12.0, {"wrong": [ONE + 1, ONE + 3, NAN]}, four)
    assert explains(11.9, {"wrong": wrong, "right": four}, four)
    assert not explains(11.9, {"wrong": wrong, "right": [*four[:3], ONE]}, four)
    for few in (
        four[:3],
        [*four[:3], ONE],
        [*four[:3], NAN],
        [*four[:3], INF],
        [*four[:3], 0],
        [*four[:3], 0x80000000],
    ):
        assert not explains(11.9, {"wrong": wrong, "right": few}, few)
    more = [*four, NAN, INF, 0]
    assert explains(11.9, {"wrong": wrong, "right": [*four, 0x7FC00001, INF, 0]}, more)


def test_nothing_wrong_has_no_cause() -> None:
    assert suspects(case([ONE])) == ()
