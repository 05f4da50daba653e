"""Single elements of a problem, gathered: what each is computed from, and its error bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.compare.bits import Bits
from mqa_ref.compare.place import Index
from mqa_ref.flow import Flow
from mqa_ref.numerics import FORMATS, MachineModel, mma
from mqa_ref.problem import Problem
from mqa_ref.reference import ErrorBounds

Codes = NDArray[np.uint8]
Words = NDArray[np.uint32]
_PAGE = 128


@dataclass(frozen=True)
class Elements:
    """What some logits are computed from: ``acc`` [n, H], accumulators of the flow; ``weights`` [n, H] and ``scales``
    [n], fp32 patterns."""

    acc: NDArray[Any]
    weights: Words
    scales: Words


@dataclass(frozen=True)
class Source:
    """The inputs of a problem by element, and the tensor core that multiplies them."""

    problem: Problem
    acc: str
    machine: str | MachineModel

    def keys(self, page: Index, token: Index) -> tuple[Codes, Words]:
        """Codes [n, D] and scales [n] of tokens given by page id and number within the page."""
        return self.problem.key_codes[page, token], self.problem.scale_bits[page, token].astype(np.uint32)

    def at(self, rows: Index, columns: Index) -> tuple[Codes, Words]:
        """Codes and scales of the tokens of elements given by row and column."""
        slot, token = np.divmod(columns, self.problem.page)
        return self.keys(self.problem.block_table.astype(np.int64)[rows // self.problem.next_n, slot], token)

    def queries(self, rows: Index) -> Codes:
        """Codes [n, H, D]."""
        return self.problem.q[rows // self.problem.next_n, rows % self.problem.next_n]

    def weights(self, rows: Index) -> Words:
        """Patterns [n, H]."""
        return self.problem.weights.view(np.uint32)[rows]

    def dots(self, queries: Codes, keys: Codes) -> NDArray[Any]:
        """Accumulators [n, H] of ``queries`` [n, H, D] or [1, H, D] with ``keys`` [n, D] or [1, D]."""
        if len(queries) == 1:
            return mma(queries[0], keys, machine=self.machine, acc=self._format).T
        if len(keys) == 1:
            flat = mma(queries.reshape(-1, queries.shape[2]), keys, machine=self.machine, acc=self._format)
            return flat.reshape(queries.shape[:2])
        pairs = zip(queries, keys, strict=True)
        return np.stack([mma(q, key[None], machine=self.machine, acc=self._format)[:, 0] for q, key in pairs])

    def elements(self, rows: Index, columns: Index) -> Elements:
        """What the logits at row [n], column [n] are computed from."""
        keys, scales = self.at(rows, columns)
        return Elements(self.dots(self.queries(rows), keys), self.weights(rows), scales)

    @property
    def _format(self) -> Any:
        return self.acc


def excerpt(problem: Problem, rows: Index, columns: Index) -> tuple[Problem, Index]:
    """A small problem that computes the elements at row [n], column [n]: sequence i has element i in column 0, in the
    row that is returned [n]."""
    b, t = np.divmod(rows, problem.next_n)
    slot, token = np.divmod(columns, problem.page)
    page = problem.block_table[b, slot]
    pool = np.zeros((rows.size, _PAGE * (problem.head_dim + 4)), np.uint8)
    pool[:, : problem.head_dim] = problem.key_codes[page, token]
    scales = problem.scale_bits[page, token].astype("<u4")
    pool[:, _PAGE * problem.head_dim :][:, :4] = scales[:, None].view(np.uint8)
    weights = problem.weights.reshape(problem.batch, problem.next_n, problem.heads)[b]
    small = Problem(
        problem.q[b],
        pool,
        weights.reshape(-1, problem.heads),
        np.arange(rows.size, dtype=np.int32)[:, None],
        np.full(rows.size, problem.next_n, np.int32),
        page=_PAGE,
        num_sms=1,
    )
    return small, np.arange(rows.size) * problem.next_n + t


def bound_ratios(
    bounds: Callable[..., ErrorBounds],
    problem: Problem,
    flow: Flow,
    places: tuple[Index, Index],
    got: Bits,
    **options: Any,
) -> NDArray[np.float64]:
    """The errors of the elements at ``places`` with patterns ``got`` [n] as shares of their bounds; NaN where an
    element has no bound. ``bounds``: one of the two functions of ``mqa_ref.reference``; ``options``: its machine and
    generation."""
    small, row = excerpt(problem, *places)
    found = bounds(small, flow, **options)
    bits = np.zeros(found.mask.shape, flow.bits_dtype)
    bits[row, 0] = got
    assert FORMATS[flow.out].bits == 8 * bits.itemsize
    shares = found.ratios(bits, flow.out)[row, 0]
    return np.where((found.special | found.may_overflow)[row, 0], np.nan, shares)
