"""One mutant on the ladder: what gives it away first, and how."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mqa_ref.errors import EmulatorError, InputError, KernelError, KernelTimeout, NotAvailable, Unsupported
from mqa_ref.fuzz.always import written_where_promised
from mqa_ref.fuzz.mutants.ladder import Rung
from mqa_ref.fuzz.trial import Failure, Trial
from mqa_ref.problem import Problem
from mqa_ref.reference import reference_logits
from mqa_ref.verification.runner import Launcher

Outcome = Literal["value", "finding", "time-out", "refused", "fault", "survived"]
CAUGHT: tuple[Outcome, ...] = ("value", "finding", "time-out")
_ENDLESS = ("hang", "runaway")
OVERDUE = "no end within the time limit"
_SHOWN = 240


@dataclass(frozen=True)
class Verdict:
    """What came of a mutant. ``rung``: where it was given away ("" if nowhere). ``signs``: the classes of failure
    there. ``launches``: rungs that it ran on.

    "value": wrong bits, or bits written where none belong or missing. "finding": right bits, and a hazard that the
    emulator saw. "time-out": a hang, more instructions than the launch can need, or no end within the time limit.
    "refused": what the emulator does not parse or model, which is no mutant. "fault": an exception that nobody meant.
    """

    id: str
    outcome: Outcome
    rung: str = ""
    signs: tuple[str, ...] = ()
    message: str = ""
    launches: int = 0
    seconds: float = 0.0

    @property
    def caught(self) -> bool:
        """Did a check notice it?"""
        return self.outcome in CAUGHT


@dataclass
class Known(Trial):
    """A trial whose expectation was worked out before: the same for every mutant."""

    answer: tuple[NDArray[Any], NDArray[np.bool_]] | None = field(default=None, repr=False)

    def expected(self, problem: Problem) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Bits and validity."""
        return super().expected(problem) if self.answer is None else self.answer


@dataclass(frozen=True)
class Step:
    """A rung with what the reference expects there."""

    rung: Rung
    answer: tuple[NDArray[Any], NDArray[np.bool_]] = field(repr=False)


def prepared(
    rungs: Iterable[Rung], machine: str = "sm100", generation: str = "folded", order: str = "four_chains"
) -> tuple[Step, ...]:
    """The rungs with what a kernel that declares this of itself must give."""
    told: Any = {"generation": generation, "order": order}
    return tuple(
        Step(one, reference_logits(one.subject.problem, one.subject.flow, machine, **told)) for one in rungs
    )


def failures_on(launch: Launcher, step: Step, kernel: str) -> list[Failure]:
    """Everything that one launch shows. Raises what the launcher raises."""
    trial = Known(launch, step.rung.subject, kernel, brief=True, answer=step.answer)
    return [*trial.judge(trial.problem, trial.first), *written_where_promised(trial)]


def climb(
    name: str,
    launch: Launcher,
    steps: Sequence[Step],
    kernel: str = "builtin",
    *,
    look: Callable[[Launcher, Step, str], list[Failure]] = failures_on,
) -> Verdict:
    """Run a mutant up the ladder to the first failure. Raises NotAvailable, which no mutant causes."""
    begun = time.monotonic()

    def verdict(
        outcome: Outcome, step: Step | None, count: int, signs: Sequence[str] = (), text: str = ""
    ) -> Verdict:
        where = "" if step is None else step.rung.name
        seconds = time.monotonic() - begun
        return Verdict(name, outcome, where, tuple(dict.fromkeys(signs)), text[:_SHOWN], count, seconds)

    for number, step in enumerate(steps, 1):
        try:
            failures = look(launch, step, kernel)
        except KernelTimeout as error:
            return verdict("time-out", step, number, [OVERDUE], str(error))
        except (EmulatorError, Unsupported, InputError) as error:
            return verdict("refused", step, number, [type(error).__name__], str(error))
        except NotAvailable:
            raise
        except KernelError as error:
            return verdict("fault", step, number, [type(error).__name__], str(error))
        if failures:
            signs = [one.name for one in failures]
            return verdict(_outcome(failures), step, number, signs, failures[0].message)
    return verdict("survived", None, len(steps))


def _outcome(failures: Sequence[Failure]) -> Outcome:
    found = [one for one in failures if one.promise == "finding"]
    if any(one.kind.partition("@")[0] in _ENDLESS for one in found):
        return "time-out"
    return "finding" if len(found) == len(failures) else "value"
