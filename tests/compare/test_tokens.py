"""Every rule for another page and token, element by element, from the block table as it is written."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mqa_ref.compare.tokens import interleaved, token_sources
from mqa_ref.problem import Problem

PAGE, WIDTH, BATCH, NEXT_N = 64, 5, 3, 2
LENGTHS = [300, 65, 290]
ROWS, COLUMNS = np.array([0, 1, 3, 4, 5, 2, 4]), np.array([298, 0, 64, 130, 289, 63, 16])
Place = tuple[int, int] | None


@pytest.fixture(scope="module", params=[17, 4, 1], ids=lambda pages: f"{pages} pages")
def problem(request: pytest.FixtureRequest) -> Problem:
    """With many pages every entry has its own; with four, entry 4 is the number of no page."""
    pages: int = request.param
    random = np.random.default_rng(12)
    return Problem(
        np.zeros((BATCH, NEXT_N, 8, 32), np.uint8),
        random.integers(0, 256, (pages, PAGE * 36)).astype(np.uint8),
        np.zeros((BATCH * NEXT_N, 8), np.float32),
        np.resize(random.permutation(pages), (BATCH, WIDTH)).astype(np.int32),
        np.array(LENGTHS, np.int32),
        page=PAGE,
        num_sms=1,
    )


def rules(table: np.ndarray, pages: int) -> dict[str, Callable[[int, int], Place]]:
    """Sequence and column to page and token, None where there is no such place; in the order of the rules."""

    def at(b: int, slot: int, token: int) -> Place:
        there = 0 <= b < BATCH and 0 <= slot < WIDTH
        return (int(table[b, slot]), token) if there else None

    def shifted(step: int) -> Callable[[int, int], Place]:
        def rule(b: int, column: int) -> Place:
            other = column + step
            return at(b, other // PAGE, other % PAGE) if 0 <= other < LENGTHS[b] else None

        return rule

    found: dict[str, Callable[[int, int], Place]] = {}
    for size in (1, 2, 4, 8, 16, 32, 128, 256):
        for step, side in ((-size, "before"), (size, "after")):
            found[f"the token {side}" if size == 1 else f"the token {size} places {side}"] = shifted(step)
    for number in range(PAGE):
        found[f"token {number} of the page"] = lambda b, c, number=number: at(b, c // PAGE, number)  # type: ignore[misc]
    found["the page of the table entry before"] = lambda b, c: at(b, c // PAGE - 1, c % PAGE)
    found["the page of the next table entry"] = lambda b, c: at(b, c // PAGE + 1, c % PAGE)
    for number in range(WIDTH):
        found[f"the page of table entry {number}"] = lambda b, c, number=number: at(b, number, c % PAGE)  # type: ignore[misc]
    found["the page of the sequence before"] = lambda b, c: at(b - 1, c // PAGE, c % PAGE)
    found["the page of the sequence after"] = lambda b, c: at(b + 1, c // PAGE, c % PAGE)
    for other in range(BATCH):
        found[f"the page of sequence {other}"] = lambda b, c, other=other: at(other, c // PAGE, c % PAGE)  # type: ignore[misc]
    found["the page with the number of the table entry"] = lambda b, c: (
        (c // PAGE, c % PAGE) if c // PAGE < pages else None
    )
    for page in range(pages):
        found[f"page {page}"] = lambda b, c, page=page: (page, c % PAGE)  # type: ignore[misc]
    return found


@pytest.mark.parametrize("chosen", [[0, 1, 2, 3, 4, 5, 6], [0], [6], [1], [2], [3, 4], [5, 2]])
def test_every_rule(problem: Problem, chosen: list[int]) -> None:
    rows, columns = ROWS[chosen], COLUMNS[chosen]
    sources = token_sources(problem, rows, columns)
    assert sources.pages.shape == sources.tokens.shape == sources.possible.shape
    assert {sources.pages.dtype, sources.tokens.dtype} == {np.dtype(np.int64)}
    where = [(int(row) // NEXT_N, int(column)) for row, column in zip(rows, columns, strict=True)]
    right: list[Place] = [(int(problem.block_table[b, column // PAGE]), column % PAGE) for b, column in where]
    told = {}
    for at, name in enumerate(sources.names):
        places = zip(sources.pages[at], sources.tokens[at], sources.possible[at], strict=True)
        told[name] = [(int(page), int(token)) if there else None for page, token, there in places]
        assert (sources.pages[at] >= 0).all()
        assert (sources.pages[at] < problem.num_pages).all()
    expected: dict[str, list[Place]] = {}
    plain: dict[tuple[Place, ...], str] = {}
    for name, rule in rules(problem.block_table, problem.num_pages).items():
        found = [rule(b, column) for b, column in where]
        if name.startswith("page ") and tuple(found) in plain:
            first = plain[tuple(found)]
            expected[f"{first} ({name})"] = expected.pop(first)
        elif found != right and any(found) and tuple(found) not in plain:
            plain[tuple(found)] = name
            expected[name] = found
    assert told == expected
    assert list(told) == sorted(told, key=lambda name: list(plain.values()).index(name.partition(" (")[0]))


def test_interleaved_pages(problem: Problem) -> None:
    """Token t's codes at byte 36 * t of its page, and its scale right behind them."""
    for row, column in zip(ROWS.tolist(), COLUMNS.tolist(), strict=True):
        page = problem.kv_fused[int(problem.block_table[row // NEXT_N, column // PAGE])].tobytes()
        start = 36 * (column % PAGE)
        codes, scale = interleaved(problem, row, column)
        assert codes.tobytes() == page[start : start + 32]
        assert scale == int.from_bytes(page[start + 32 : start + 36], "little")
