"""Other launches that must give the same logits, or the same up to a known change: one variant of each kind from a
launch and a label. Nothing is judged here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.flow import Flow
from mqa_ref.fuzz.description import rebuilt
from mqa_ref.fuzz.subject import Subject
from mqa_ref.problem import Problem
from mqa_ref.schedule import SPLIT_TOKENS, build, cut
from mqa_ref.verification.codes import random_codes
from mqa_ref.verification.words import below, permutation, words

MOST_SHIFT = 8
"""Scaling is by 2^-8 to 2^8."""


def permuted_pages(problem: Problem, label: str) -> Problem:
    """The same tokens in other pages; entries that nobody needs stay as they are."""
    order = permutation(f"{label}/pages", problem.num_pages)
    inverse = np.argsort(order).astype(np.int32)
    needed = np.arange(problem.block_table.shape[1]) < -(-problem.context_lens[:, None] // problem.page)
    table = problem.block_table.copy()
    table[needed] = inverse[table[needed]]
    return rebuilt(problem, kv_fused=problem.kv_fused[order], block_table=table)


def other_ctas(problem: Problem, label: str) -> Problem:
    """Another number of CTAs, of those in ``shapes.FEW_SMS``: the kernel is compiled for it."""
    counts = [count for count in (1, 2, 3, 4) if count != problem.num_sms]
    chosen = counts[int(below(f"{label}/ctas", 1, len(counts))[0])]
    return rebuilt(problem, num_sms=chosen)


def other_schedule(problem: Problem, label: str) -> Problem:
    """As many CTAs with the work cut elsewhere: all of it in one, or anywhere."""
    total = int((-(-problem.context_lens.astype(np.int64) // SPLIT_TOKENS)).sum())
    style, place = below(f"{label}/style", 2, 1 << 16).tolist()
    inner = problem.num_sms - 1
    if style % 3 == 0:
        front = place % problem.num_sms
        cuts = [0] * front + [total] * (inner - front)
    else:
        cuts = sorted(below(f"{label}/cuts", inner, total + 1).tolist())
    return rebuilt(problem, schedule=cut(problem.context_lens, cuts))


def reordered_batch(problem: Problem, label: str) -> tuple[Problem, NDArray[np.int64]]:
    """The sequences in another order, and which sequence each place now holds."""
    order = permutation(f"{label}/batch", problem.batch)
    return _selected(problem, order), order


def part_of_batch(problem: Problem, label: str) -> tuple[Problem, NDArray[np.int64]]:
    """Some of the sequences as a batch of their own, and which they are."""
    chosen = np.flatnonzero(below(f"{label}/part", problem.batch, 2))
    if not chosen.size:
        chosen = below(f"{label}/one", 1, problem.batch)
    return _selected(problem, chosen), chosen


def _selected(problem: Problem, order: NDArray[Any]) -> Problem:
    weights = problem.weights.reshape(problem.batch, problem.next_n, problem.heads)[order]
    return rebuilt(
        problem,
        q=problem.q[order],
        weights=weights.reshape(-1, problem.heads),
        block_table=problem.block_table[order],
        context_lens=problem.context_lens[order],
    )


def poisoned(subject: Subject, label: str) -> Problem:
    """Other contents wherever no token is: pages and slots, needless table entries. NaN, inf, or random bits."""
    problem, idle = subject.problem, ~subject.used
    keys, scales = problem.key_codes.copy(), problem.scale_bits.copy()
    style = int(below(f"{label}/style", 1, 4)[0])
    count = int(idle.sum())
    if style == 3:
        keys[idle] = (
            (words(f"{label}/keys", count * problem.head_dim) >> np.uint64(56))
            .astype(np.uint8)
            .reshape(count, -1)
        )
        scales[idle] = (words(f"{label}/scales", count) >> np.uint64(32)).astype(np.uint32)
    else:
        keys[idle] = (0x7F, 0xFF, 0x7E)[style]
        scales[idle] = (0x7FC00000, 0xFF800000, 0x7F800000)[style]
    codes = keys.reshape(problem.num_pages, -1)
    pool = np.concatenate([codes, scales.astype("<u4").view(np.uint8).reshape(problem.num_pages, -1)], axis=1)
    table = problem.block_table.copy()
    fill = np.array([-1, 2**31 - 1, -(2**31), problem.num_pages, 0], np.int32)
    table[~subject.entries] = fill[below(f"{label}/fill", 1, fill.size)[0]]
    return rebuilt(problem, kv_fused=pool, block_table=table)


def stale_schedule(problem: Problem, label: str) -> Problem:
    """The schedule of other lengths: a token or a split more or fewer in one sequence."""
    lengths = problem.context_lens.astype(np.int64)
    shifts = (1, -1, SPLIT_TOKENS, -SPLIT_TOKENS)
    row, turn = below(f"{label}/row", 1, problem.batch)[0], below(f"{label}/turn", 1, len(shifts))[0]
    lengths[row] = max(0, lengths[row] + shifts[turn])
    return problem.forced(build(lengths, problem.num_sms).astype(np.int32))


def scaled(problem: Problem, label: str, role: str) -> tuple[Problem, int]:
    """All scales, or all weights, times 2^shift, and the shift."""
    drawn = int(below(f"{label}/shift", 1, 2 * MOST_SHIFT)[0]) - MOST_SHIFT
    shift = drawn + (drawn >= 0)
    with np.errstate(all="ignore"):
        if role == "weights":
            return rebuilt(problem, weights=np.ldexp(problem.weights, shift).astype(np.float32)), shift
        pool = problem.kv_fused.copy()
        scales = np.ldexp(problem.scale_bits.view(np.float32), shift).astype("<f4")
    pool[:, problem.page * problem.head_dim :] = scales.view(np.uint8)
    return rebuilt(problem, kv_fused=pool), shift


def scales_exactly(problem: Problem, flow: Flow, role: str) -> NDArray[np.bool_]:
    """Where a multiplication by 2^-8 to 2^8 meets no range limit by the inputs alone, bool [rows, max_context_len];
    ``in_range`` judges the results.

    Proof, fp32 epilogue: a dot product is a multiple of 2^-18 below 2^25. With weights in 2^-40..2^40 (or 0) sums are
    multiples of 2^-40-23-18 below 2^73, and with scales in 2^-20..2^20 every result is a normal number or 0, so that
    all roundings scale along. fp16 epilogue: the scale is the last factor; what comes before does not change. The
    weights of fp16 epilogues are not scaled, since sums there are often subnormal.
    """
    mask = problem.valid_mask()
    if flow.epi == "fp16" and role == "weights":
        return np.zeros_like(mask)
    tokens = np.zeros((problem.batch, problem.max_context_len), np.float32)
    for row, length in enumerate(problem.context_lens.tolist()):
        token = np.arange(length)
        pages = problem.block_table[row, token // problem.page]
        tokens[row, :length] = problem.scale_bits[pages, token % problem.page].view(np.float32)
    least, most = (2.0**-6, 2.0**6) if flow.epi == "fp16" else (2.0**-20, 2.0**20)
    scales = np.repeat(_within(tokens, least, most), problem.next_n, axis=0)
    if flow.epi == "fp16":
        return np.asarray(mask & scales)
    weights = np.all(_within(problem.weights, 2.0**-40, 2.0**40), axis=1, keepdims=True)
    return np.asarray(mask & scales & weights)


def in_range(values: NDArray[np.float64], flow: Flow, shift: int) -> NDArray[np.bool_]:
    """Which logits, and which of them times 2^shift, are numbers that the flow's narrow formats hold without loss of
    bits; of zeros that fp16 may have made of small numbers nothing is said."""
    size = np.abs(values)
    finite = np.isfinite(values)
    if "fp16" not in (flow.epi, flow.out):
        return finite
    low, high = 2.0 ** (-14 + MOST_SHIFT + 1), 2.0 ** (15 - MOST_SHIFT)
    return np.asarray(finite & (size >= low) & (size <= high) & (abs(shift) <= MOST_SHIFT))


def with_weightless_head(problem: Problem, flow: Flow, label: str) -> tuple[Problem, Problem]:
    """Two launches that differ in the queries of one head, whose weight is +0 in every row.

    0 times a finite score is 0; in flows with an fp16 accumulator or epilogue a score of more than 65504 would be inf,
    and 0 times inf NaN, so there the head's queries are at most 1 in magnitude (128 * 448 = 57344).
    """
    head = int(below(f"{label}/head", 1, problem.heads)[0])
    weights = problem.weights.copy()
    weights[:, head] = 0
    made = []
    for turn in range(2):
        q = problem.q.copy()
        size = q[:, :, head].size
        codes = random_codes(f"{label}/q{turn}", size).reshape(q[:, :, head].shape)
        if "fp16" in (flow.acc, flow.epi):
            codes = np.where((codes & 0x7F) > 0x38, codes & 0xB8, codes).astype(np.uint8)
        q[:, :, head] = codes
        made.append(rebuilt(problem, q=q, weights=weights))
    return made[0], made[1]


def _within(numbers: NDArray[np.float32], least: float, most: float) -> NDArray[np.bool_]:
    size = np.abs(numbers)
    return np.asarray((numbers == 0) | ((size >= least) & (size <= most)))
