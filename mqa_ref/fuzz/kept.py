"""Failing cases of ``mqa-ref verify`` as case files, which ``mqa-ref replay`` and ``mqa-ref explain`` take.

A case is written as soon as it has failed, so that no later end of the process loses it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mqa_ref.fuzz.casefile import Case, write_case
from mqa_ref.fuzz.subject import Subject
from mqa_ref.kernel.targets import Declared
from mqa_ref.numerics import MachineModel
from mqa_ref.verification.evidence import Seen

MOST_KEPT = 6
"""Failing launches that are kept; a kernel that is wrong everywhere needs no more."""


@dataclass
class Keeper:
    """Called with every case of a run; writes the first that fail into ``folder``, each launch and class of failure
    once. ``left_out``: failing cases that were not written, since there are so many or since a replay could not judge
    them."""

    folder: Path
    kept: list[Path] = field(default_factory=list)
    left_out: int = 0
    kernel: str = ""

    def __call__(self, seen: Seen) -> None:
        """Take in one case."""
        if seen.result.status != "fail":
            return
        case = case_of(seen)
        if case is not None and self.folder / case.file_name in self.kept:
            return
        if case is None or len(self.kept) >= MOST_KEPT:
            self.left_out += 1
            return
        self.kernel = case.kernel
        self.folder.mkdir(parents=True, exist_ok=True)
        self.kept.append(write_case(self.folder, case))

    def lines(self) -> Iterator[str]:
        """For people: each file with the commands that take it."""
        for path in self.kept:
            yield f"case file {path}"
            for what, command in (("REPRO", "replay"), ("EXPLAIN", "explain")):
                yield f"  {what}: {shlex.join(['mqa-ref', command, str(path), '--kernel', self.kernel])}"
        if self.left_out:
            yield f"{self.left_out} failing cases more have no case file; their REPRO lines are above"


def case_of(seen: Seen) -> Case | None:
    """The case that a replay judges as the run did: same inputs, flow, interleaving, reference. None where a replay
    would judge it otherwise: a kernel held to a bound or to an order of its own, a machine model that has no name,
    options that a case file does not hold."""
    own, step = seen.request.own, seen.step
    machine = seen.request.machine or own.declared.machine
    options = {name: value for name, value in own.options_for(step.problem).items() if value is not None}
    if (
        own.declared.order != Declared().order
        or own.edit_ptx is not None
        or isinstance(machine, MachineModel)
    ):
        return None
    if any(type(value) not in (int, bool, str) for value in options.values()):
        return None
    order = step.order if seen.request.backend == "emulator" else "eager"
    failure, message = failure_of(seen)
    return Case(
        Subject(seen.problem, seen.flow, options, order, step.seed),
        machine=machine,
        generation=own.generation,
        kernel=own.kernel,
        failure=failure,
        message=message.encode("ascii", "replace").decode()[:1000],
    )


def failure_of(seen: Seen) -> tuple[str, str]:
    """The class of a failure in the words of ``mqa_ref.fuzz.trial``, and a sentence: wrong bits before findings."""
    compared = seen.result.comparison
    if compared is not None and not compared.equal:
        kind = next(name for name, count in compared.counts.items() if count)
        first = str(compared.first[0]) if compared.first else ""
        return f"bits:{kind}", f"{compared.mismatched} of {compared.compared} logits: {first}"
    finding = seen.result.errors[0]
    return f"finding:{finding.id.encode('ascii', 'replace').decode()[:200]}", str(finding)
