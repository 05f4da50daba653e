"""Thousands of small random launches of a right kernel, in random interleavings: none may be accused of anything.

    python benchmarks/hunt_false_accusations.py COUNT SEED [--schedules N] [--kernel NAME] [--known KIND ...]

Each launch of the builtin kernel draws its shape, options, lengths and data, and runs in a drawn order and in N - 1
more seeds of the order random, in which every other wait for an mbarrier that would block gives up first. Another
kernel (of the shapes of DeepGEMM's) is right but for the findings that are known of it: their kinds do not count.

Prints progress to standard error and one line at the end: launches, logits compared, wrong bits, error findings. The
number of a problem and the seed name it for ever; the exit code is 1 when anything was found. About half a second a
problem and schedule.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mqa_ref.flow import Flow
from mqa_ref.kernel.targets import resolve
from mqa_ref.numerics import FORMATS, is_nan
from mqa_ref.reference import reference_logits
from mqa_ref.verification.launch import launch
from mqa_ref.verification.problems import Recipe, make
from mqa_ref.verification.words import below

EDGES = (0, 1, 2, 63, 64, 65, 127, 128, 129, 191, 255, 256, 257, 300, 383, 384, 385, 511, 512, 513)
DATA = ("rms", "amax", "wide", "bits", "nan_keys", "special_scales", "plain_scales", "overflow", "fma_ties")
ORDERS = ("eager", "lazy", "random", "systematic")
SHAPES = ((64, 64, 1), (64, 32, 2), (128, 64, 1), (128, 32, 1), (64, 64, 2), (32, 32, 1))
DEEPGEMM_SHAPES = ((64, 64, 1), (64, 32, 2), (64, 32, 1), (64, 64, 2))
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"max_w_in_reg": 16},
    {"early_tmem_copy": True},
    {"remove_kv_wait_in_epilogue": True},
    {"num_epi_subtiles": 2},
    {"num_epi_subtiles": 4, "max_w_in_reg": 0},
)
One = TypeVar("One")


def pick(draw: Iterator[int], options: Sequence[One]) -> One:
    return options[next(draw) % len(options)]


def recipe(seed: int, number: int, shapes: Sequence[tuple[int, int, int]]) -> tuple[Recipe, str, int]:
    """The problem of this number, the order in which it runs first and the order's seed."""
    draw = iter(below(f"accusations/{seed}/{number}", 64, 1 << 30).tolist())
    page, heads, next_n = pick(draw, shapes)
    rows = 1 + next(draw) % 4
    lengths = tuple(pick(draw, EDGES) if next(draw) % 2 else next(draw) % 520 for _ in range(rows))
    made = Recipe(
        f"accusations-{seed}-{number}",
        "random",
        lengths,
        pick(draw, (1, 2, 3, 5)),
        page=page,
        heads=heads,
        next_n=next_n,
        data=pick(draw, DATA),
        order=pick(draw, ("in_order", "shuffled", "descending", "repeated")),
        rest=pick(draw, ("zeros", "tight", "garbage")),
        form=pick(draw, ("forward", "reversed")),
    )
    return made, pick(draw, ORDERS), next(draw)


def wrong_bits(
    got: NDArray[Any], written: NDArray[np.bool_], expected: NDArray[Any], valid: NDArray[np.bool_], out: str
) -> int:
    """Valid logits that are not there or have other bits; NaNs are one class."""
    nan = is_nan(got, FORMATS[out]) & is_nan(expected, FORMATS[out])
    return int(np.count_nonzero(valid & (~written | ((got != expected) & ~nan))))


def main(count: int, seed: int, schedules: int, kernel: str, known: Sequence[str]) -> int:
    flow, target = Flow.parse("fp32-fp32-fp32"), resolve(kernel)
    own = kernel == "builtin"
    launches = logits = wrong = accused = 0
    begun = time.perf_counter()
    for number in range(count):
        made, order, order_seed = recipe(seed, number, SHAPES if own else DEEPGEMM_SHAPES)
        options = OPTIONS[number // 8 % len(OPTIONS)] if own else {}
        problem = make(made).problem
        declared: Any = target.declared
        told = {"generation": declared.generation, "order": declared.order}
        expected, valid = reference_logits(problem, flow, declared.machine, **told)
        for schedule in range(schedules):
            how = (order, order_seed) if not schedule else ("random", order_seed + schedule)
            outcome = launch(target, problem, flow, order=how[0], seed=how[1], options=options)
            width = problem.max_context_len
            bad = wrong_bits(outcome.logits[:, :width], outcome.written[:, :width], expected, valid, flow.out)
            errors = [f for f in outcome.findings if f.severity == "error"]
            errors = [f for f in errors if f.kind not in known]
            launches, logits = launches + 1, logits + int(valid.sum())
            wrong, accused = wrong + bad, accused + len(errors)
            if errors or bad:
                print(f"number {number}: {made}, {options}, {how}: {bad} wrong, {errors}", flush=True)
        if number % 50 == 0:
            print(f"{number}/{count} {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
    print(
        f"{count} problems of {kernel} from seed {seed}, {launches} launches, {logits} logits, {wrong} wrong,"
        f" {accused} error findings"
    )
    return int(bool(wrong or accused))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("count", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("--schedules", type=int, default=1)
    parser.add_argument("--kernel", default="builtin")
    parser.add_argument("--known", nargs="*", default=[])
    given = parser.parse_args()
    sys.exit(main(given.count, given.seed, given.schedules, given.kernel, given.known))
