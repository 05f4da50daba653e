"""One launch under trial: the kernel, the inputs, what the reference expects, and further launches on demand.

A property gets a ``Trial`` and gives back ``Failure``s; nothing here knows how the launch was drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.compare import compare
from mqa_ref.compare.classes import EQUAL, KINDS, classify
from mqa_ref.findings import Finding
from mqa_ref.flow import Flow
from mqa_ref.fuzz.subject import Subject
from mqa_ref.launch import Launch
from mqa_ref.numerics import FORMATS, MachineModel, is_nan
from mqa_ref.problem import Problem
from mqa_ref.reference import Generation, reference_logits
from mqa_ref.reference.orders import SumOrder
from mqa_ref.verification.derived import derive, written_by_others
from mqa_ref.verification.ledger import Ledger
from mqa_ref.verification.runner import Launcher

CASE = "fuzz"
"""What a ledger is told as the name of a drawn launch, which has none."""
EMULATED = "sm100"


@dataclass(frozen=True)
class Failure:
    """One thing that went wrong. ``promise``: which one is broken; ``kind``: how (the class of difference, the id
    of a finding, the type of an exception); ``message``: one sentence for people."""

    promise: str
    kind: str
    message: str

    @property
    def name(self) -> str:
        """The class of failure: what is minimised and reported once."""
        return f"{self.promise}:{self.kind}"


@dataclass
class Trial:
    """A launch and what belongs to it. ``brief``: the classes of wrong bits are told, not where they are nor what gives
    them, which takes long. ``problem``, ``flow``, ``options``, ``order``, ``seed`` are the launch's.

    ``machine``, ``generation``, ``sums``: of the reference, the last one the order in which it adds heads. ``kernel``:
    the name under which findings are judged. ``launches`` counts what was run.
    """

    launcher: Launcher
    subject: Subject
    kernel: str = "builtin"
    machine: str | MachineModel = "sm100"
    generation: Generation = "folded"
    ledger: Ledger | None = None
    brief: bool = False
    launches: int = 0
    logits: int = 0
    sums: SumOrder = "four_chains"
    _first: Launch | None = field(default=None, repr=False)

    @property
    def problem(self) -> Problem:
        """The inputs."""
        return self.subject.problem

    @property
    def flow(self) -> Flow:
        """The dtype flow."""
        return self.subject.flow

    @property
    def first(self) -> Launch:
        """The launch itself, run once."""
        if self._first is None:
            self._first = self.run(self.problem)
        return self._first

    def run(
        self,
        problem: Problem,
        *,
        options: Mapping[str, Any] | None = None,
        order: str | None = None,
        seed: int | None = None,
    ) -> Launch:
        """Another launch; what is not given is as in the first one. Raises what the launcher raises."""
        self.launches += 1
        chosen = self.subject.options if options is None else options
        return self.launcher(
            problem,
            self.flow,
            machine=EMULATED,
            order=self.subject.order if order is None else order,
            seed=self.subject.seed if seed is None else seed,
            options=dict(chosen) or None,
        )

    def expected(self, problem: Problem) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Bits and validity by the reference."""
        return reference_logits(problem, self.flow, self.machine, generation=self.generation, order=self.sums)

    def judge(self, problem: Problem, launch: Launch) -> list[Failure]:
        """Bits against the reference, and findings."""
        bits, valid = self.expected(problem)
        if self.brief and self._wrong(launch, bits, valid):
            findings = (*launch.findings, *written_by_others(problem, launch))
            return self._wrong(launch, bits, valid) + self.found(findings)
        told = compare(
            bits, valid, launch, problem, self.flow, machine=self.machine, generation=self.generation
        )
        self.logits += told.compared
        failures = []
        for kind, count in told.counts.items():
            if count:
                place = next((str(one) for one in told.first if one.kind == kind), "")
                cause = f"; the bits are those of {told.suspects[0]}" if told.suspects else ""
                message = f"{count} of {told.compared} logits: {place}{cause}"
                failures.append(Failure("bits", kind, message))
        findings = (*launch.findings, *derive(self.kernel, problem, launch, told))
        return failures + self.found(findings)

    def _wrong(self, launch: Launch, bits: NDArray[Any], valid: NDArray[np.bool_]) -> list[Failure]:
        """The classes of wrong bits, without more."""
        got, written = launch.logits[:, : bits.shape[1]], launch.written[:, : bits.shape[1]]
        at = np.nonzero(((got != bits) | ~written) & valid)
        codes = np.unique(classify(got[at], bits[at], written[at], FORMATS[self.flow.out]))
        return [Failure("bits", KINDS[code], "") for code in codes.tolist() if code != EQUAL]

    def found(self, findings: Iterable[Finding]) -> list[Failure]:
        """The findings that fail, as failures."""
        return [Failure("finding", one.id, str(one)) for one in self.failing(findings)]

    def failing(self, findings: Iterable[Finding], case: str = CASE) -> tuple[Finding, ...]:
        """The findings of a launch that are errors and that the ledger does not know; ``case``: what it is told as the
        launch's name."""
        if self.ledger is not None:
            findings = self.ledger.mark(self.kernel, case, findings)
        return tuple(one for one in findings if one.fails)

    def same(
        self,
        name: str,
        launch: Launch,
        bits: NDArray[Any],
        mask: NDArray[np.bool_],
        *,
        words: str,
    ) -> list[Failure]:
        """The valid logits of a launch against others, NaN as one class, and its findings. ``bits``, ``mask``: [rows,
        columns]; ``name``: the property that wants them equal; ``words``: what was changed."""
        fmt = FORMATS[self.flow.out]
        got = launch.logits[:, : bits.shape[1]]
        failures = self.found(launch.findings)
        unwritten = mask & ~launch.written[:, : bits.shape[1]]
        if unwritten.any():
            row, column = (int(place[0]) for place in np.nonzero(unwritten))
            count = int(np.count_nonzero(unwritten))
            failures.append(Failure(name, "unwritten", f"{count} logits, first [{row}, {column}]: {words}"))
        differ = (got != bits) & ~(is_nan(got, fmt) & is_nan(bits, fmt)) & mask & ~unwritten
        if differ.any():
            row, column = (int(place[0]) for place in np.nonzero(differ))
            told = f"first [{row}, {column}]: {int(bits[row, column]):#x} became {int(got[row, column]):#x}"
            count = int(np.count_nonzero(differ))
            failures.append(Failure(name, "value", f"{count} logits, {told}: {words}"))
        return failures

    def valid_bits(self) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The first launch's logits [rows, max_context_len] and which of them are valid."""
        mask = self.problem.valid_mask()
        return self.first.logits[:, : mask.shape[1]], mask
