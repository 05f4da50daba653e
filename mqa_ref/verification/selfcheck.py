"""The oracles against each other: arithmetic against its scalar twin, and sampled logits of every named
problem likewise."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from mqa_ref.compare.bits import hex_word
from mqa_ref.errors import Fault, InputError
from mqa_ref.flow import Flow
from mqa_ref.numerics import FORMATS
from mqa_ref.numerics import selfcheck as arithmetic
from mqa_ref.reference import GENERATIONS, SUPPORTED_FLOWS, Generation, reference_logits, scalar_logit
from mqa_ref.report.model import EXIT_ORACLE, EXIT_PASS
from mqa_ref.result import Status, result_json, result_values
from mqa_ref.verification.problems import NamedProblem, quick
from mqa_ref.verification.words import below

MACHINE = "sm100"


@dataclass(frozen=True)
class Check:
    """One comparison of two oracles: how many results, how many differ, and the first difference in words."""

    name: str
    tried: int
    differing: int
    first: str = ""


@dataclass(frozen=True)
class SelfCheck:
    """All of them. ``logits``: how many of the results are logits."""

    checks: tuple[Check, ...]
    logits: int
    seed: int
    seconds: float

    @property
    def tried(self) -> int:
        """Results compared."""
        return sum(check.tried for check in self.checks)

    @property
    def differing(self) -> int:
        """Results that differ."""
        return sum(check.differing for check in self.checks)

    @property
    def status(self) -> Status:
        """ "pass", or "error": with a broken oracle there is no verdict."""
        return "error" if self.differing or not self.tried else "pass"

    @property
    def exit_code(self) -> int:
        """0, or 3 when oracles disagree."""
        return EXIT_PASS if self.status == "pass" else EXIT_ORACLE

    def to_json(self) -> str:
        """One versioned JSON object with the fields every checking command writes."""
        plain = result_values(
            "selfcheck",
            status=self.status,
            exit_code=self.exit_code,
            flow=SUPPORTED_FLOWS,
            cases=len(self.checks),
            logits=self.logits,
            mismatched=self.differing,
            findings=0,
            seed=self.seed,
            seconds=self.seconds,
            more={"case_list": [asdict(check) for check in self.checks]},
        )
        return result_json(plain)


def check_logits(case: NamedProblem, flow: Flow, generation: Generation, samples: int, seed: int) -> Check:
    """``samples`` valid logits of one problem, vectorised against scalar; NaN against NaN counts as equal."""
    problem, fmt = case.problem, FORMATS[flow.out]
    bits, valid = reference_logits(problem, flow, MACHINE, generation=generation)
    rows, columns = np.nonzero(valid)
    label = f"selfcheck/{seed}/{case.name}/{flow}/{generation}"
    wrong = []
    places = below(label, min(samples, rows.size), max(1, rows.size))
    for row, column in zip(rows[places].tolist(), columns[places].tolist(), strict=True):
        fast = int(bits[row, column])
        slow = scalar_logit(problem, flow, MACHINE, row, column, generation)
        if fast != slow and not (fmt.is_nan(fast) and fmt.is_nan(slow)):
            wrong.append(f"row {row} column {column}: {hex_word(fast, fmt)} against {hex_word(slow, fmt)}")
    return Check(
        f"logits/{case.name}/{flow}/{generation}", places.size, len(wrong), wrong[0] if wrong else ""
    )


def plan() -> list[tuple[NamedProblem, Flow, Generation]]:
    """What is sampled: every problem in the first way there is, and in two more that go round all the ways,
    flow by flow and generation by generation; scalar logits are slow, and so the problems share the ways
    among them."""
    ways = [(Flow.parse(flow), generation) for flow in SUPPORTED_FLOWS for generation in GENERATIONS]
    chosen = []
    for index, case in enumerate(quick()):
        turns = {0, (2 * index + 1) % len(ways), (2 * index + 2) % len(ways)}
        chosen += [(case, *ways[turn]) for turn in sorted(turns)]
    return chosen


def selfcheck(
    *, seed: int = 0, samples: int = 2, progress: Callable[[int, int, str], None] | None = None
) -> SelfCheck:
    """Every arithmetic operation, and ``samples`` logits for each line of ``plan``.

    Raises InputError for a negative ``seed`` or fewer than one sample.
    """
    faults = [
        Fault(name, str(value), f"an integer, at least {least}")
        for name, value, least in (("seed", seed, 0), ("samples", samples, 1))
        if value < least
    ]
    if faults:
        raise InputError(faults)
    begun = time.perf_counter()
    todo = plan()
    if progress is not None:
        progress(0, len(todo) + 1, "arithmetic")
    checks = [Check(name, *counts) for name, counts in arithmetic.run(seed=seed).items()]
    sampled = []
    for done, (case, flow, generation) in enumerate(todo, start=1):
        if progress is not None:
            progress(done, len(todo) + 1, case.name)
        sampled.append(check_logits(case, flow, generation, samples, seed))
    return SelfCheck(
        tuple(checks + sampled), sum(check.tried for check in sampled), seed, time.perf_counter() - begun
    )
