"""Logits worked out on paper: the field's known bugs, the order of the epilogue, the machines where they part."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from mqa_ref.flow import Flow
from mqa_ref.numerics import MACHINES
from mqa_ref.reference import GENERATIONS, Generation, reference_logits

if TYPE_CHECKING:
    from numpy.typing import NDArray

FLOW = Flow.parse("fp32-fp32-fp32")
ONE, MINUS_ONE, TWO, THREE, MAX448, TINY, NAN = 0x38, 0xB8, 0x40, 0x44, 0x7E, 0x01, 0x7F  # TINY is 2**-9
INF, QNAN, FLT_MAX = 0x7F800000, 0x7FFFFFFF, float(np.finfo(np.float32).max)


def codes(*rows: dict[int, int], dim: int = 32) -> NDArray[np.uint8]:
    """Vectors of zeros but for {place: code}."""
    out = np.zeros((len(rows), dim), np.uint8)
    for row, places in zip(out, rows, strict=True):
        for place, code in places.items():
            row[place] = code
    return out


def heads(*first: int, count: int = 8) -> NDArray[np.uint8]:
    """q [1, 1, count, 32]: head h holds one code, at place 0; heads past those given are zero."""
    return codes(*({0: code} for code in (*first, *[0] * (count - len(first)))))[None, None]


def weights(*first: float, count: int = 8) -> NDArray[np.float32]:
    return np.array([[*first, *[1.0] * (count - len(first))]], np.float32)


def bits(problem: Any, machine: Any = "sm100", generation: Generation = "folded") -> list[list[int]]:
    found, mask = reference_logits(problem, FLOW, machine, generation=generation)
    assert found.dtype == np.uint32
    assert np.array_equal(mask, problem.valid_mask())
    result: list[list[int]] = found.tolist()
    return result


def values(problem: Any, generation: Generation = "folded") -> list[list[float]]:
    rows = np.array(bits(problem, generation=generation), np.uint32).view(np.float32)
    result: list[list[float]] = rows.tolist()
    return result


@pytest.mark.parametrize("generation", GENERATIONS)
def test_relu_comes_before_the_sum(make: Any, generation: Generation) -> None:
    """peers.md, bug 10: scores 1 and -1, weights 1 and 1 give 1, not relu(0) = 0."""
    problem = make(heads(ONE, MINUS_ONE), [codes({0: ONE})])
    assert values(problem, generation) == [[1.0]]


@pytest.mark.parametrize("page", [32, 64, 128])
def test_a_distinct_scale_for_each_token(make: Any, page: int) -> None:
    """peers.md, bugs 14 and 15: scales lie behind all codes of a page; every token of every page is read."""
    scales = np.arange(1, 301, dtype=np.float32)
    problem = make(heads(ONE), [codes(*[{0: ONE}] * 300)], scales=[scales], page=page)
    assert values(problem) == [scales.tolist()]


@pytest.mark.parametrize("tokens", [32, 64, 1024])
def test_no_entry_past_the_last_token_is_read(make: Any, tokens: int) -> None:
    """Whole pages, and the entry after them names a page no pool has."""
    problem = make(heads(ONE), [codes(*[{0: ONE}] * tokens)], spare=0)
    assert problem.block_table.tolist()[0][-1] == 2**31 - 1
    assert values(problem) == [[1.0] * tokens]


def test_a_distinct_key_for_each_token(make: Any) -> None:
    """Token p holds 1 at place p % 32 and q holds code 8 + place there: 2**-6 * (1 + place / 8), and so on."""
    q = np.zeros((1, 1, 8, 32), np.uint8)
    q[0, 0, 0] = 8 + np.arange(32)
    keys = codes(*({p % 32: ONE} for p in range(100)))
    expected = [2.0 ** (p % 32 // 8 - 6) * (1 + p % 8 / 8) for p in range(100)]
    assert values(make(q, [keys])) == [expected]


def test_the_folded_half_overflows(make: Any) -> None:
    """peers.md, bug 11: dot 1, weight FLT_MAX, scale 0.5. 2 * FLT_MAX is inf; FLT_MAX / 2 is not."""
    problem = make(heads(ONE), [codes({0: ONE})], weights=weights(FLT_MAX), scales=[np.array([0.5])])
    assert bits(problem) == [[INF]]
    assert bits(problem, generation="max") == bits(problem, generation="max_nan") == [[0x7EFFFFFF]]


def test_generations_part_on_subnormal_sums(make: Any) -> None:
    """Dot 0.625, weight 2**-149: 1.25 units round to 1, half of it to 0; without the fold 0.625 units round to 1."""
    problem = make(heads(0x32), [codes({0: ONE})], weights=weights(2.0**-149))
    assert bits(problem) == [[0]]
    assert bits(problem, generation="max") == [[1]]


@pytest.mark.parametrize("nan", [0x7F, 0xFF])
def test_nan_code_in_a_key(make: Any, nan: int) -> None:
    """peers.md, bug 13: that token alone is NaN; max(NaN, 0) is 0, so the older form hides it."""
    problem = make(heads(ONE, ONE), [codes({0: ONE}, {0: ONE, 31: nan}, {0: ONE})])
    two = 0x40000000
    assert bits(problem) == [[two, QNAN, two]]
    assert bits(problem, generation="max") == [[two, 0, two]]
    assert bits(problem, generation="max_nan") == [[two, QNAN, two]]


def test_nan_code_in_a_query(make: Any) -> None:
    """Head 1 is NaN for every token; the older form loses just that head's share."""
    problem = make(heads(ONE, NAN, TWO), [codes({0: ONE}, {0: TWO})])
    assert bits(problem) == [[QNAN, QNAN]]
    assert values(problem, "max") == [[3.0, 6.0]]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_special_scales_and_weights(make: Any, generation: Generation) -> None:
    scales = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], np.float32)
    problem = make(heads(ONE), [codes(*[{0: ONE}] * 6)], scales=[scales])
    assert bits(problem, generation=generation) == [[QNAN, INF, INF | 1 << 31, 0, 1 << 31, 0x3F800000]]
    nothing = make(heads(), [codes({0: ONE}, {0: ONE})], scales=[np.array([np.inf, -1.0], np.float32)])
    assert bits(nothing, generation=generation) == [[QNAN, 1 << 31]]  # 0 * inf, and +0 * -1
    problem = make(heads(ONE, MINUS_ONE), [codes({0: ONE})], weights=weights(1.0, np.inf))
    assert bits(problem, generation=generation) == [[QNAN]]  # relu(-1) * inf


