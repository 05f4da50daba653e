"""What a run of mutants found: the score of each class, survivors with their place and text, and the JSON object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mqa_ref.fuzz.mutants.judge import CAUGHT, Verdict
from mqa_ref.fuzz.mutants.ledger import Entry, Wrong
from mqa_ref.fuzz.mutants.mutant import Mutant
from mqa_ref.result import Status, result_json, result_values

_BAR = 20
_COLUMNS = ("made", "refused", "equivalent", "value", "finding", "time-out", "missed")


@dataclass(frozen=True)
class Row:
    """Counts of one class. ``missed``: survivors that are not equivalent, and faults of the emulator."""

    kind: str
    made: int
    refused: int
    equivalent: int
    value: int
    finding: int
    time_out: int
    missed: int

    @property
    def caught(self) -> int:
        """Mutants that a check noticed."""
        return self.value + self.finding + self.time_out

    @property
    def score(self) -> float:
        """The share of those that count that were caught; 1 where none counts."""
        counted = self.caught + self.missed
        return self.caught / counted if counted else 1.0

    @property
    def counts(self) -> tuple[int, ...]:
        """In the order of the table's columns."""
        return self.made, self.refused, self.equivalent, self.value, self.finding, self.time_out, self.missed


@dataclass(frozen=True)
class MutationReport:
    """One run. ``pool``: how many mutants there are to choose from. ``baseline``: the verdict on the kernel as it is,
    which must survive. ``entries``: by mutant id, the entry of the ledger that matches a survivor. ``idle``: entries
    that match none of all mutants. ``wrong``: entries that match one that was caught."""

    kernel: str
    flow: str
    seed: int
    workers: int
    rungs: int
    pool: int
    seconds: float
    baseline: Verdict
    mutants: tuple[Mutant, ...]
    verdicts: tuple[Verdict, ...]
    entries: Mapping[str, Entry]
    idle: tuple[str, ...] = ()
    wrong: tuple[Wrong, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    def equivalent(self, verdict: Verdict) -> bool:
        """Did it survive because no launch can tell it?"""
        entry = self.entries.get(verdict.id)
        return verdict.outcome == "survived" and entry is not None and entry.verdict == "equivalent"

    @property
    def rows(self) -> tuple[Row, ...]:
        """One for each class, in the order in which they come."""
        kinds = dict.fromkeys(one.kind for one in self.mutants)
        return tuple(_row(kind, [v for m, v in self._pairs if m.kind == kind], self) for kind in kinds)

    @property
    def total(self) -> Row:
        """All classes together."""
        return _row("all", list(self.verdicts), self)

    @property
    def _pairs(self) -> tuple[tuple[Mutant, Verdict], ...]:
        return tuple(zip(self.mutants, self.verdicts, strict=True))

    @property
    def missed(self) -> tuple[tuple[Mutant, Verdict], ...]:
        """Survivors that are not equivalent, and faults of the emulator."""
        return tuple(
            (m, v)
            for m, v in self._pairs
            if v.outcome == "fault" or (v.outcome == "survived" and not self.equivalent(v))
        )

    @property
    def unexplained(self) -> tuple[tuple[Mutant, Verdict], ...]:
        """Those of the missed that the ledger says nothing of."""
        return tuple((m, v) for m, v in self.missed if v.id not in self.entries)

    @property
    def status(self) -> Status:
        """The verdict: "fail" for an unbroken kernel that is accused, an unexplained survivor, or a wrong entry."""
        if not any(one.outcome != "refused" for one in self.verdicts):
            return "error"
        bad = self.baseline.outcome != "survived" or self.unexplained or self.wrong
        return "fail" if bad else "pass"

    @property
    def exit_code(self) -> int:
        """0 pass; 1 fail; 5 when no mutant ran."""
        return {"pass": 0, "fail": 1, "error": 5}[self.status]

    def as_dict(self) -> dict[str, Any]:
        """The report as plain JSON values."""
        more: dict[str, Any] = {"workers": self.workers, "rungs": self.rungs, "pool": self.pool}
        more |= {"score": self.total.score, "baseline": _plain(self.baseline)}
        more["classes"] = [
            dict(zip(("class", *_COLUMNS), (r.kind, *r.counts), strict=True)) for r in self.rows
        ]
        more["mutants"] = [self._one(m, v) for m, v in self._pairs]
        more |= {"idle_entries": list(self.idle), "environment": dict(self.environment)}
        more["wrong_entries"] = [{"entry": one.entry, "mutant": one.mutant} for one in self.wrong]
        return result_values(
            "mutate",
            status=self.status,
            exit_code=self.exit_code,
            kernel=self.kernel,
            backend="emulator",
            flow=self.flow,
            cases=len(self.mutants),
            logits=0,
            mismatched=self.total.value,
            findings=self.total.finding + self.total.time_out,
            seed=self.seed,
            seconds=self.seconds,
            more=more,
        )

    def to_json(self) -> str:
        """``as_dict`` as one line-broken JSON object."""
        return result_json(self.as_dict())

    def _one(self, mutant: Mutant, verdict: Verdict) -> dict[str, Any]:
        entry = self.entries.get(mutant.id)
        told = {"class": mutant.kind, "line": mutant.line, "source": mutant.source, "change": mutant.change}
        return told | _plain(verdict) | {"entry": None if entry is None else entry.id}


def _plain(verdict: Verdict) -> dict[str, Any]:
    told = {"id": verdict.id, "outcome": verdict.outcome, "rung": verdict.rung, "signs": list(verdict.signs)}
    return told | {
        "message": verdict.message,
        "launches": verdict.launches,
        "seconds": round(verdict.seconds, 3),
    }


def _row(kind: str, verdicts: list[Verdict], report: MutationReport) -> Row:
    count = Counter(one.outcome for one in verdicts)
    equivalent = sum(map(report.equivalent, verdicts))
    value, finding, time_out = (count[name] for name in CAUGHT)
    missed = count["survived"] - equivalent + count["fault"]
    return Row(kind, len(verdicts), count["refused"], equivalent, value, finding, time_out, missed)


def lines(report: MutationReport) -> Iterator[str]:
    """The report for people."""
    yield (
        f"kernel {report.kernel}, flow {report.flow}, seed {report.seed}: {len(report.mutants)} of {report.pool}"
        f" mutants, each on up to {report.rungs} launches"
    )
    if report.baseline.outcome != "survived":
        yield f"THE KERNEL AS IT IS FAILS at {report.baseline.rung}: {report.baseline.message}"
    yield f"{'class':12}" + "".join(f"{name:>11}" for name in _COLUMNS)
    for row in (*report.rows, report.total):
        filled = int(row.score * _BAR)
        bar = "#" * filled + "." * (_BAR - filled)
        yield (
            f"{row.kind:12}"
            + "".join(f"{one:>11}" for one in row.counts)
            + f"  {bar} {100 * row.score:5.1f} %"
        )
    for mutant, verdict in report.missed:
        entry = report.entries.get(mutant.id)
        word = (
            "FAULT" if verdict.outcome == "fault" else "SURVIVED" if entry is None else f"unseen ({entry.id})"
        )
        yield f"{word} {mutant.id}"
        yield f"  line {mutant.line}: {mutant.change}"
        if verdict.message:
            yield f"  {verdict.message}"
    for one in report.wrong:
        yield f"WRONG ENTRY {one.entry} matches {one.mutant}, which is caught"
    for name in report.idle:
        yield f"idle entry {name}: it matches no mutant of this kernel"
    total = report.total
    yield (
        f"{report.status}: {total.caught} of {total.caught + total.missed} mutants that count are caught"
        f" ({100 * total.score:.1f} %), {len(report.unexplained)} survivors unexplained, {report.seconds:.0f} s"
    )
