"""What came of the mutants, by module, and the ledger of those that no test can tell from the code."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

COLUMNS = ("killed", "time-out", "equivalent", "survived", "unreached")


def outcomes(path: Path) -> list[dict[str, Any]]:
    """The lines of a file of outcomes, none when there is no file."""
    return (
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    )


def is_caught(outcome: str) -> bool:
    """Whether a test failed, did not end, or the module could not be imported."""
    return outcome not in ("survived", "unreached", "not replaced") and not outcome.startswith("raised")


def explained(path: Path) -> set[tuple[str, str, str, str]]:
    """Module, function, and the lines before and after, of every mutant of the ledger."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["entry"]
    return {
        (entry["module"], name, before, after)
        for entry in entries
        for name in [entry["function"]]
        for before, after in entry["mutants"]
    }


def table(files: list[Path], ledger: Path) -> tuple[str, list[dict[str, Any]]]:
    """A Markdown table by module, and the survivors without an entry. What one file says was caught was caught; of the
    others the last word counts."""
    last: dict[str, dict[str, Any]] = {}
    for mutant in (mutant for file in files for mutant in outcomes(file)):
        if mutant["id"] not in last or not is_caught(last[mutant["id"]]["outcome"]):
            last[mutant["id"]] = mutant
    known, open_ones = explained(ledger), []
    counts: dict[str, Counter[str]] = {}
    for mutant in last.values():
        outcome, name = mutant["outcome"], ",".join(mutant["functions"])
        told = "time-out" if outcome == "time-out" else "killed" if is_caught(outcome) else outcome
        if told in ("survived", "unreached"):
            if (mutant["module"], name, mutant["before"], mutant["after"]) in known:
                told = "equivalent"
            else:
                open_ones.append(mutant)
        counts.setdefault(mutant["module"], Counter())[told] += 1
    lines = ["| module | mutants | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 2) + "|"]
    whole: Counter[str] = sum(counts.values(), Counter())
    for module, row in [*sorted(counts.items()), ("all", whole)]:
        cells = [f"`{module.removeprefix('mqa_ref/').removesuffix('.py')}`" if module != "all" else "all"]
        cells += [f"{number:,}" for number in (row.total(), *(row[name] for name in COLUMNS))]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines), open_ones
