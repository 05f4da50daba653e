"""Compares the golden files with what the reference gives now."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from mqa_ref.errors import Fault, InputError
from mqa_ref.golden import container
from mqa_ref.golden.cases import CASES
from mqa_ref.golden.difference import differences
from mqa_ref.golden.model import Case
from mqa_ref.golden.record import record
from mqa_ref.golden.store import DATA, load_with_bytes, path_of, unused
from mqa_ref.golden.views import VIEWS
from mqa_ref.result import result_json, result_values

EXIT_PASS, EXIT_FAIL, EXIT_INPUT = 0, 1, 2

Status = Literal["pass", "fail", "error"]


@dataclass(frozen=True)
class Outcome:
    """One case. ``status``: "pass"; "fail" when the file is missing or says something else than the reference; "error"
    when the file is no golden file (truncated, damaged, renamed). ``mismatched`` counts elements, ``messages`` says
    what."""

    name: str
    kind: str
    status: Status
    logits: int
    mismatched: int
    messages: tuple[str, ...] = ()


@dataclass(frozen=True)
class GoldenReport:
    """All of them. ``unused``: names of what lies in the folder without a case."""

    outcomes: tuple[Outcome, ...]
    unused: tuple[str, ...]
    seconds: float

    @property
    def exit_code(self) -> int:
        """2 when a file is no golden file, else 1 when one is missing, differs or is unused, else 0."""
        if any(one.status == "error" for one in self.outcomes):
            return EXIT_INPUT
        failed = self.unused or any(one.status == "fail" for one in self.outcomes)
        return EXIT_FAIL if failed else EXIT_PASS

    @property
    def status(self) -> Status:
        """The verdict."""
        verdicts: tuple[Status, ...] = ("pass", "fail", "error")
        return verdicts[self.exit_code]

    def to_json(self) -> str:
        """One versioned JSON object with the fields every checking command writes."""
        plain = result_values(
            "golden check",
            status=self.status,
            exit_code=self.exit_code,
            flow=dict.fromkeys(str(view.flow) for view in VIEWS),
            cases=len(self.outcomes),
            logits=sum(one.logits for one in self.outcomes),
            mismatched=sum(one.mismatched for one in self.outcomes),
            findings=len(self.unused),
            seconds=self.seconds,
            more={"unused": self.unused, "case_list": [asdict(one) for one in self.outcomes]},
        )
        return result_json(plain)


def check(
    cases: Sequence[Case] = CASES,
    *,
    folder: Path = DATA,
    progress: Callable[[int, int, str], None] | None = None,
) -> GoldenReport:
    """Compute every case and compare it with its file, byte for byte; claims are checked too.

    With all cases, files that belong to none are reported. Raises InputError when the folder is not there.
    """
    if not folder.is_dir():
        raise InputError([Fault("folder", str(folder), "a folder with golden files")])
    begun = time.perf_counter()
    outcomes = []
    for done, case in enumerate(cases):
        if progress is not None:
            progress(done, len(cases), case.name)
        outcomes.append(check_case(case, folder))
    whole = {case.name for case in CASES} <= {case.name for case in cases}
    left = unused([case.name for case in cases], folder) if whole else ()
    return GoldenReport(tuple(outcomes), left, time.perf_counter() - begun)


def check_case(case: Case, folder: Path = DATA) -> Outcome:
    """One case against its file."""
    path = path_of(case.name, folder)
    if not path.exists() and not path.is_symlink():
        return Outcome(case.name, case.kind, "fail", 0, 1, (f"{path} is missing",))
    try:
        stored, data = load_with_bytes(case.name, folder)
    except InputError as error:
        return Outcome(case.name, case.kind, "error", 0, 1, tuple(str(fault) for fault in error.faults))
    now = record(case)
    messages = [f"claim broken: {text}" for text in now.broken]
    mismatched = len(messages)
    if data != container.encode(now.entry):
        found = differences(stored, now)
        messages += [str(one) for one in found] or ["the same content in other bytes"]
        mismatched += max(1, sum(one.changed for one in found))
    return Outcome(
        case.name, case.kind, "fail" if messages else "pass", now.logits, mismatched, tuple(messages)
    )
