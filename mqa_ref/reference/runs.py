"""A problem cut into runs of tokens of one sequence, so that whoever works on one has bounded memory in use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mqa_ref.problem import Problem

RUN_TOKENS = 1024
"""Tokens in work at once; a multiple of every page size."""


@dataclass(frozen=True)
class Run:
    """Consecutive tokens of one sequence and the query rows that meet them.

    ``rows``, ``columns``: the place of its logits [next_n, tokens] in the result. ``queries``: e4m3fn codes
    [next_n * H, D]; ``keys``: e4m3fn codes [tokens, D]; ``weights``: fp32 bit patterns [next_n, H]; ``scales``: fp32
    bit patterns [tokens].
    """

    rows: slice
    columns: slice
    queries: NDArray[np.uint8]
    keys: NDArray[np.uint8]
    weights: NDArray[np.uint32]
    scales: NDArray[np.uint32]


def runs(problem: Problem) -> Iterator[Run]:
    """Every token of every sequence, once. Of ``block_table`` only the entries of pages with tokens are read."""
    keys, scales = problem.key_codes, problem.scale_bits
    weights = problem.weights.view(np.uint32).reshape(problem.batch, problem.next_n, problem.heads)
    for sequence, length in enumerate(problem.context_lens.tolist()):
        rows = slice(sequence * problem.next_n, (sequence + 1) * problem.next_n)
        queries = problem.q[sequence].reshape(problem.next_n * problem.heads, problem.head_dim)
        for first in range(0, length, RUN_TOKENS):
            stop = min(first + RUN_TOKENS, length)
            pages = problem.block_table[sequence, first // problem.page : -(-stop // problem.page)]
            run_keys = keys[pages].reshape(-1, problem.head_dim)[: stop - first]
            run_scales = scales[pages].reshape(-1)[: stop - first]
            yield Run(rows, slice(first, stop), queries, run_keys, weights[sequence], run_scales)
