"""The benchmark as a whole: its lines as one JSON object, and as text."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mqa_ref.bench.measures import FLOW, MEASURES, measure
from mqa_ref.bench.results import Line
from mqa_ref.errors import Fault, InputError
from mqa_ref.report.environment import environment
from mqa_ref.result import Status, result_json, result_values


@dataclass(frozen=True)
class BenchReport:
    """``lines`` in the order of MEASURES; ``machine``: what it ran on."""

    lines: tuple[Line, ...]
    machine: dict[str, str]
    rounds: int
    seconds: float

    @property
    def exit_code(self) -> int:
        """3 when bits differed, 1 when a target is not met, 5 when nothing could be measured, else 0."""
        verdicts = {line.verdict for line in self.lines}
        if any(line.mismatched for line in self.lines):
            return 3
        if "short" in verdicts:
            return 1
        return 5 if verdicts <= {"absent"} else 0

    @property
    def status(self) -> Status:
        """As the exit code."""
        statuses: dict[int, Status] = {0: "pass", 1: "fail"}
        return statuses.get(self.exit_code, "error")

    def to_json(self) -> str:
        """One versioned JSON object with the fields every checking command writes, and ``lines``."""
        lines = [asdict(line) | {"target": str(line.target), "unit": line.target.unit, "verdict": line.verdict}
                 for line in self.lines]  # fmt: skip
        more: dict[str, Any] = {"lines": lines, "machine": self.machine, "rounds": self.rounds}
        plain = result_values(
            "bench",
            status=self.status,
            exit_code=self.exit_code,
            flow=str(FLOW),
            cases=len(self.lines),
            logits=sum(line.logits for line in self.lines),
            mismatched=sum(line.mismatched for line in self.lines),
            findings=0,
            seconds=self.seconds,
            kernel="builtin",
            backend="emulator",
            more=more | {"environment": environment("torch", "mmasim")},
        )
        return result_json(plain)


def bench(
    only: Sequence[str] = (), rounds: int = 5, progress: Callable[[int, int, str], None] | None = None
) -> BenchReport:
    """Measure everything, or the lines named. Raises InputError for a name there is not and fewer than one round."""
    faults = [Fault("--only", name, "one of " + ", ".join(MEASURES)) for name in only if name not in MEASURES]
    if rounds < 1:
        faults.append(Fault("--rounds", str(rounds), "at least 1"))
    if faults:
        raise InputError(faults)
    begun = time.perf_counter()
    names = [name for name in MEASURES if not only or name in only]
    lines = []
    for done, name in enumerate(names):
        if progress is not None:
            progress(done, len(names), name)
        lines.append(measure(name, rounds))
    return BenchReport(tuple(lines), machine(), rounds, time.perf_counter() - begun)


def machine() -> dict[str, str]:
    """Processor, cores that may be used, their load, and threads of the BLAS library as far as it was told."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "processor": model or platform.processor() or platform.machine(),
        "cores": str(cores),
        "load": f"{os.getloadavg()[0]:.1f}",
        "blas_threads": os.environ.get("OPENBLAS_NUM_THREADS", "as it likes"),
    }


def render(report: BenchReport) -> str:
    """A table for a terminal or a log."""
    rows = [("line", "measured", "quartiles", "unit", "target", "verdict")]
    for line in report.lines:
        numbers = (f"{line.value:.3g}", f"{line.low:.3g} to {line.high:.3g}") if not line.absent else ("", "")
        rows.append((line.name, *numbers, line.target.unit or line.absent, str(line.target), line.verdict))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    table = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    told = ", ".join(f"{name} {value}" for name, value in report.machine.items())
    return "\n".join([f"{told}; {report.rounds} rounds", *table]) + "\n"
