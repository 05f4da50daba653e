"""Explains one logit: runs the scalar reference and the kernel's CTA, both watched, and lays them side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mqa_ref.compare.place import Place, locate
from mqa_ref.errors import Fault, InputError
from mqa_ref.explain.nodes import Node, kernel_nodes, reference_nodes
from mqa_ref.explain.steps import Models, Row, Value, parting, rows
from mqa_ref.explain.terms import Term, terms
from mqa_ref.explain.verdict import verdict
from mqa_ref.flow import Flow
from mqa_ref.numerics import MACHINES, MachineModel
from mqa_ref.problem import Problem
from mqa_ref.verification.observe import Watcher


@dataclass(frozen=True)
class Explanation:
    """One logit. ``rows``: every step of both sides. ``parts_at``: the number of the first row where they part, None
    where none does. ``verdict``: in words. ``head``: the head whose terms are told, and ``terms`` its tensor-core
    instructions, reference and kernel (None where the kernel has none): the terms and the exponent of their unit.
    ``expected``, ``actual``: the logit, as hex words; ``actual`` is None where the kernel's CTA stored nothing there.
    """

    place: Place
    rows: tuple[Row, ...]
    parts_at: int | None
    verdict: str
    head: int
    terms: tuple[tuple[Terms, Terms | None], ...]
    expected: str
    actual: str | None

    @property
    def agrees(self) -> bool:
        """Did the kernel store what the reference gives?"""
        return self.actual is not None and self.rows[-1].agrees

    def values(self) -> dict[str, Any]:
        """The explanation as plain values."""
        steps = [
            {
                "name": row.name,
                "heads": list(row.heads),
                "reference": _plain(row.reference),
                "kernel": _plain(row.kernel),
                "agrees": row.agrees,
            }
            for row in self.rows
        ]
        told = {
            "row": self.place.row,
            "column": self.place.column,
            "place": self.place.as_dict(),
            "expected": self.expected,
            "actual": self.actual,
            "parts_at": self.parts_at,
            "verdict": self.verdict,
            "steps": steps,
            "terms_of_head": self.head,
        }
        sides = [[None if one is None else _plain_terms(one) for one in pair] for pair in self.terms]
        return told | {"terms": [{"reference": one[0], "kernel": one[1]} for one in sides]}


Terms = tuple[tuple[Term, ...], int | None]


def explain(
    watch: Watcher,
    problem: Problem,
    flow: Flow,
    row: int,
    column: int,
    *,
    machine: str | MachineModel = "sm100",
    head: int | None = None,
    cta: int | None = None,
    edit_ptx: Callable[[str], str] | None = None,
    interleaving: str = "eager",
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    emulated: str = "sm100",
    reference: Mapping[str, Any] | None = None,
) -> Explanation:
    """Explain the logit (``row``, ``column``) of ``problem``.

    ``watch``: see ``mqa_ref.verification.observe.watcher``. ``head``: the head whose products are told one by one; None
    for that of the first step where the two part, else 0. ``cta``: the CTA that stores the logit; None for the one that
    the schedule gives it to. ``interleaving``, ``seed``: the order of execution. ``machine``, ``reference``: the tensor
    core and the further arguments of ``scalar_logit`` (generation, order of the sum); ``emulated``: the kernel's core.
    Raises InputError for a place that is no valid logit or a head that is not there, and what a launch raises.
    """
    check_place(problem, row, column, head)
    place = locate(np.array([row]), np.array([column]), problem).one(0)
    mine = reference_nodes(problem, flow, machine, row, column, **(reference or {}))
    ask = {"what": "logit", "cta": place.cta if cta is None else cta, "row": row, "column": column}
    plain = watch(problem, flow, ask, edit_ptx=edit_ptx, order=interleaving, seed=seed, options=options)
    theirs = kernel_nodes(plain, problem.heads) if plain["nodes"] is not None else []
    told = MACHINES[machine] if isinstance(machine, str) else machine
    models = Models(told, MACHINES[emulated], flow.acc, flow.epi, flow.out)
    found = rows(mine, theirs, models)
    at = parting(found)
    if not theirs:
        at, words = 0, f"CTA {ask['cta']} stores nothing at row {row} column {column}"
    else:
        words = verdict(found, at, theirs, problem, row, column)
    if head is None:
        head = 0 if at is None else min(found[at].heads)
    last = found[-1]
    return Explanation(
        place=place,
        rows=tuple(found),
        parts_at=at,
        verdict=words,
        head=head,
        terms=_terms(head, mine, theirs, models),
        expected="" if last.reference is None else last.reference.word,
        actual=None if not theirs or last.kernel is None else last.kernel.word,
    )


def check_place(problem: Problem, row: int | None, column: int | None, head: int | None) -> None:
    """Raises InputError, every fault at once, for a place that is no valid logit or a head that is not there; None is
    fine."""
    faults = []
    if row is not None and not 0 <= row < problem.rows:
        faults.append(Fault("row", str(row), f"0..{problem.rows - 1}"))
    elif row is not None:
        valid = np.flatnonzero(problem.valid_mask()[row])
        if not valid.size:
            faults.append(Fault("row", str(row), "a row with a valid column"))
        elif column is not None and not 0 <= column <= int(valid[-1]):
            faults.append(Fault("column", str(column), f"a valid column of row {row}: 0..{int(valid[-1])}"))
    if head is not None and not 0 <= head < problem.heads:
        faults.append(Fault("head", str(head), f"0..{problem.heads - 1}"))
    if faults:
        raise InputError(faults)


def _terms(
    head: int, mine: list[Node], theirs: list[Node], models: Models
) -> tuple[tuple[Terms, Terms | None], ...]:
    left = next(node for node in mine if node.kind == "dot" and head in node.heads)
    right = next((node for node in theirs if node.kind == "dot" and head in node.heads), None)
    made = []
    for number, step in enumerate(left.steps):
        other = None
        if right is not None and number < len(right.steps):
            other = terms(right.steps[number], models.kernel, models.acc)
        made.append((terms(step, models.reference, models.acc), other))
    return tuple(made)


def _plain(value: Value | None) -> dict[str, Any] | None:
    if value is None:
        return None
    place = {name: getattr(value, name) for name in ("ptx_line", "ptx_text", "source")}
    return {"bits": value.word, "value": value.number, "how": value.how, **place}


def _plain_terms(told: Terms) -> dict[str, Any]:
    """The exact numbers as decimal text: each is a multiple of a power of two, so the text is finite."""
    found, unit = told
    return {
        "unit": unit,
        "terms": [
            {
                "k": one.k,
                "key": one.key,
                "query": one.query,
                "value": None if one.value is None else str(one.value),
                "kept": None if one.kept is None else str(one.kept),
            }
            for one in found
        ],
    }
