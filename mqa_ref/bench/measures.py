"""What is measured: a table of functions, one for each line of the benchmark."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from mqa_ref.bench import work
from mqa_ref.bench.race import Work, quartiles, race
from mqa_ref.bench.results import Line, Target, of_race
from mqa_ref.compare import compare
from mqa_ref.flow import Flow
from mqa_ref.kernel.targets import resolve
from mqa_ref.launch import Launch
from mqa_ref.numerics import canonical_nan
from mqa_ref.numerics.formats import FORMATS
from mqa_ref.problem import Problem
from mqa_ref.reference import reference_logits
from mqa_ref.reference.epilogue import apply
from mqa_ref.reference.runs import runs
from mqa_ref.verification.launch import launch

FLOW = Flow.parse("fp32-fp32-fp32")
_HUGE = (256, 65_536)
"""Batch and context of the memory measurement."""
FUZZED = 384
"""Examples of the measured campaign."""


def reference_normal(rounds: int) -> Line:
    """Normally distributed data: nothing is cut."""
    problem = work.standard("rms")
    found = race(lambda: reference_logits(problem, FLOW), work.torch_logits(problem), rounds)
    target = Target("times the plain torch reference", 2.0)
    return of_race("reference-normal", "reference, standard work, normal data", target, found)


def reference_wide(rounds: int) -> Line:
    """All exponents: every block is cut term by term, and its bits are those of MMA-Sim."""
    problem = work.standard("wide", 1, 2 * work.TILE)
    peer = work.mmasim_dots(problem)
    found = race(lambda: reference_logits(problem, FLOW), peer, rounds)
    target = Target("times faster than MMA-Sim", 100.0, at_most=False)
    line = of_race("reference-wide", "reference, 2 tiles, wide data, same bits", target, found, faster=True)
    (run,) = runs(problem)
    dots = peer().reshape(problem.next_n, problem.heads, -1)
    bits, mask = reference_logits(problem, FLOW)
    expected = apply(FLOW, dots, run.weights, run.scales, "folded")[:, : bits.shape[1]]
    wrong = (canonical_nan(bits, FORMATS["fp32"]) != canonical_nan(expected, FORMATS["fp32"])) & mask
    return replace(line, logits=int(mask.sum()), mismatched=int(wrong.sum()))


def reference_linear(rounds: int) -> Line:
    """The time of a tile in a problem four times as large."""
    large, small = work.standard("rms"), work.standard("rms", 1)
    found = race(lambda: reference_logits(large, FLOW), lambda: reference_logits(small, FLOW), rounds)
    target = Target("times a tile's time with a quarter of the tiles", 1.25)
    return of_race("reference-linear", "reference, cost of a tile", target, found, factor=1 / work.BATCH)


def reference_memory(rounds: int) -> Line:
    """One launch of 131,072 tiles in a process of its own; ``rounds`` does not matter to memory."""
    del rounds
    command = [sys.executable, "-m", "mqa_ref.bench.memory", *map(str, _HUGE)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    used, seconds = float(told[0]), float(told[1])
    target = Target("GiB of the process beside the result", 2.0)
    return Line("reference-memory", "reference, B 256, context 65,536", target, used, used, used, seconds)


def comparison(rounds: int) -> Line:
    """The verdict on one launch beside torch.testing.assert_close."""
    import torch

    problem = work.standard("rms")
    bits, mask = reference_logits(problem, FLOW)
    wide = np.zeros((problem.rows, problem.row_stride), bits.dtype)
    wide[:, : bits.shape[1]] = bits
    got = Launch(
        logits=wide, written=np.ones(wide.shape, np.bool_), findings=(), ctas=0, instructions=0, seconds=0.0
    )
    left, right = (torch.from_numpy(bits.view(np.float32).copy()) for _ in range(2))
    found = race(
        lambda: compare(bits, mask, got, problem, FLOW),
        lambda: torch.testing.assert_close(left, right),
        rounds,
    )
    target = Target("times torch.testing.assert_close")
    return of_race("compare", "comparison of the standard work, all equal", target, found)


def _launch(problem: Problem, engine: str = "compiled", *, sanitize: bool = True) -> Work:
    target = resolve("builtin")
    return lambda: launch(target, problem, FLOW, engine=engine, sanitize=sanitize)


def _times(do: Work, rounds: int, factor: float = 1.0) -> tuple[float, float, float]:
    """Median and quartiles of ``factor`` times the seconds, the first run not counted."""
    do()
    times = []
    for _ in range(rounds):
        begun = time.perf_counter()
        do()
        times.append(factor * (time.perf_counter() - begun))
    low, middle, high = quartiles(times)
    return middle, low, high


FEW = 2
"""CTAs of the lines that measure a tile; ``verify-standard`` has 148, of which 64 have work."""


def _engines(rounds: int, name: str, *, sanitize: bool) -> Line:
    problem = work.standard("rms", ctas=FEW)
    ours, theirs = (_launch(problem, engine, sanitize=sanitize) for engine in ("compiled", "interpreter"))
    found = race(ours, theirs, min(rounds, 3))
    target = Target("times faster than the interpreter", 10.0, at_most=False)
    words = f"emulator, 128 tiles, {FEW} CTAs, sanitizer {'on' if sanitize else 'off'}"
    return of_race(name, words, target, found, faster=True)


def emulator_engines(rounds: int) -> Line:
    """The compiled engine beside the interpreter, its judge; sanitizer off."""
    return _engines(rounds, "emulator-engines", sanitize=False)


def emulator_engines_on(rounds: int) -> Line:
    """The same with the sanitizer."""
    return _engines(rounds, "emulator-engines-on", sanitize=True)


def emulator_off(rounds: int) -> Line:
    """A tile without the sanitizer, on so few CTAs that their own cost does not show."""
    numbers = _times(
        _launch(work.standard("rms", ctas=FEW), sanitize=False), min(rounds, 3), 1e3 / work.TILES
    )
    return Line("emulator-off", "emulator, sanitizer off", Target("ms a tile", 1.5), *numbers)


def emulator_on(rounds: int) -> Line:
    """A tile with the sanitizer, on so few CTAs that their own cost does not show."""
    numbers = _times(_launch(work.standard("rms", ctas=FEW)), min(rounds, 3), 1e3 / work.TILES)
    return Line("emulator-on", "emulator, sanitizer on", Target("ms a tile", 6.0), *numbers)


def emulator_idle(rounds: int) -> Line:
    """148 CTAs of which one has a token."""
    numbers = _times(_launch(work.idle()), rounds)
    return Line("emulator-idle", "emulator, 148 CTAs, one token", Target("s", 0.2), *numbers)


def verified(rounds: int) -> Line:
    """Reference, launch and comparison of the standard work, compiled before."""
    problem = work.standard("rms")
    run = _launch(problem)
    wrong = []

    def verify() -> None:
        bits, mask = reference_logits(problem, FLOW)
        wrong.append(compare(bits, mask, run(), problem, FLOW).mismatched)

    numbers = _times(verify, min(rounds, 3))
    line = Line("verify-standard", "standard work verified", Target("s", 1.5), *numbers)
    return replace(line, logits=problem.rows * problem.max_context_len, mismatched=max(wrong))


def fuzzing(rounds: int) -> Line:
    """Generated launches on two processes, kernels compiled before where the cache keeps them; as many launches as half
    a minute has time for, since what processes do once counts too."""
    del rounds
    from mqa_ref.fuzz.campaign import Campaign
    from mqa_ref.fuzz.runner import run_campaign

    run_campaign(Campaign(), max_examples=FUZZED, workers=2)
    report = run_campaign(Campaign(), max_examples=FUZZED, workers=2)
    rate = 60.0 * report.totals.examples / report.seconds
    target = Target("examples a minute", 1000.0, at_most=False)
    return Line("fuzz-rate", "fuzzing, two processes", target, rate, rate, rate, report.seconds)


def start_up(rounds: int) -> Line:
    """Start of ``mqa-ref --help`` by the wall clock, an empty program's beside it."""

    def run(*arguments: str) -> Work:
        return lambda: subprocess.run([sys.executable, *arguments], capture_output=True, check=True)

    numbers = _times(run("-m", "mqa_ref", "--help"), 2 * rounds)
    theirs, _, _ = _times(run("-c", "pass"), 2 * rounds)
    return Line("start-up", "mqa-ref --help", Target("s", 0.3), *numbers, numbers[0], theirs)


MEASURES: Mapping[str, Callable[[int], Line]] = {
    "reference-normal": reference_normal,
    "reference-wide": reference_wide,
    "reference-linear": reference_linear,
    "reference-memory": reference_memory,
    "compare": comparison,
    "emulator-engines": emulator_engines,
    "emulator-engines-on": emulator_engines_on,
    "emulator-off": emulator_off,
    "emulator-on": emulator_on,
    "emulator-idle": emulator_idle,
    "verify-standard": verified,
    "fuzz-rate": fuzzing,
    "start-up": start_up,
}
"""By name; each takes how many rounds it shall run and gives its line."""


def measure(name: str, rounds: int) -> Line:
    """One line; without a peer that is not installed, one that says so."""
    from mqa_ref.errors import NotAvailable

    try:
        return MEASURES[name](rounds)
    except (NotAvailable, ImportError) as error:
        return Line(name, MEASURES[name].__doc__ or "", Target(""), absent=str(error))
