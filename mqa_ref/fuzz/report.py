"""What a campaign tells: one verdict, every class of failure once with its case file and command, and the coverage."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mqa_ref.fuzz.campaign import Campaign, Found, Totals
from mqa_ref.report.model import EXIT_FAIL, EXIT_NOTHING, EXIT_PASS, Status
from mqa_ref.result import result_json, result_values


@dataclass(frozen=True)
class Reported:
    """One class of failure. ``count``: examples that showed it. ``path``: its case file, None where there is none.
    ``found``: at its smallest. ``also``: other classes that this launch shows. ``evaluations``: launches tried while
    it was minimised, 0 for one that was not."""

    found: Found
    count: int
    path: Path | None = None
    also: tuple[str, ...] = ()
    evaluations: int = 0
    seconds: float = 0.0

    @property
    def shape(self) -> str:
        """Lengths and shape of the launch, for people."""
        told = self.found.description
        if not told:
            return ""
        shape = told["shape"]
        numbers = ", ".join(f"{name} {shape[name]}" for name in ("page", "heads", "next_n", "num_sms"))
        return f"lengths {list(told['lengths'])}, {numbers}, flow {shape['flow']}, data {told['data']}"


@dataclass(frozen=True)
class FuzzReport:
    """The outcome of a campaign. ``coverpoints``: those it can meet. ``saved``: failures that cases of the database
    still show, by file; ``mended``: files whose failure is gone. ``required``: whether all coverpoints must be met."""

    campaign: Campaign
    totals: Totals
    reported: tuple[Reported, ...]
    coverpoints: tuple[str, ...]
    seconds: float
    workers: int = 1
    shard: tuple[int, int] = (1, 1)
    saved: Mapping[str, tuple[Found, ...]] = field(default_factory=dict)
    mended: tuple[str, ...] = ()
    required: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    why_unsupported: str = ""

    @property
    def executed(self) -> int:
        """Examples that were launched."""
        return self.totals.examples - self.totals.unsupported

    @property
    def unhit(self) -> tuple[str, ...]:
        """Coverpoints that were not met."""
        return tuple(name for name in self.coverpoints if not self.totals.coverage.get(name))

    @property
    def status(self) -> Status:
        """The verdict."""
        failed = self.reported or self.saved or (self.required and self.unhit)
        if failed:
            return "fail"
        return "pass" if self.executed else "error"

    @property
    def exit_code(self) -> int:
        """0 pass; 1 a failure, or a required coverpoint that was not met; 5 nothing ran."""
        return {"pass": EXIT_PASS, "fail": EXIT_FAIL, "error": EXIT_NOTHING}[self.status]

    def repro(self, path: Path | str) -> str:
        """The command that runs a case again."""
        return repro(path, self.campaign)

    def as_dict(self) -> dict[str, Any]:
        """The report as plain JSON values."""
        campaign, totals = self.campaign, self.totals
        plain: dict[str, Any] = {"machine": campaign.machine, "generation": campaign.generation}
        plain |= {"workers": self.workers, "shard": list(self.shard), "executed": self.executed}
        plain |= {"unsupported": totals.unsupported, "blocks": totals.blocks, "launches": totals.launches}
        plain |= {"digest": totals.digest, "max_ratio": _number(totals.ratio)}
        plain["properties"] = dict(totals.properties)
        plain["coverage"] = {name: totals.coverage.get(name, 0) for name in self.coverpoints}
        plain["unhit"] = list(self.unhit)
        plain["required_coverage"] = self.required
        plain["failures"] = [self._failure(one) for one in self.reported]
        plain["saved"] = [
            {"file": name, "failures": [one.name for one in found], "repro": self.repro(name)}
            for name, found in self.saved.items()
        ]
        plain |= {"mended": list(self.mended), "environment": dict(self.environment)}
        return result_values(
            "fuzz",
            status=self.status,
            exit_code=self.exit_code,
            kernel=campaign.kernel,
            backend=campaign.backend,
            flow=campaign.flow_name,
            cases=totals.examples,
            logits=totals.logits,
            mismatched=sum(n for name, n in totals.counts.items() if name.startswith("bits:")),
            findings=sum(n for name, n in totals.counts.items() if name.startswith("finding:")),
            seed=campaign.seed,
            seconds=self.seconds,
            more=plain,
        )

    def to_json(self) -> str:
        """``as_dict`` as one line-broken JSON object."""
        return result_json(self.as_dict())

    def _failure(self, one: Reported) -> dict[str, Any]:
        plain: dict[str, Any] = {"class": one.found.name, "message": one.found.message, "examples": one.count}
        plain |= {"block": one.found.block, "number": one.found.number, "also": list(one.also)}
        plain |= {"description": dict(one.found.description), "file": str(one.path) if one.path else None}
        plain |= {"evaluations": one.evaluations, "minimise_seconds": round(one.seconds, 3)}
        return plain | {"repro": self.repro(one.path) if one.path else None}


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else repr(value)


def repro(path: Path | str, campaign: Campaign) -> str:
    """The command that runs a case again."""
    return shlex.join(["mqa-ref", "replay", str(path), "--kernel", campaign.kernel, "--on", campaign.backend])


def lines(report: FuzzReport) -> Iterator[str]:
    """The report for people."""
    campaign, totals = report.campaign, report.totals
    yield (
        f"kernel {campaign.kernel}, backend {campaign.backend}, flow {campaign.flow_name}, machine {campaign.machine},"
        f" generation {campaign.generation}, seed {campaign.seed}, {report.workers} workers"
    )
    yield ", ".join(f"{name} {value}" for name, value in report.environment.items())
    for name, found in report.saved.items():
        yield f"STILL FAILS {name}: {', '.join(one.name for one in found)}"
        yield f"  REPRO: {report.repro(name)}"
    for name in report.mended:
        yield f"mended: {name} passes now"
    for one in report.reported:
        yield f"FAIL {one.found.name}, in {one.count} examples: {one.found.message}"
        if one.shape:
            yield f"  smallest: {one.shape}"
        if one.also:
            yield f"  the same launch also shows: {', '.join(one.also)}"
        if one.path is not None:
            yield f"  REPRO: {report.repro(one.path)}"
    judged = ", ".join(f"{name} {count}" for name, count in sorted(totals.properties.items()))
    yield f"properties: {judged or 'none'}"
    hit = len(report.coverpoints) - len(report.unhit)
    yield f"coverage: {hit} of {len(report.coverpoints)} coverpoints"
    for name in report.coverpoints:
        if name not in report.unhit:
            yield f"  hit    {name} {totals.coverage[name]}"
    yield from (f"  unhit  {name}" for name in report.unhit)
    if report.why_unsupported:
        yield f"unsupported: {report.why_unsupported}"
    yield summary(report)


def summary(report: FuzzReport) -> str:
    """The verdict in one line."""
    totals = report.totals
    hit = len(report.coverpoints) - len(report.unhit)
    words = f"{totals.examples} examples ({totals.unsupported} unsupported), {totals.launches} launches"
    failures = len(report.reported) + len(report.saved)
    told = f"{report.status}: {words}, {totals.logits} logits compared, {failures} classes of failure"
    return f"{told}, {hit} of {len(report.coverpoints)} coverpoints, digest {totals.digest}, {report.seconds:.1f} s"
