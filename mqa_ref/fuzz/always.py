"""The properties that are checked on every launch: bits, findings, what is written, inputs, bounds, the schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mqa_ref.fuzz.trial import Failure, Trial
from mqa_ref.problem import Problem
from mqa_ref.reference import any_order_bounds, own_order_bounds
from mqa_ref.schedule import FORMS, SPLIT_TOKENS, Form, build, walk
from mqa_ref.verification.words import below

Builder = Callable[[ArrayLike, int, Form], NDArray[np.int32]]

BATCHES = (1, 2, 31, 32, 33, 64, 255, 1024, 8192, 12288, 16384)
"""Sequences of the batches that schedules are built for; the builders of the field failed from 8192 on."""


def bits_and_findings(trial: Trial) -> list[Failure]:
    """Every valid logit has the bits of the reference, and the backend saw no hazard."""
    return trial.judge(trial.problem, trial.first)


def written_where_promised(trial: Trial) -> list[Failure]:
    """All columns of every split with a token are written, and none outside the splits that the schedule has executed.

    Source: op.md, "What a launch writes"; a row without tokens in the range of a CTA counts as one split there.
    """
    problem, launch = trial.problem, trial.first
    must, may = _promised(problem, launch.written.shape[1])
    failures = []
    for kind, wrong, words in (
        ("missing", must & ~launch.written, "not written, in splits with tokens"),
        ("stray", launch.written & ~may, "written, in splits that nobody executes"),
    ):
        if wrong.any():
            row, column = (int(place[0]) for place in np.nonzero(wrong))
            told = f"{int(np.count_nonzero(wrong))} elements {words}, the first is [{row}, {column}]"
            failures.append(Failure("written", kind, told))
    return failures


def _promised(problem: Problem, columns: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which elements must be written and which may be, bool [rows, columns]."""
    splits = -(-problem.context_lens.astype(np.int64) // SPLIT_TOKENS)
    split = np.arange(columns) // SPLIT_TOKENS
    must = np.repeat(split < splits[:, None], problem.next_n, axis=0)
    may = must.copy()
    for cta in walk(problem.schedule, problem.context_lens, zero_rows="execute"):
        for row, number in cta.items:
            at = slice(number * SPLIT_TOKENS, (number + 1) * SPLIT_TOKENS)
            may[row * problem.next_n : (row + 1) * problem.next_n, at] = True
    return must, may


def inputs_unchanged(trial: Trial) -> list[Failure]:
    """A launch leaves its inputs as they were. A backend tells of stores by the kernel (``input_written``); this looks
    at the arrays."""
    problem = trial.problem
    before = problem.case_id
    _ = trial.first
    now = Problem(
        *(problem.q, problem.kv_fused, problem.weights, problem.block_table, problem.context_lens),
        page=problem.page,
        num_sms=problem.num_sms,
        max_context_len=problem.max_context_len,
    ).forced(problem.schedule)
    same = now.case_id == before
    return [] if same else [Failure("inputs", "changed", "an input was other after the launch than before")]


def bound_ratio(trial: Trial) -> tuple[float, list[Failure]]:
    """The greatest error of a logit as a share of its bound, and a failure where that is above 1: then the reference
    or the bound is wrong, since the bits are those of the reference."""
    bits, mask = trial.valid_bits()
    told: Any = (trial.problem, trial.flow, trial.machine)
    if trial.sums == "four_chains":
        bounds = own_order_bounds(*told, generation=trial.generation)
    else:
        bounds = any_order_bounds(*told, generation=trial.generation, scaled="parts")
    shares = np.where(mask, bounds.ratios(bits, trial.flow.out), 0.0)
    ratio = float(shares.max(initial=0.0))
    if ratio <= 1:
        return ratio, []
    row, column = np.unravel_index(int(np.argmax(shares)), shares.shape)
    told = f"the error of [{row}, {column}] is {ratio:.6g} times its bound"
    return ratio, [Failure("bound", "exceeded", told)]


def drawn_lengths(label: str) -> NDArray[np.int64]:
    """Lengths of a batch that may be too large to launch, int64 [B]: all zero, few tokens, or (small batches) up to 40
    splits, with rows of 0 among them."""
    choice, style, spread = below(label, 3, 1 << 16).tolist()
    batch = BATCHES[choice % len(BATCHES)]
    most = (1, 2, 257, 600, 40 * SPLIT_TOKENS if batch < 1024 else 300)[style % 5]
    lengths = below(f"{label}/lengths", batch, most)
    if spread % 2:
        lengths[below(f"{label}/zeros", batch, 3) == 0] = 0
    return lengths


def schedules_partition(label: str, builder: Builder = build) -> list[Failure]:
    """A builder's schedules give every split to one CTA, in order, and differ by at most one split from CTA to CTA;
    no CTA starts in a row without tokens, and the last entry is (B, 0).

    Judged by walking the entries one split at a time, which shares nothing with ``schedule.check``.
    """
    lengths = drawn_lengths(label)
    ctas = 1 + int(below(f"{label}/ctas", 1, 256)[0])
    failures = []
    for form in FORMS:
        told = _uncovered(builder(lengths, ctas, form), lengths, ctas)
        if told:
            words = f"{told} (form {form}, {len(lengths)} sequences, {ctas} CTAs, label {label})"
            failures.append(Failure("schedule", form, words))
    return failures


def _uncovered(schedule: NDArray[np.int32], lengths: NDArray[np.int64], ctas: int) -> str:
    """What is wrong with a schedule, "" for nothing."""
    if schedule.shape != (ctas + 1, 2):
        return f"shape {schedule.shape}"
    splits = (-(-lengths // SPLIT_TOKENS)).tolist()
    if tuple(schedule[ctas].tolist()) != (len(splits), 0):
        return f"the last entry is {tuple(schedule[ctas].tolist())}"
    for cta, row in enumerate(schedule[:ctas, 0].tolist()):
        if row < len(splits) and not splits[row]:
            return f"CTA {cta} starts in row {row}, which has no token"
    todo = [(row, split) for row, count in enumerate(splits) for split in range(count)]
    done, shares = 0, []
    for cta in range(ctas):
        (row, split), end = schedule[cta].tolist(), tuple(schedule[cta + 1].tolist())
        begun = done
        while (row, split) < end:
            if row >= len(splits):
                return f"CTA {cta} walks past the batch"
            if split < splits[row]:
                if done >= len(todo) or todo[done] != (row, split):
                    return f"CTA {cta} executes ({row}, {split}) where another split is next"
                done, split = done + 1, split + 1
            else:
                row, split = row + 1, 0
        shares.append(done - begun)
    if done < len(todo):
        return f"nobody executes {todo[done]}"
    return "" if max(shares) - min(shares) <= 1 else f"{min(shares)} to {max(shares)} splits a CTA"
