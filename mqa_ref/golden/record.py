"""What a case gives now: the reference's bits in every view, partitions, faults; and whether the claims hold."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref import schedule as sched
from mqa_ref.errors import InputError
from mqa_ref.golden.draft import build
from mqa_ref.golden.edits import EDITS
from mqa_ref.golden.entry import Digest, Entry, digest
from mqa_ref.golden.model import Case, LogitsCase, RefusedCase, ScheduleCase, StaleCase
from mqa_ref.golden.refusals import REFUSALS, good_inputs_pass
from mqa_ref.golden.views import VIEWS, View
from mqa_ref.problem import Problem
from mqa_ref.reference import reference_logits
from mqa_ref.schedule import TILE_TOKENS
from mqa_ref.schedule.walk import ZeroRows
from mqa_ref.verification.words import below

Places = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Recorded:
    """``entry``: the results. ``broken``: claims that do not hold, in words. ``places``: row and column of each stored
    logit. ``logits``: how many logits were computed, over all views."""

    entry: Entry
    broken: tuple[str, ...] = ()
    places: Places = field(default_factory=lambda: (np.zeros(0, np.int64), np.zeros(0, np.int64)))
    logits: int = 0


def problem_of(case: LogitsCase) -> Problem:
    """The problem of a case."""
    return build(case.recipe, case.dim, EDITS[case.edit] if case.edit else None)


def record(case: Case) -> Recorded:
    """Compute a case. Raises what the reference raises."""
    if isinstance(case, LogitsCase):
        return _logits(case)
    if isinstance(case, ScheduleCase):
        return _schedule(case)
    return _stale(case) if isinstance(case, StaleCase) else _refused(case)


def stored_places(problem: Problem, tiles: tuple[int, ...]) -> Places:
    """Row and column of the valid logits that are stored: all, or those in ``tiles`` of 128 columns."""
    mask = problem.valid_mask()
    if tiles:
        count = -(-problem.max_context_len // TILE_TOKENS)
        wanted = {tile % count for tile in tiles if -count <= tile < count}
        mask &= np.isin(np.arange(problem.max_context_len) // TILE_TOKENS, sorted(wanted))
    rows, columns = np.nonzero(mask)
    return rows.astype(np.int64), columns.astype(np.int64)


def _logits(case: LogitsCase) -> Recorded:
    problem = problem_of(case)
    places = stored_places(problem, case.tiles)
    tensors: dict[str, NDArray[Any]] = {}
    views: dict[str, str] = {}
    whole: dict[str, Digest] = {}
    owner: dict[tuple[str, Digest], str] = {}
    broken: list[str] = []
    logits = 0
    for view in VIEWS:
        bits, mask = reference_logits(problem, view.flow, view.machine, generation=view.generation)
        logits += int(np.count_nonzero(mask))
        broken += _broken_claims(case, view, bits)
        key = (bits.dtype.str, digest(bits[mask]))
        name = owner.setdefault(key, f"bits.{view.name}")
        views[view.name] = name
        if name not in tensors:
            tensors[name] = bits[places]
            if case.tiles:
                whole[name] = key[1]
    partitions, _ = _partitions(problem.context_lens, case.ctas, hashed=False)
    entry = Entry(case.name, case.kind, problem.case_id, tensors | partitions, views, whole, case.tiles)
    return Recorded(entry, tuple(broken), places, logits)


def _broken_claims(case: LogitsCase, view: View, bits: NDArray[Any]) -> list[str]:
    broken = []
    for claim in case.claims:
        if fnmatchcase(view.name, claim.where):
            wanted, found = view.encode(claim.value), int(bits[claim.row, claim.column])
            if found != wanted:
                place = f"{view.name} [{claim.row}, {claim.column}]"
                broken.append(f"{case.name} {place}: {found:#x}, claimed {claim.value} = {wanted:#x}")
    return broken


def _partitions(
    lengths: NDArray[Any], ctas: tuple[int, ...], *, hashed: bool
) -> tuple[dict[str, NDArray[Any]], dict[str, Digest]]:
    """The runs of every builder form for every CTA count: as tensors, or only their digests. A walk that executes rows
    without tokens is added where it differs."""
    tensors: dict[str, NDArray[Any]] = {}
    for form in sched.FORMS:
        for count in ctas:
            schedule = sched.build(lengths, count, form)
            skip = _runs(schedule, lengths, "skip")
            execute = _runs(schedule, lengths, "execute")
            tensors[f"partition.{form}.{count}"] = skip
            if not np.array_equal(skip, execute):
                tensors[f"walk.{form}.{count}"] = execute
    return ({}, {name: digest(runs) for name, runs in tensors.items()}) if hashed else (tensors, {})


def _runs(schedule: NDArray[np.int32], lengths: NDArray[Any], zero_rows: ZeroRows) -> NDArray[np.int32]:
    """int32 [runs, 4]: CTA, row, first split, past the last split."""
    walks = sched.walk(schedule, lengths, zero_rows=zero_rows, limit=lengths.shape[0])
    runs = [(one.cta, run.row, run.first, run.stop) for one in walks for run in one.runs]
    return np.array(runs, np.int32).reshape(-1, 4)


def schedule_lengths(case: ScheduleCase) -> NDArray[np.int32]:
    """The lengths of a case, int32 [B] or [B, next_n]."""
    drawn = below(f"{case.name}/lengths", case.batch, case.bound) if case.batch else case.lengths
    last = np.array(drawn, np.int32)
    if case.next_n == 1:
        return last
    others = below(f"{case.name}/other columns", last.size * (case.next_n - 1), 1000).astype(np.int32)
    return np.concatenate([others.reshape(last.size, -1), last[:, None]], axis=1)


def _schedule(case: ScheduleCase) -> Recorded:
    lengths = schedule_lengths(case)
    tensors, whole = _partitions(lengths, case.ctas, hashed=case.hashed)
    broken = [
        f"{case.name} {name}: {len(runs)} runs, claimed {case.runs}"
        for name, runs in tensors.items()
        if case.runs is not None and name.startswith("partition.forward") and len(runs) != case.runs
    ]
    entry = Entry(case.name, case.kind, _content_id(lengths, *case.ctas), tensors, {}, whole)
    return Recorded(entry, tuple(broken))


def _stale(case: StaleCase) -> Recorded:
    built, used = np.array(case.built, np.int32), np.array(case.used, np.int32)
    found = sched.check(sched.build(built, case.num_sms, case.form), used)
    told = tuple(
        f"{one.kind} cta {one.cta} row {one.row} split {one.split} count {one.count}" for one in found
    )
    entry = Entry(
        case.name, case.kind, _content_id(built, used, case.num_sms, case.form), faults=tuple(sorted(told))
    )
    return Recorded(
        entry, _broken_faults(case.name, sorted({one.kind for one in found}), sorted(case.faults))
    )


def _refused(case: RefusedCase) -> Recorded:
    good_inputs_pass()
    attempt: Callable[[], None] = REFUSALS[case.attempt]
    found: tuple[str, ...] = ()
    try:
        attempt()
    except InputError as error:
        found = tuple(fault.argument for fault in error.faults)
    entry = Entry(case.name, case.kind, _content_id(case.attempt), faults=found)
    return Recorded(entry, _broken_faults(case.name, list(found), list(case.faults)))


def _broken_faults(name: str, found: list[str], claimed: list[str]) -> tuple[str, ...]:
    return () if found == claimed else (f"{name}: faults {found}, claimed {claimed}",)


def _content_id(*parts: NDArray[Any] | str | int) -> str:
    """16 hex digits of the SHA-256 of inputs that are no Problem."""
    hashed = hashlib.sha256(b"mqa-ref golden inputs 1\n")
    for part in parts:
        text = f"{list(part.shape)} {part.tolist()}" if isinstance(part, np.ndarray) else str(part)
        hashed.update(text.encode() + b"\n")
    return hashed.hexdigest()[:16]
