"""Random small launches, whole and broken, in both engines of the emulator: all must be the same.

    python benchmarks/engines_agree.py START COUNT [--seed N] [--mutants PERCENT] [--kernel NAME] [--into FOLDER]
    python benchmarks/engines_agree.py --golden [--into FOLDER]

Problems have numbers; a number and the seed name one for ever, so a campaign may be cut into pieces and gone on with.
Eight numbers that follow each other share a kernel of a small palette (the builtin one in every flow, that of sglang,
DeepGEMM's for SM90) and one text of its PTX that is changed in a random place (``broken_ptx``), which half of them run
(``--mutants``, 50). Their launches are tiny: one to four CTAs, many without work, rows without tokens, one to three
tiles, every kind of data, any interleaving, one in eight without the sanitizer.

``--golden`` runs every launch of the golden set instead that the builtin kernel serves.

Compared are the bits of the logits, what was written and by which CTA, every finding with its text, place and count,
the warp instructions, and the text of an error that ends a launch. An error that is not one of the project's counts as
a difference. Each difference is printed, and stored with its PTX in the folder. Progress goes to standard error; the
exit code is 1 when there was a difference.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.broken_ptx import Text, broken, read
from benchmarks.hunt_false_accusations import DATA, ORDERS
from mqa_ref.errors import MqaRefError, Unsupported
from mqa_ref.flow import FLOWS, Flow
from mqa_ref.kernel.targets import Target, resolve
from mqa_ref.launch import Launch
from mqa_ref.problem import Problem
from mqa_ref.verification.launch import launch
from mqa_ref.verification.problems import Recipe, make

TOGETHER = 8
BROKEN_BUDGET = 6000
"""Warp instructions that a CTA of a broken kernel may execute: twice what the longest of these launches needs."""
SHAPES = ((64, 32, 1), (64, 32, 2), (128, 64, 1), (128, 32, 1), (64, 64, 1), (32, 32, 1))
CTAS = (1, 2, 1, 4)
EDGES = (1, 2, 31, 63, 64, 65, 127, 128)
LONGER = (129, 191, 255, 256, 257, 300)


@dataclass(frozen=True)
class Combination:
    """A kernel that is compiled once."""

    kernel: str
    flow: str
    page: int
    heads: int
    next_n: int
    ctas: int


def palette() -> tuple[tuple[Combination, ...], ...]:
    """Combinations of each kernel, those of the builtin one in every flow."""
    builtin = tuple(
        Combination("builtin", flow, *SHAPES[(number + turn) % len(SHAPES)], CTAS[(number + turn) % 4])
        for number, flow in enumerate(FLOWS)
        for turn in (0, 3)
    )
    sglang = tuple(
        Combination("sglang", FLOWS[flow], *SHAPES[flow % len(SHAPES)], CTAS[flow % 4])
        for flow in (0, 2, 4, 7)
    )
    deepgemm = tuple(
        Combination("deepgemm", FLOWS[0], 64, heads, next_n, ctas)
        for heads, next_n, ctas in ((32, 1, 2), (64, 1, 1), (32, 2, 1))
    )
    return builtin, sglang, deepgemm


@dataclass
class Tally:
    """What a campaign has seen."""

    problems: int = 0
    broken: int = 0
    texts: set[str] = field(default_factory=set)
    kernels: Counter[str] = field(default_factory=Counter)
    logits: int = 0
    instructions: int = 0
    findings: Counter[str] = field(default_factory=Counter)
    ended: int = 0
    different: int = 0

    def words(self) -> str:
        """In one line."""
        kinds = ", ".join(f"{kind} {count}" for kind, count in self.findings.most_common())
        kernels = ", ".join(f"{name} {count}" for name, count in self.kernels.items())
        return (
            f"{self.problems} problems ({kernels}), {self.broken} with one of {len(self.texts)} broken kernels:"
            f" {self.logits} logits, {self.instructions} warp instructions, {self.ended} ended by an error,"
            f" launches by finding: {kinds or 'none'}; {self.different} differ"
        )


def lengths_of(draw: random.Random) -> tuple[int, ...]:
    """Rows of a tiny problem."""
    kind = draw.random()
    if kind < 0.45:
        return (0,) * draw.choice((1, 1, 2, 3))
    if kind < 0.93:
        rows = [draw.choice(EDGES), *(0,) * draw.choice((0, 0, 1, 2))]
    else:
        rows = [draw.choice(LONGER), *draw.choice(((), (0,), (17,), (0, 128)))]
    draw.shuffle(rows)
    return tuple(rows)


def recipe(name: str, one: Combination, draw: random.Random) -> Recipe:
    """A problem for a combination."""
    return Recipe(
        *(name, "random", lengths_of(draw), one.ctas),
        page=one.page,
        heads=one.heads,
        next_n=one.next_n,
        data=draw.choice(DATA),
        order=draw.choice(("in_order", "shuffled", "descending", "repeated")),
        rest=draw.choice(("zeros", "tight", "garbage")),
        form=draw.choice(("forward", "reversed")),
    )


def text_of(target: Target, problem: Problem, flow: Flow) -> str:
    """The PTX of the kernel for this shape."""
    made = target.compile(problem, flow) if target.raw is None else target.raw.compile(problem, flow)
    return str(made.ptx)


@lru_cache(maxsize=64)
def _read(ptx: str) -> Text:
    return read(ptx)


def outcome(target: Target, problem: Problem, flow: Flow, **arguments: Any) -> Any:
    """What a launch did, for comparison."""
    machine = target.declared.machine
    try:
        return launch(target, problem, flow, machine=machine, **arguments)
    except MqaRefError as error:
        return type(error).__name__, str(error)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported
        return "no error of ours", type(error).__name__, str(error)


def differences(one: Any, other: Any) -> list[str]:
    """In what two outcomes differ."""
    if not isinstance(one, Launch) or not isinstance(other, Launch):
        ours = not isinstance(one, Launch) and one[0] != "no error of ours"
        if ours and not isinstance(other, Launch) and one == other:
            return []
        told = ["ended" if isinstance(each, Launch) else str(each) for each in (one, other)]
        return [" / ".join(told)]
    arrays = ("logits", "written", "writer")
    found = [name for name in arrays if not np.array_equal(getattr(one, name), getattr(other, name))]
    return found + [
        name for name in ("findings", "instructions", "ctas") if getattr(one, name) != getattr(other, name)
    ]


@dataclass(frozen=True)
class Run:
    """One problem in both engines. ``text``: the PTX that runs, None for the kernel's own."""

    name: str
    kernel: str
    flow: str
    recipe: Recipe
    problem: Problem
    text: str | None = None
    order: str = "eager"
    seed: int = 0
    sanitize: bool = True