@pytest.mark.parametrize("head", range(8))
def test_one_head_alone(make: Any, head: int) -> None:
    q = codes(*({0: TWO if h == head else 0} for h in range(8)))[None, None]
    problem = make(q, [codes({0: THREE})], weights=weights(*range(1, 9)))
    assert values(problem) == [[6.0 * (head + 1)]]


def test_high_bytes_are_negative_numbers(make: Any) -> None:
    """peers.md, bug 16: 0xb8 is -1 and 0xfe is -448, whatever int8 thinks of them."""
    keys = codes({0: MINUS_ONE}, {0: ONE}, {0: 0xFE}, {0: 0x81})
    assert values(make(heads(ONE), [keys])) == [[0.0, 1.0, 0.0, 0.0]]
    assert values(make(heads(MINUS_ONE), [keys])) == [[1.0, 0.0, 448.0, 2.0**-9]]
    assert values(make(heads(0xFE), [keys])) == [[448.0, 0.0, 200704.0, 0.875]]


def test_each_row_has_its_weights_and_its_query(make: Any) -> None:
    """2 sequences, 2 tokens each: row b * 2 + t. Scores b + 1 and t + 1, weights 1, 10, 100, 1000."""
    q = np.zeros((2, 2, 8, 32), np.uint8)
    q[:, 0, 0, 0], q[:, 1, 0, 0] = ONE, TWO
    keys = [codes(*[{0: ONE}] * 3), codes(*[{0: TWO}] * 2)]
    table = np.repeat(np.array([[1], [10], [100], [1000]], np.float32), 8, axis=1)
    rows = values(make(q, keys, weights=table))
    assert rows == [[1.0, 1.0, 0.0], [20.0, 20.0, 20.0], [200.0, 0.0, 0.0], [4000.0, 4000.0, 0.0]]


