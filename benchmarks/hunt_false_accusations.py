"""Thousands of small random launches of the builtin kernel, in random interleavings: none may be accused of anything.

    python benchmarks/hunt_false_accusations.py COUNT SEED

Prints progress to standard error and one line at the end: problems, logits compared, wrong bits, error findings. The
number of a problem and the seed name it for ever; the exit code is 1 when anything was found. About half a second a
problem.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from mqa_ref.flow import Flow
from mqa_ref.kernel.targets import resolve
from mqa_ref.reference import reference_logits
from mqa_ref.verification.launch import launch
from mqa_ref.verification.problems import Recipe, make
from mqa_ref.verification.words import below

EDGES = (0, 1, 2, 63, 64, 65, 127, 128, 129, 191, 255, 256, 257, 300, 383, 384, 385, 511, 512, 513)
DATA = ("rms", "amax", "wide", "bits", "nan_keys", "special_scales", "plain_scales", "overflow", "fma_ties")
ORDERS = ("eager", "lazy", "random", "systematic")
SHAPES = ((64, 64, 1), (64, 32, 2), (128, 64, 1), (128, 32, 1), (64, 64, 2), (32, 32, 1))


def recipe(seed: int, number: int) -> tuple[Recipe, str, int]:
    """The problem of this number, the order in which it runs and the order's seed."""
    draw = iter(below(f"accusations/{seed}/{number}", 64, 1 << 30).tolist())
    pick = lambda options: options[next(draw) % len(options)]  # noqa: E731
    page, heads, next_n = pick(SHAPES)
    rows = 1 + next(draw) % 4
    lengths = tuple(pick(EDGES) if next(draw) % 2 else next(draw) % 520 for _ in range(rows))
    made = Recipe(
        f"accusations-{seed}-{number}",
        "random",
        lengths,
        pick((1, 2, 3, 5)),
        page=page,
        heads=heads,
        next_n=next_n,
        data=pick(DATA),
        order=pick(("in_order", "shuffled", "descending", "repeated")),
        rest=pick(("zeros", "tight", "garbage")),
        form=pick(("forward", "reversed")),
    )
    return made, pick(ORDERS), next(draw)


def main(count: int, seed: int) -> int:
    flow, target = Flow.parse("fp32-fp32-fp32"), resolve("builtin")
    logits = wrong = accused = 0
    begun = time.perf_counter()
    for number in range(count):
        made, order, order_seed = recipe(seed, number)
        problem = make(made).problem
        outcome = launch(target, problem, flow, order=order, seed=order_seed)
        expected, valid = reference_logits(problem, flow)
        got = outcome.logits[:, : problem.max_context_len]
        bad = valid & ((got != expected) | ~outcome.written[:, : problem.max_context_len])
        nan = lambda bits: (bits & 0x7FFFFFFF) > 0x7F800000  # noqa: E731
        bad &= ~(nan(got) & nan(expected) & outcome.written[:, : problem.max_context_len])
        errors = [finding for finding in outcome.findings if finding.severity == "error"]
        logits, wrong, accused = (
            logits + int(valid.sum()),
            wrong + int(np.count_nonzero(bad)),
            accused + len(errors),
        )
        if errors or bad.any():
            print(
                f"number {number}: {made}, {order} {order_seed}: {int(bad.sum())} wrong, {errors}", flush=True
            )
        if number % 50 == 0:
            print(f"{number}/{count} {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
    print(f"{count} problems from seed {seed}, {logits} logits, {wrong} wrong, {accused} error findings")
    return int(bool(wrong or accused))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
