"""A ledger of known findings: what is known of a kernel fails no run, and what is expected and no longer there does.

The file is TOML, with one table ``[[known]]`` for each entry; docs/findings.md shows one.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mqa_ref.errors import Fault, InputError
from mqa_ref.findings import Finding
from mqa_ref.report import CaseResult

Text = Annotated[str, Field(min_length=1)]


class Known(BaseModel):
    """One known finding.

    ``id``: what people call it. ``kernel``: pattern of the kernel's name, or several. ``kind``: of the finding.
    ``source``: pattern of the "file:line" it comes from, None for any, also for none. ``cases``: patterns of the names
    of the problems that show it, none for any problem. ``always``: False for a finding that hangs on more than the
    case's name, such as the lengths of "given"; a run may show it or not. ``reason``: why it is accepted. ``link``:
    where it is tracked. Patterns are those of file names (``*``, ``?``).
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    id: Text
    kernel: Text | Annotated[list[Text], Field(min_length=1)]
    kind: Text
    reason: Text
    link: Text
    source: Text | None = None
    cases: list[Text] = []
    always: bool = True

    def speaks_of(self, kernel: str) -> bool:
        """Whether this is known of a kernel of that name."""
        patterns = [self.kernel] if isinstance(self.kernel, str) else self.kernel
        return any(fnmatchcase(kernel, pattern) for pattern in patterns)

    def covers(self, kernel: str, case: str, finding: Finding) -> bool:
        """Whether a finding of a case is this one."""
        source = self.source is None or (
            finding.source is not None and fnmatchcase(finding.source, self.source)
        )
        return source and self.in_case(case) and finding.kind == self.kind and self.speaks_of(kernel)

    def in_case(self, case: str) -> bool:
        """Whether this is known of a problem, or a property, of that name."""
        return not self.cases or any(fnmatchcase(case, pattern) for pattern in self.cases)

    def expected(self, kernel: str, ran: set[str]) -> bool:
        """Whether a run of these cases must show it."""
        return self.always and self.speaks_of(kernel) and any(map(self.in_case, ran))


class Ledger(BaseModel):
    """All entries of a file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    known: list[Known] = []

    def mark(self, kernel: str, case: str, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """The findings of a case; those that an entry covers carry the id of the first one that does."""
        marked = []
        for finding in findings:
            entry = next((one for one in self.known if one.covers(kernel, case, finding)), None)
            marked.append(finding if entry is None else replace(finding, known=entry.id))
        return tuple(marked)

    def unseen(self, kernel: str, results: Iterable[CaseResult]) -> tuple[Known, ...]:
        """The entries that the cases which ran should have shown and did not."""
        ran = [result for result in results if result.executed]
        names = {result.name for result in ran}
        seen = {
            entry.id
            for entry in self.known
            for result in ran
            for finding in result.findings
            if entry.covers(kernel, result.name, finding)
        }
        return tuple(one for one in self.known if one.id not in seen and one.expected(kernel, names))


def read_ledger(path: Path) -> Ledger:
    """The ledger in a file. Raises InputError with every fault of the file."""
    name = f"--known {path}"
    try:
        plain = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError([Fault(name, str(error), "a file that can be read")]) from error
    except tomllib.TOMLDecodeError as error:
        raise InputError([Fault(name, str(error), "TOML")]) from error
    try:
        ledger = Ledger.model_validate(plain)
    except ValidationError as error:
        raise InputError(
            Fault(f"{name}: {'.'.join(map(str, one['loc']))}", repr(one["input"])[:80], one["msg"])
            for one in error.errors()
        ) from error
    ids = [entry.id for entry in ledger.known]
    twice = sorted({one for one in ids if ids.count(one) > 1})
    if twice:
        raise InputError(Fault(f"{name}: id", repr(one), "an id that no other entry has") for one in twice)
    return ledger
