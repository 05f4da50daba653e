"""Every candidate of every family, named and probed: what it computes from is worked out here from the whole inputs.

Codes and sums are small integers, so accumulators are exact and the same on every machine and in every order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

import ml_dtypes
import numpy as np
import pytest

from mqa_ref.compare.families import Sample, families
from mqa_ref.compare.gather import Source
from mqa_ref.problem import Problem

BATCH, NEXT_N, HEADS, DIM, PAGE, LENGTH = 3, 3, 8, 64, 32, 80
ROWS, COLUMNS = np.array([0, 4, 8]), np.array([0, 70, 33])
Expected = tuple[np.ndarray, np.ndarray, np.ndarray]  # acc [n, H], weights [n, H], scales [n]


@pytest.fixture(scope="module")
def problem() -> Problem:
    random = np.random.default_rng(8)
    values = np.array([1, -1, 2, -2, 4], np.float32).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
    pages = BATCH * 3 + 2
    scales = (1 + random.permutation(pages * PAGE).reshape(pages, PAGE)).astype("<f4")
    return Problem(
        random.choice(values, (BATCH, NEXT_N, HEADS, DIM)),
        np.concatenate([random.choice(values, (pages, PAGE * DIM)), scales.view(np.uint8)], axis=1),
        random.permutation(BATCH * NEXT_N * HEADS).reshape(-1, HEADS).astype(np.float32),
        random.permutation(pages)[: BATCH * 3].reshape(BATCH, 3).astype(np.int32),
        np.array([LENGTH, LENGTH, LENGTH - 9], np.int32),
        page=PAGE,
        num_sms=1,
    )


class World:
    """The problem's numbers, and what elements are computed from, taken from where one says."""

    def __init__(self, problem: Problem) -> None:
        self.p = problem
        self.q = problem.q.view(ml_dtypes.float8_e4m3fn).astype(np.float64).reshape(-1, HEADS, DIM)
        self.k = problem.key_codes.view(ml_dtypes.float8_e4m3fn).astype(np.float64)
        self.s = problem.scale_bits.view(np.float32)

    def page(self, row: int, column: int) -> int:
        return int(self.p.block_table[row // NEXT_N, column // PAGE])

    def one(self, i: int, **given: int) -> tuple[np.ndarray, np.ndarray, float]:
        """Element i. ``query``, ``weight``: rows; ``page``, ``token``: a key's; ``spage``, ``stoken``: a scale's."""
        row, column = int(ROWS[i]), int(COLUMNS[i])
        query, weight = given.get("query", row), given.get("weight", row)
        page, token = given.get("page", self.page(row, column)), given.get("token", column % PAGE)
        spage, stoken = given.get("spage", self.page(row, column)), given.get("stoken", column % PAGE)
        return self.q[query] @ self.k[page, token], self.p.weights[weight], float(self.s[spage, stoken])


def numbers(found: object) -> list[tuple[list[float], list[float], float]]:
    acc, weights, scales = (getattr(found, name) for name in ("acc", "weights", "scales"))
    assert (acc.dtype, weights.dtype, scales.dtype) == (np.uint32, np.uint32, np.uint32)
    values = [part.view(np.float32).astype(np.float64).tolist() for part in (acc, weights, scales)]
    return list(zip(*values, strict=True))


def plain(one: tuple[np.ndarray, np.ndarray, float]) -> tuple[list[float], list[float], float]:
    return one[0].tolist(), one[1].tolist(), one[2]


def swapped(values: np.ndarray, a: int, b: int) -> np.ndarray:
    out = values.copy()
    out[a], out[b] = values[b], values[a]
    return out


def expected(problem: Problem) -> Iterator[tuple[str, int, tuple[list[float], list[float], float]]]:
    """Name, element, and numbers of the candidates, but for those that take other tokens."""
    world = World(problem)
    for i in range(3):
        acc, weights, scale = world.one(i)
        for a, b in combinations(range(HEADS), 2):
            yield (
                f"the weights of heads {a} and {b} exchanged",
                i,
                plain((acc, swapped(weights, a, b), scale)),
            )
            yield (
                f"the queries of heads {a} and {b} exchanged",
                i,
                plain((swapped(acc, a, b), weights, scale)),
            )
        yield "the weights of the next head", i, plain((acc, weights[[1, 2, 3, 4, 5, 6, 7, 0]], scale))
        yield "the weights of the head before", i, plain((acc, weights[[7, 0, 1, 2, 3, 4, 5, 6]], scale))
        row, column = int(ROWS[i]), int(COLUMNS[i])
        others = {
            "the next query token": row - row % 3 + (row + 1) % 3,
            "query token 0": row - row % 3,
            "the row before": row - 1,
            "the row after": row + 1,
            "the sequence before": row - 3,
            "the sequence after": row + 3,
            "the row with the number of the sequence": row // 3,
            **{f"row {other}": other for other in range(9)},
        }
        for name, other in others.items():
            if 0 <= other < 9:
                yield f"the weights of {name}", i, plain(world.one(i, weight=other))
                yield f"the query of {name}", i, plain(world.one(i, query=other))
                yield f"the query and weights of {name}", i, plain(world.one(i, query=other, weight=other))
        whole = problem.kv_fused[world.page(row, column)].reshape(PAGE, DIM + 4)[column % PAGE]
        key = whole[:DIM].view(ml_dtypes.float8_e4m3fn).astype(np.float64)
        other_scale = float(whole[DIM:].copy().view("<f4")[0])
        there = world.q[row] @ key
        where = "where interleaved pages would have them"
        yield f"keys read {where}", i, plain((there, weights, scale))
        yield f"scales read {where}", i, plain((acc, weights, other_scale))
        yield f"keys and scales read {where}", i, plain((there, weights, other_scale))
        for first in (0, 32):
            cut = world.k[world.page(row, column), column % PAGE].copy()
            cut[first : first + 32] = 0
            name = f"dot products without elements {first} to {first + 31}"
            yield name, i, plain((world.q[row] @ cut, weights, scale))


def test_every_candidate_computes_what_its_name_says(problem: Problem) -> None:
    sample = Sample(ROWS, COLUMNS, np.zeros(3, np.uint32), np.ones(3, np.uint32))
    found: dict[str, tuple[object, int]] = {}
    seen = {}
    with np.errstate(all="ignore"):
        for family in families(Source(problem, "fp32", "sm100"), sample):
            count = len(family.names)
            for i in range(3):
                each = numbers(family.probe(i, np.arange(count)))
                assert len(each) == count
                assert numbers(family.probe(i, np.array([count - 1]))) == [each[-1]]
                for at, name in enumerate(family.names):
                    there = family.possible is None or bool(family.possible[at, i])
                    seen[name, i] = each[at] if there else None
            found |= {name: (family, at) for at, name in enumerate(family.names)}
    wanted = {(name, i): value for name, i, value in expected(problem)}
    names = {name for name, _ in wanted}
    # Of rules that give the same places the first is told, with the plain number beside it.
    short = {name.partition(" (row")[0]: name for name in found}
    for name in names:
        if name not in short:
            assert "row " in name or "query token 0" in name, name
            continue
        for i in range(3):
            assert seen[short[name], i] == wanted.get((name, i)), (name, i)
    assert len(names & set(short)) >= 2 * 28 + 2 + 3 * 10 + 3 + 2
    tokens = [name for name in found if name not in names and name.partition(" (row")[0] not in names]
    assert {name.split(" of ")[0] for name in tokens} == {"the scale", "the key", "the key and scale"}


def test_the_tokens_that_are_taken(problem: Problem) -> None:
    world = World(problem)
    sample = Sample(ROWS, COLUMNS, np.zeros(3, np.uint32), np.ones(3, np.uint32))
    rules: dict[str, Callable[[int, int], tuple[int, int]]] = {
        "the token before": lambda row, column: (world.page(row, column - 1), (column - 1) % PAGE),
        "the token 4 places after": lambda row, column: (world.page(row, column + 4), (column + 4) % PAGE),
        "token 7 of the page": lambda row, column: (world.page(row, column), 7),
        "page 2": lambda row, column: (2, column % PAGE),
        "the page of table entry 1": lambda row, column: (
            int(problem.block_table[row // 3, 1]),
            column % PAGE,
        ),
        "the page of sequence 0": lambda row, column: (
            int(problem.block_table[0, column // PAGE]),
            column % PAGE,
        ),
    }
    kinds = {
        "the scale": ("spage", "stoken"),
        "the key": ("page", "token"),
        "the key and scale": ("page", "token", "spage", "stoken"),
    }
    tried = 0
    for family in families(Source(problem, "fp32", "sm100"), sample):
        for at, name in enumerate(family.names):
            kind, _, rule = name.partition(" of ")
            rule = rule.partition(" (")[0]
            if kind not in kinds or rule not in rules:
                continue
            assert family.possible is not None
            for i in range(3):
                row, column = int(ROWS[i]), int(COLUMNS[i])
                if not family.possible[at, i]:
                    assert (rule, column) == ("the token before", 0)
                    continue
                place = rules[rule](row, column)
                given = dict(zip(kinds[kind], place * 2, strict=False))
                assert numbers(family.probe(i, np.array([at]))) == [plain(world.one(i, **given))], (name, i)
                tried += 1
    assert tried == 3 * (6 * 3 - 1)


def test_heads_of_thirty_two_elements_have_no_parts() -> None:
    """32 elements are the whole head; the halves of 64 are its two ranges already."""
    wide = ["0 to 31", "32 to 63", "64 to 95", "96 to 127", "0 to 63", "64 to 127"]
    for dim, wanted in ((32, []), (64, wide[:2]), (128, wide)):
        small = Problem(
            np.zeros((1, 1, 8, dim), np.uint8),
            np.zeros((2, 32 * (dim + 4)), np.uint8),
            np.zeros((1, 8), np.float32),
            np.zeros((1, 1), np.int32),
            np.array([9], np.int32),
            page=32,
            num_sms=1,
        )
        one = np.zeros(1, np.int64)
        sample = Sample(one, one, np.zeros(1, np.uint32), np.ones(1, np.uint32))
        names = [name for family in families(Source(small, "fp32", "sm100"), sample) for name in family.names]
        start = "dot products without elements "
        assert [name.removeprefix(start) for name in names if name.startswith(start)] == wanted
