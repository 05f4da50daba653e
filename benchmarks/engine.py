"""The standard work in both engines of the emulator, side by side in one run: milliseconds a tile, and their ratio.

    python benchmarks/engine.py [ROUNDS]

Standard work: B 4, next_n 1, H 64, D 128, context 4096, page 64, four CTAs: 128 tiles, 16,384 logits; N(0,1) and wide
data. Each round runs every engine once, so that a busy machine hurts all of them; times are CPU seconds of
this thread. Given are the medians, the smallest and greatest ratio of one round, and 148 CTAs of which 147 have no
work. About ten seconds a round on an idle machine.
"""

from __future__ import annotations

import statistics
import sys
import time

from mqa_ref.flow import FLOWS, Flow
from mqa_ref.kernel.targets import resolve
from mqa_ref.problem import Problem
from mqa_ref.verification.launch import launch
from mqa_ref.verification.problems import Recipe, make

TILES = 128
WAYS = {
    "interpreter": ("interpreter", True),
    "compiled, sanitizer on": ("compiled", True),
    "compiled, sanitizer off": ("compiled", False),
}
WORK = {
    "N(0,1)": Recipe("standard", "standard work", (4096,) * 4, 4, data="rms"),
    "wide": Recipe("standard-wide", "standard work", (4096,) * 4, 4, data="wide"),
    "148 CTAs": Recipe("empty", "one tile, 147 CTAs without work", (1,), 148),
}


def seconds(problem: Problem, engine: str, sanitize: bool) -> float:
    """CPU seconds of one launch."""
    begun = time.thread_time()
    launch(resolve("builtin"), problem, Flow.parse(FLOWS[0]), engine=engine, sanitize=sanitize)
    return time.thread_time() - begun


def main(rounds: int) -> None:
    for name, recipe in WORK.items():
        problem = make(recipe).problem
        seconds(problem, "compiled", True)  # compiles, and fills caches
        taken: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(rounds):
            for way, told in WAYS.items():
                taken[way].append(seconds(problem, *told))
        for way, times in taken.items():
            ratios = [one / other for one, other in zip(taken["interpreter"], times, strict=True)]
            unit = 1 if name == "148 CTAs" else 1e3 / TILES
            words = "s" if name == "148 CTAs" else "ms a tile"
            print(
                f"{name:9} {way:24} median {statistics.median(times) * unit:7.3f} {words}, least"
                f" {min(times) * unit:7.3f}; interpreter takes {statistics.median(ratios):5.1f} times"
                f" ({min(ratios):.1f} to {max(ratios):.1f})",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
