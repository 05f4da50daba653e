"""One launch against the expected bits: the verdict, the counts per class, the first mismatches, and what
they share."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mqa_ref.compare.bits import Bits, Mask, dtype_of, hex_word, ulp_distance
from mqa_ref.compare.classes import EQUAL, KINDS, Kind, classify
from mqa_ref.compare.clusters import where
from mqa_ref.compare.measures import calc_diff, cosine
from mqa_ref.compare.place import Place, Places, locate
from mqa_ref.compare.suspects import suspects
from mqa_ref.errors import Fault, InputError
from mqa_ref.flow import Flow
from mqa_ref.launch import Launch
from mqa_ref.numerics import FORMATS, Format, MachineModel, to_float64
from mqa_ref.problem import Problem
from mqa_ref.schedule import SPLIT_TOKENS

FIRST = 8


@dataclass(frozen=True)
class Mismatch:
    """One wrong element: its class, its place, both patterns as hex words and as numbers, and for two finite
    numbers the distance in ULP. ``actual`` of an unwritten element is what the buffer held before."""

    kind: Kind
    place: Place
    expected: str
    actual: str
    expected_value: float
    actual_value: float
    ulp: int | None

    def __str__(self) -> str:
        told = f"{self.kind}: expected {self.expected} ({self.expected_value!r})"
        got = (
            "nothing was written"
            if self.kind == "unwritten"
            else f"got {self.actual} ({self.actual_value!r})"
        )
        return f"{told}, {got}{f', {self.ulp} ULP' if self.ulp is not None else ''}, at {self.place}"


@dataclass(frozen=True)
class Comparison:
    """The outcome of ``compare``.

    ``compared``: valid elements, all of them. ``counts``: wrong elements per class, every class of ``KINDS``
    in order. ``first``: the first wrong ones in row-major order. ``max_ulp``, ``max_abs``: greatest distance
    among the wrong elements with two finite sides, None when there are none. ``where``: sentences about what
    the wrong elements share. ``tail_written``: elements written past the valid columns in splits that hold
    tokens, whose values mean nothing. ``stray_written``: elements written in splits that hold no token of
    their row. ``calc_diff`` and ``cosine`` are for information and decide nothing.
    """

    compared: int
    counts: dict[Kind, int]
    first: tuple[Mismatch, ...]
    max_ulp: int | None
    max_abs: float | None
    where: tuple[str, ...]
    suspects: tuple[str, ...]
    tail_written: int
    stray_written: int
    calc_diff: float
    cosine: float

    @property
    def mismatched(self) -> int:
        """Wrong elements of all classes."""
        return sum(self.counts.values())

    @property
    def equal(self) -> bool:
        """Whether no compared element is wrong."""
        return self.mismatched == 0


def _check(expected: Bits, valid: Mask, launch: Launch, problem: Problem, flow: Flow) -> None:
    dtype = flow.bits_dtype
    rows, written = problem.rows, launch.logits.shape
    faults = [
        Fault(name, f"dtype {array.dtype}", f"{wanted} for output {flow.out}")
        for name, array, wanted in (
            ("expected", expected, dtype),
            ("valid", valid, "bool"),
            ("launch.logits", launch.logits, dtype),
            ("launch.written", launch.written, "bool"),
        )
        if array.dtype != wanted
    ]
    if expected.ndim != 2 or expected.shape[0] != rows:
        faults.append(Fault("expected", f"shape {expected.shape}", f"[{rows}, columns]"))
    if valid.shape != expected.shape:
        faults.append(Fault("valid", f"shape {valid.shape}", f"{expected.shape}, as expected has"))
    if len(written) != 2 or written[0] != rows or (expected.ndim == 2 and written[1] < expected.shape[1]):
        faults.append(Fault("launch.logits", f"shape {written}", f"[{rows}, at least {expected.shape[-1]}]"))
    if launch.written.shape != written:
        faults.append(
            Fault("launch.written", f"shape {launch.written.shape}", f"{written}, as launch.logits has")
        )
    if faults:
        raise InputError(faults)


def _mismatch(kind: Kind, place: Place, expected: int, actual: int, fmt: Format) -> Mismatch:
    pair = np.array([expected, actual], dtype_of(fmt))
    values = to_float64(pair, fmt)
    finite = kind in ("value", "zero_sign")
    return Mismatch(
        kind,
        place,
        hex_word(expected, fmt),
        hex_word(actual, fmt),
        float(values[0]),
        float(values[1]),
        int(ulp_distance(pair[:1], pair[1:], fmt)[0]) if finite else None,
    )


def _beyond(valid: Mask, launch: Launch, problem: Problem) -> tuple[int, int]:
    """Elements written outside the valid ones: in splits with tokens, and in splits without."""
    splits = -(-np.asarray(problem.context_lens, np.int64) // SPLIT_TOKENS)
    asked = np.repeat(splits * SPLIT_TOKENS, problem.next_n)
    columns = np.arange(launch.written.shape[1])
    inside = columns[None, :] < asked[:, None]
    outside = launch.written.copy()
    outside[:, : valid.shape[1]] &= ~valid
    return int((outside & inside).sum()), int((outside & ~inside).sum())


def compare(
    expected: Bits,
    valid: Mask,
    launch: Launch,
    problem: Problem,
    flow: Flow,
    *,
    machine: str | MachineModel = "sm100",
) -> Comparison:
    """Compare what a launch wrote with what it had to write.

    ``expected``: patterns of the flow's output format [rows, columns], ``valid``: bool, same shape, the
    elements that mean something (both as ``reference_logits`` gives them). ``launch.logits`` may have longer
    rows. Every valid element is compared, finite or not; nothing else is. Raises InputError when shapes or
    dtypes do not fit.
    """
    _check(expected, valid, launch, problem, flow)
    fmt = FORMATS[flow.out]
    row, column = np.nonzero(valid)
    wanted, got = expected[row, column], launch.logits[row, column]
    kinds = classify(got, wanted, launch.written[row, column], fmt)
    wrong = kinds != EQUAL
    counts = {kind: int(np.count_nonzero(kinds == index)) for index, kind in enumerate(KINDS)}
    truth, told = to_float64(wanted, fmt), to_float64(got, fmt)
    finite = np.isin(kinds, [KINDS.index("value"), KINDS.index("zero_sign")])
    places: Places | None = locate(row, column, problem) if wrong.any() else None
    first: list[Mismatch] = []
    if places is not None:
        for i in np.flatnonzero(wrong)[:FIRST]:
            kind = KINDS[int(kinds[i])]
            first.append(_mismatch(kind, places.one(int(i)), int(wanted[i]), int(got[i]), fmt))
    changed = wrong & (kinds != KINDS.index("unwritten"))
    tail, stray = _beyond(valid, launch, problem)
    return Comparison(
        compared=int(row.size),
        counts=counts,
        first=tuple(first),
        max_ulp=int(ulp_distance(got[finite], wanted[finite], fmt).max()) if finite.any() else None,
        max_abs=float(np.abs(told[finite] - truth[finite]).max()) if finite.any() else None,
        where=where(places, wrong) if places is not None else (),
        suspects=suspects(problem, flow, machine, row[changed], column[changed], got[changed]),
        tail_written=tail,
        stray_written=stray,
        calc_diff=calc_diff(told, truth) if row.size else math.nan,
        cosine=cosine(told, truth) if row.size else math.nan,
    )
