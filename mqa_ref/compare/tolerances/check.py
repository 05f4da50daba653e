"""Holds tolerances.toml against a fresh measurement: nothing missing, nothing exceeded, nothing far too loose."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mqa_ref.compare.tolerances.derive import MACHINES, Measured, Progress, measure
from mqa_ref.compare.tolerances.model import KINDS, BoundRow, Kind, SameModelRow, Tolerances
from mqa_ref.flow import FLOWS, Flow
from mqa_ref.result import result_json, result_values

LOOSEST = 4.0
"""How many times looser than what was observed a factor may be."""


@dataclass(frozen=True)
class Fault:
    """One thing wrong with one row. "missing": there is no such row. "exceeded": more was observed than it allows.
    "loose": it allows more than 4 times what was reached."""

    flow: str
    kind: Kind
    fault: Literal["missing", "exceeded", "loose"]
    message: str

    def __str__(self) -> str:
        return f"{self.flow} {self.kind}: {self.fault}: {self.message}"


@dataclass(frozen=True)
class CheckReport:
    """The outcome. ``rows``: rows that there must be; ``logits``: logits measured anew; ``faults``: what is wrong."""

    flows: tuple[str, ...]
    rows: int
    logits: int
    faults: tuple[Fault, ...]
    seed: int
    seconds: float

    @property
    def status(self) -> Literal["pass", "fail"]:
        """ "fail" with a fault, else "pass"."""
        return "fail" if self.faults else "pass"

    @property
    def exit_code(self) -> int:
        """0 or 1."""
        return int(bool(self.faults))

    def to_json(self) -> str:
        """One versioned JSON object."""
        plain = result_values(
            "tolerances check",
            status=self.status,
            exit_code=self.exit_code,
            flow=self.flows,
            cases=self.rows,
            logits=self.logits,
            mismatched=len({(fault.flow, fault.kind) for fault in self.faults}),
            findings=len(self.faults),
            seed=self.seed,
            seconds=self.seconds,
            more={"fault_list": [vars(fault) for fault in self.faults]},
        )
        return result_json(plain)


def check(
    tolerances: Tolerances,
    *,
    elements: int,
    seed: int | None = None,
    flows: Sequence[Flow] | None = None,
    machines: Sequence[str] = MACHINES,
    progress: Progress | None = None,
) -> CheckReport:
    """Measure anew and hold the rows of ``flows`` (None for all there are) against it.

    ``seed``: None for another than the file's, so that the data are new. A factor is too loose when it is more than
    ``LOOSEST`` times the greatest share of the bound that was reached: on plain data in the file, on any anew.
    """
    begun = time.perf_counter()
    chosen = [Flow.parse(name) for name in FLOWS] if flows is None else list(flows)
    used = tolerances.seed + 1 if seed is None else seed
    found = measure(elements=elements, seed=used, flows=chosen, machines=machines, progress=progress)
    return CheckReport(
        flows=tuple(str(flow) for flow in chosen),
        rows=len(chosen) * len(KINDS),
        logits=sum(one.seen.bounded + one.plain.bounded + one.twins for one in found.values()),
        faults=judge(tolerances, found),
        seed=used,
        seconds=time.perf_counter() - begun,
    )


def judge(tolerances: Tolerances, found: Mapping[str, Measured]) -> tuple[Fault, ...]:
    """What is wrong with the rows of the flows that were measured."""
    return tuple(
        fault
        for flow, measured in found.items()
        for kind, row in tolerances.rows(flow).items()
        for fault in _faults(flow, kind, row, measured)
    )


def _faults(flow: str, kind: Kind, row: SameModelRow | BoundRow | None, found: Measured) -> Iterator[Fault]:
    if row is None:
        yield Fault(flow, kind, "missing", "there is no such row")
        return
    if isinstance(row, SameModelRow):
        bits = max(row.observed, found.bits)
        if bits > row.bits:
            yield Fault(flow, kind, "exceeded", f"{bits} bits differ, allowed are {row.bits}")
        if row.bits > LOOSEST * bits:
            yield Fault(flow, kind, "loose", f"{row.bits} bits are allowed, {bits} differ")
        return
    exact = kind == "exact"
    seen, plain = (one.own_order if exact else one.any_order for one in (found.seen, found.plain))
    share = max(row.observed, seen, plain)
    if share > row.factor:
        yield Fault(
            flow, kind, "exceeded", f"{share:.7g} of the bound was observed, the factor is {row.factor:g}"
        )
    # The smaller of what the file claims and what is seen anew, so that no claim makes a factor look tight.
    reached = min(row.plain, max(seen, plain))
    if row.factor > LOOSEST * reached:
        yield Fault(
            flow, kind, "loose", f"the factor is {row.factor:g}, {reached:.4g} of the bound was reached"
        )
