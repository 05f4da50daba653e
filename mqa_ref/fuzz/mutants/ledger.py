"""Mutants that no check can tell from the kernel, each with the reason: docs/equivalent-mutants.toml.

An entry of verdict "equivalent" says why no launch could differ; such a mutant counts for nothing. One of verdict
"unseen" says why no check sees a mutant that is broken; it counts as missed. An entry must match some mutant of the
kernel, and no mutant that is caught.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from mqa_ref.errors import Fault, InputError
from mqa_ref.fuzz.mutants.mutant import Mutant

FILE = "equivalent-mutants.toml"
Text = Annotated[str, Field(min_length=1)]


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"a regular expression; {error}") from error
    return text


Pattern = Annotated[Text, AfterValidator(_pattern)]


class Entry(BaseModel):
    """One reason. ``class`` and ``operator``: of the mutants, None for any operator. ``before``, ``after``: regular
    expressions for the whole text at the place, and the whole new text. ``near``: one that is found in the eight
    statements before and after it, where the place itself has "> " before it. ``source``: the file of the kernel's
    source."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)

    id: Text
    kind: Text = Field(alias="class")
    reason: Text
    verdict: Literal["equivalent", "unseen"] = "equivalent"
    operator: Pattern | None = None
    before: Pattern | None = None
    after: Pattern | None = None
    near: Pattern | None = None
    source: Text | None = None

    def matches(self, mutant: Mutant) -> bool:
        """Is the mutant one of these?"""
        named = (
            (self.operator, f"{mutant.operator}:{mutant.detail}"),
            (self.before, mutant.before),
            (self.after, mutant.after),
        )
        return (
            mutant.kind == self.kind
            and (self.source is None or mutant.source.partition(":")[0] == self.source)
            and all(pattern is None or re.fullmatch(pattern, text, re.DOTALL) for pattern, text in named)
            and (self.near is None or re.search(self.near, mutant.near) is not None)
        )


class Reasons(BaseModel):
    """All entries of a file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    entry: list[Entry] = []

    def of(self, mutant: Mutant) -> Entry | None:
        """The first entry that matches."""
        return next((one for one in self.entry if one.matches(mutant)), None)

    def idle(self, every: Iterable[Mutant]) -> tuple[str, ...]:
        """The ids of entries that match none of all mutants there are."""
        mutants = list(every)
        return tuple(one.id for one in self.entry if not any(map(one.matches, mutants)))


@dataclass(frozen=True)
class Wrong:
    """An entry that matches a mutant which is caught."""

    entry: str
    mutant: str


def contradicted(
    reasons: Reasons, mutants: Iterable[Mutant], caught: Mapping[str, bool]
) -> tuple[Wrong, ...]:
    """Every match of an entry with a mutant that a check has noticed."""
    return tuple(
        Wrong(entry.id, mutant.id)
        for mutant in mutants
        if caught.get(mutant.id)
        for entry in reasons.entry
        if entry.matches(mutant)
    )


def read_reasons(path: Path) -> Reasons:
    """The entries of a file. Raises InputError with all that is wrong with it."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        reasons = Reasons.model_validate(data)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError([Fault("ledger", str(path), f"a TOML file; {error}")]) from error
    except ValidationError as error:
        faults = [
            Fault(f"{path.name}: {'.'.join(map(str, one['loc']))}", repr(one["input"]), one["msg"])
            for one in error.errors()
        ]
        raise InputError(faults) from error
    ids = [one.id for one in reasons.entry]
    twice = sorted({one for one in ids if ids.count(one) > 1})
    if twice:
        raise InputError([Fault("id", one, "an id that is there once") for one in twice])
    return reasons


def own_file() -> Path | None:
    """The file of the builtin kernel in a checkout of this project, None where there is none."""
    spec = find_spec("mqa_ref")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parents[1] / "docs" / FILE
    return path if path.is_file() else None
