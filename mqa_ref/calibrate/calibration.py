"""The whole calibration of one device: run the vectors, decide every rule, predict everything else, report."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mqa_ref.calibrate.analysis import Verdict, decide, models_of
from mqa_ref.calibrate.emulated import emulated
from mqa_ref.calibrate.native import SECONDS, run_apart
from mqa_ref.calibrate.programs import PROGRAMS
from mqa_ref.calibrate.tiles import Tiles, Words, deal, diagonals, random_tiles
from mqa_ref.calibrate.vectors import vectors
from mqa_ref.cuda.probe import require
from mqa_ref.errors import Fault, InputError
from mqa_ref.numerics import MACHINES, MachineModel, mma
from mqa_ref.numerics.machines import ACCUMULATORS
from mqa_ref.result import result_json, result_values

BACKENDS = ("emulator", "cuda")
CAPABILITIES = {(9, 0): "sm90", (10, 0): "sm100"}
"""Compute capability -> the published machine model, and the program."""
RANDOM_TILES = 4


@dataclass(frozen=True)
class Calibration:
    """What was found. ``device``: words for it. ``published``: the model it is held against. ``verdicts``: one for each
    rule and accumulator format. ``models``: the machine models that explain every vector. ``predicted``: results that
    the first of them predicts, off the vectors too, and ``differing`` those it gets wrong. ``observed``: the results of
    the vectors by accumulator format, in their order.
    """

    backend: str
    device: str
    program: str
    published: MachineModel
    verdicts: tuple[Verdict, ...]
    models: tuple[MachineModel, ...]
    predicted: int
    differing: int
    observed: Mapping[str, list[int]]
    facts: Mapping[str, str]
    seconds: float

    @property
    def refuted(self) -> int:
        """Rules whose published answer does not stand."""
        return sum(verdict.status == "refuted" for verdict in self.verdicts)

    @property
    def status(self) -> str:
        """ "pass": no published rule is refuted, and the rules predict every result."""
        good = not self.refuted and not self.differing and bool(self.models)
        return "pass" if good else "fail"

    @property
    def exit_code(self) -> int:
        """0 or 1."""
        return 0 if self.status == "pass" else 1

    def to_json(self) -> str:
        """The report; ``observed`` is enough to decide everything again."""
        more: dict[str, Any] = {
            "device": self.device,
            "facts": dict(self.facts),
            "program": self.program,
            "published": _model(self.published),
            "models": [_model(model) for model in self.models],
            "rules": [_rule(verdict, self) for verdict in self.verdicts],
            "observed": {acc: [f"{code:#x}" for code in codes] for acc, codes in self.observed.items()},
        }
        return result_json(
            result_values(
                "calibrate",
                status="pass" if self.status == "pass" else "fail",
                exit_code=self.exit_code,
                backend=self.backend,
                flow=None,
                cases=len(self.verdicts),
                logits=self.predicted,
                mismatched=self.differing,
                findings=self.refuted,
                seconds=self.seconds,
                more=more,
            )
        )


def _model(model: MachineModel) -> dict[str, Any]:
    return {"fraction_bits": model.fraction_bits, "final32": model.final32, "source": model.source}


def _rule(verdict: Verdict, calibration: Calibration) -> dict[str, Any]:
    standing = calibration.published.standing(verdict.acc)
    settled = calibration.backend == "cuda" and verdict.status == "confirmed"
    return {
        "rule": verdict.rule,
        "text": verdict.text,
        "accumulator": verdict.acc,
        "status": verdict.status,
        "answers": list(verdict.answers),
        "published": verdict.published,
        "standing_before": standing,
        "standing": "hw" if settled else standing,
        "vectors": verdict.tried,
        "deciding": verdict.deciding,
        "deciders": [
            {
                "vector": one.name,
                "observed": f"{one.observed:#x}",
                "says": list(one.agreeing),
                "others": {text: f"{code:#x}" for text, code in one.others.items()},
            }
            for one in verdict.deciders
        ],
        "unexplained": list(verdict.unexplained),
    }


def calibrate(
    on: str = "cuda", machine: str | MachineModel = "sm100", *, seconds: float = SECONDS
) -> Calibration:
    """Run every vector on a device and decide every rule.

    ``on``: "cuda", the GPU of this machine, or "emulator", which then has the arithmetic of ``machine``. ``seconds``:
    after which the program on a GPU is stopped. Raises InputError for a bad argument, NotAvailable without a GPU of
    compute capability 9.0 or 10.0, KernelError for a program that fails on it.
    """
    begun = time.perf_counter()
    model = machine if isinstance(machine, MachineModel) else MACHINES.get(str(machine))
    faults = [] if on in BACKENDS else [Fault("on", repr(on), "one of " + ", ".join(BACKENDS))]
    if model is None:
        faults.append(Fault("machine", repr(machine), "a MachineModel or one of " + ", ".join(MACHINES)))
    if faults or model is None:
        raise InputError(faults)
    if on == "cuda":
        gpu = require(tuple(CAPABILITIES), "calibrate")
        program = CAPABILITIES[gpu.capability]
        given = _inputs(program)
        found = run_apart(program, given, seconds)
        model, device = MACHINES[program], gpu.told
        facts = gpu.environment()
    else:
        program, device, facts = "sm100", f"the emulator as {model.name}", {}
        given = _inputs(program)
        run = emulated(program, model)
        found = {acc: run(tiles, acc) for acc, tiles in given.items()}
    return judge(on, device, program, model, given, found, facts, begun)


def judge(
    backend: str,
    device: str,
    program: str,
    published: MachineModel,
    given: Mapping[str, Tiles],
    found: Mapping[str, Words],
    facts: Mapping[str, str],
    begun: float,
) -> Calibration:
    """The verdicts from the results of ``given`` by accumulator format."""
    observed = {acc: diagonals(found[acc], len(vectors(acc))) for acc in given}
    verdicts = {acc: decide(observed[acc], acc, published)[0] for acc in given}
    models = models_of(verdicts)
    predicted = differing = 0
    if models:
        for acc, tiles in given.items():
            for a, b, c, seen in zip(tiles.a, tiles.b, tiles.c, found[acc], strict=True):
                start = c.astype(np.uint16 if acc == "fp16" else np.uint32)
                expected = mma(a, b, machine=models[0], acc=acc, c=start)  # type: ignore[arg-type]
                differing += int((expected.astype(np.uint32) != seen).sum())
                predicted += seen.size
    return Calibration(
        *(backend, device, program, published),
        verdicts=tuple(verdict for told in verdicts.values() for verdict in told),
        models=tuple(replace(model, source=device) for model in models),
        predicted=predicted,
        differing=differing,
        observed=observed,
        facts=facts,
        seconds=time.perf_counter() - begun,
    )


def _inputs(program: str) -> dict[str, Tiles]:
    """The tiles of both accumulator formats: the vectors, then random ones."""
    made = {}
    for seed, acc in enumerate(ACCUMULATORS):
        rows = PROGRAMS[program](acc).rows
        crafted, drawn = deal(vectors(acc), rows), random_tiles(RANDOM_TILES, rows, acc, seed)
        made[acc] = Tiles(
            *(np.concatenate([getattr(crafted, name), getattr(drawn, name)]) for name in ("a", "b", "c"))
        )
    return made
