"""The smallest launches in which two kernels of this operation can differ: one sequence, one CTA, one tile with tokens
(one kind needs a second row), one head that counts. They run beside the other problems when there is a baseline.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from mqa_ref.flow import Flow
from mqa_ref.problem import Problem
from mqa_ref.verification.data import DIM
from mqa_ref.verification.problems import NamedProblem

HEADS, PAGE = 16, 64
"""The smallest shape that every kernel serves."""
ONE, FIVE_EIGHTHS, MINUS_ONE, MINUS_448, MOST, NAN = 0x38, 0x32, 0xB8, 0xFE, 0x7E, 0x7F
"""e4m3fn codes."""
FLT_MAX = float(np.finfo(np.float32).max)


def _probe(
    name: str,
    why: str,
    *,
    query: int = ONE,
    key: int = ONE,
    weight: float = 1.0,
    scale: float = 1.0,
    lengths: Sequence[int] = (1,),
    page_key: int = 0,
    rest_key: int = 0,
    flow: str | None = None,
) -> NamedProblem:
    """Head 0 of every query has one element that is not zero; the other heads weigh 1 and are zero. Page 1 is
    everybody's page 0: its first token is ``key``, the others are ``page_key``. The block table names page 2 for what
    lies behind, whose tokens are ``rest_key``; pages 0 and 3 are zeros."""
    batch = len(lengths)
    q, k = np.zeros((batch, 1, HEADS, DIM), np.uint8), np.zeros((4, PAGE, DIM), np.uint8)
    q[:, 0, 0, 0], k[1, 0, 0], k[1, 1:, 0], k[2, :, 0] = query, key, page_key, rest_key
    scales = np.full((4, PAGE), scale, "<f4")
    weights = np.ones((batch, HEADS), np.float32)
    weights[:, 0] = weight
    pool = np.concatenate([k.reshape(4, -1), scales.view(np.uint8)], axis=1)
    table = np.tile(np.array([1, 2, 2, 2], np.int32), (batch, 1))
    problem = Problem(
        q, pool, weights, table, np.array(lengths, np.int32), page=PAGE, num_sms=1, max_context_len=256
    )
    parsed = None if flow is None else Flow.parse(flow)
    return NamedProblem(name, problem, why, flow=parsed, interleaving="eager")


_MAKERS: tuple[Callable[[], NamedProblem], ...] = (
    lambda: _probe("ab-ordinary", "ordinary data: one token, dot 1, weight 1, scale 1"),
    lambda: _probe(
        "ab-overflow",
        "sums near the greatest number: twice the greatest weight is inf, half of that too",
        weight=FLT_MAX,
        scale=0.5,
    ),
    lambda: _probe(
        "ab-subnormal",
        "sums near the subnormals: 5/8 of the smallest number, doubled, rounded and halved, or rounded at once",
        query=FIVE_EIGHTHS,
        weight=2.0**-149,
    ),
    lambda: _probe("ab-nan-key", "NaN codes: max(NaN, 0) is 0, max.NaN and x + |x| are NaN", key=NAN),
    lambda: _probe(
        "ab-inf-weight", "NaN or inf among weights and scales: inf times 0", key=MINUS_ONE, weight=np.inf
    ),
    lambda: _probe(
        "ab-minus-inf",
        "dot products beyond fp16: an accumulator of -inf; x + |x| is NaN, max(x, 0) is 0",
        query=MINUS_448,
        key=MOST,
        flow="fp16-fp16-fp32",
    ),
    lambda: _probe(
        "ab-behind",
        "one full page, then nothing: what the rest of the split is computed from",
        lengths=(64,),
        page_key=ONE,
        rest_key=ONE,
    ),
    lambda: _probe(
        "ab-last-page", "one token, then 63 more of its page, which are no tokens of it", page_key=ONE
    ),
    lambda: _probe("ab-no-token", "a row without tokens between two others", lengths=(1, 0, 1)),
)


@cache
def probes() -> tuple[NamedProblem, ...]:
    """All of them."""
    return tuple(make() for make in _MAKERS)