def test_order_of_the_four_sums(make: Any) -> None:
    """((2**24 + 1) - 2**24) + 1: the first sum is a tie that rounds to 2**24, so 1 is left; other orders differ."""
    problem = make(heads(ONE, ONE, ONE, ONE), [codes({0: ONE})], weights=weights(2.0**24, 1, -(2.0**24), 1))
    assert values(problem) == values(problem, "max") == [[1.0]]


@pytest.mark.parametrize(
    ("places", "expected"), [((0, 4, 8), 2.0**24), ((0, 5, 9), 2.0**24 + 2), ((8, 4, 0), 2.0**24 + 2)]
)
def test_heads_ascend_within_a_sum(make: Any, places: tuple[int, int, int], expected: float) -> None:
    """2**24 then 1 and 1 in one sum loses both; 1 and 1 first, or in a sum of their own, are kept."""
    factors = np.zeros(16)
    factors[list(places)] = 2.0**24, 1, 1
    problem = make(heads(*[ONE] * 16, count=16), [codes({0: ONE})], weights=factors[None])
    assert values(problem) == values(problem, "max") == [[expected]]


def test_multiply_and_add_round_once(make: Any) -> None:
    """-3 + 3 * (1 + 2**-23) is 3 * 2**-23 exactly; a product rounded by itself would leave 2**-21."""
    factors = np.zeros(8)
    factors[[0, 4]] = -1, 1 + 2.0**-23
    problem = make(heads(*[THREE] * 8), [codes({0: ONE})], weights=factors[None])
    assert values(problem) == values(problem, "max") == [[3 * 2.0**-23]]


@pytest.mark.parametrize(
    ("code", "value", "seen_by"),
    # 448**2 has exponent 16, so what is left of one step is a multiple of 2**(16 - F): 8, 2**-8, 2**-9
    [(0x01, 2.0**-10, {"exact"}), (0x02, 2.0**-9, {"exact", "sm100"}), (0x03, 2.0**-9, {"sm100"})],
)
def test_machines_part_where_terms_are_cut(make: Any, code: int, value: float, seen_by: set[str]) -> None:
    """448 * 448 - 448 * 448 + 0.5 * code * 2**-9."""
    q = codes({0: MAX448, 1: MAX448, 2: 0x30}, *[{}] * 7)[None, None]
    problem = make(q, [codes({0: MAX448, 1: 0xFE, 2: code})])
    models = {**MACHINES, "24 bits": replace(MACHINES["sm100"], fraction_bits=24)}
    results = {name: bits(problem, model) for name, model in models.items()}
    expected = [[int(np.float32(value).view(np.uint32))]]
    assert {name for name, found in results.items() if found == expected} == seen_by
    assert results["sm90"] == results["24 bits"] == [[0]]


def test_steps_are_chained(make: Any) -> None:
    """448**2 is carried over with exponent 17: the next step keeps multiples of 2**-8 and cuts 2**-9."""
    q = codes({0: MAX448, 32: MAX448, 33: ONE}, *[{}] * 7, dim=64)[None, None]
    keys = codes({0: MAX448, 32: 0xFE, 33: 0x02}, {0: MAX448, 32: 0xFE, 33: 0x01}, dim=64)
    problem = make(q, [keys])
    kept, lost = (int(np.float32(v).view(np.uint32)) for v in (2.0**-8, 2.0**-9))
    assert bits(problem) == [[kept, 0]]
    assert bits(problem, "sm90") == [[0, 0]]
    assert bits(problem, "exact") == [[kept, lost]]


def test_columns_that_are_not_valid_are_zero(make: Any) -> None:
    """next_n 3: lengths 5, 0, 2. The first rows of the last have no column, its last row both."""
    q = np.full((3, 3, 8, 32), ONE, np.uint8)
    keys = [np.full((n, 32), ONE, np.uint8) for n in (5, 0, 2)]
    found, mask = reference_logits(make(q, keys, max_context_len=7), FLOW)
    assert mask.sum(axis=1).tolist() == [3, 4, 5, 0, 0, 0, 0, 1, 2]
    assert np.array_equal(found != 0, mask)
    assert set(found[mask].tolist()) == {int(np.float32(256).view(np.uint32))}