def both(run: Run, tally: Tally, into: Path | None) -> None:
    """Run it in both engines, note what happened, print and store a difference."""
    target, text = resolve(run.kernel), run.text
    arguments: dict[str, Any] = {"order": run.order, "seed": run.seed, "sanitize": run.sanitize}
    if text is not None:
        arguments |= {"edit_ptx": lambda _: text, "budget": BROKEN_BUDGET}
        tally.broken += 1
        tally.texts.add(hashlib.sha256(text.encode()).hexdigest())
    if text is None:
        text_of(target, run.problem, Flow.parse(run.flow))  # what is not served is no outcome of an engine
    one, other = (
        outcome(target, run.problem, Flow.parse(run.flow), engine=engine, **arguments)
        for engine in ("interpreter", "compiled")
    )
    tally.problems += 1
    tally.kernels[run.kernel] += 1
    if isinstance(one, Launch):
        tally.logits += int(one.written.sum())
        tally.instructions += one.instructions
        tally.findings.update({finding.kind for finding in one.findings})
    else:
        tally.ended += 1
    apart = differences(one, other)
    if not apart:
        return
    tally.different += 1
    told = {**asdict(replace(run, problem=None, text=None)), "apart": apart}  # type: ignore[arg-type]
    for name, each in (("interpreter", one), ("compiled", other)):
        told[name] = list(map(str, each.findings)) if isinstance(each, Launch) else each
    print(json.dumps(told), flush=True)
    if into is not None:
        into.mkdir(parents=True, exist_ok=True)
        (into / f"{run.name}.json").write_text(json.dumps(told, indent=1))
        if text is not None:
            (into / f"{run.name}.ptx").write_text(text)


def campaign(start: int, count: int, seed: int, mutants: int, kernel: str | None) -> Any:
    """The runs of these numbers."""
    kernels = palette()
    changed = ""
    for number in range(start, start + count):
        group = random.Random(f"engines/{seed}/{number // TOGETHER}")
        one = group.choice(group.choices(kernels, (87, 9, 4))[0])
        if kernel is not None:
            one = group.choice([each for each in sum(kernels, ()) if each.kernel == kernel])
        target, flow = resolve(one.kernel), Flow.parse(one.flow)
        draw = random.Random(f"engines/{seed}/{number}/problem")
        made = recipe(f"engines-{seed}-{number}", one, draw)
        problem = target.scheduled(make(made).problem)
        if number == start or not number % TOGETHER:
            changed = broken(_read(text_of(target, problem, flow)), group)
        how = (draw.choice((*ORDERS, "random", "random")), draw.randrange(1 << 30), draw.random() < 0.875)
        text = changed if (number % TOGETHER * 37 + 11) % 100 < mutants else None
        yield Run(made.name, one.kernel, one.flow, made, problem, text, *how)


def golden() -> Any:
    """Every launch of the golden set that the builtin kernel serves, in its first flow."""
    from mqa_ref.golden.cases import CASES
    from mqa_ref.golden.draft import build
    from mqa_ref.golden.edits import EDITS
    from mqa_ref.golden.model import LogitsCase

    for case in CASES:
        if isinstance(case, LogitsCase):
            problem = build(case.recipe, case.dim, EDITS[case.edit] if case.edit else None)
            yield Run(f"golden-{case.name}", "builtin", FLOWS[0], case.recipe, problem)


def main() -> int:
    parser = argparse.ArgumentParser(description="both engines of the emulator on the same launches")
    parser.add_argument("numbers", type=int, nargs="*", help="START COUNT")
    parser.add_argument("--golden", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mutants", type=int, default=50)
    parser.add_argument("--kernel")
    parser.add_argument("--into", type=Path)
    told = parser.parse_args()
    if bool(told.golden) == (len(told.numbers) == 2):
        parser.error("either START COUNT or --golden")
    start, count = told.numbers or (0, 0)
    runs = golden() if told.golden else campaign(start, count, told.seed, told.mutants, told.kernel)
    tally, begun = Tally(), time.perf_counter()
    shown = begun
    for run in runs:
        try:
            both(run, tally, told.into)
        except Unsupported as error:
            print(f"{run.name}: {error}", file=sys.stderr)
        if tally.problems % 100 == 0 or time.perf_counter() - shown > 60:
            shown = time.perf_counter()
            print(f"{time.perf_counter() - begun:.0f} s, at {run.name}: {tally.words()}", file=sys.stderr)
    print(tally.words())
    return int(bool(tally.different))


if __name__ == "__main__":
    sys.exit(main())
