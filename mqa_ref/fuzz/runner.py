"""A campaign from beginning to end: saved cases first, then blocks until the examples or the time are used up, then
each class of failure minimised once and written down.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from mqa_ref.errors import Fault, InputError
from mqa_ref.fuzz.campaign import BLOCK, PROCESS_DIED, BlockResult, Campaign, Found, Totals, blocks_of, merge
from mqa_ref.fuzz.casefile import MAX_BYTES, SUFFIX, read_case
from mqa_ref.fuzz.coverpoints import reachable
from mqa_ref.fuzz.files import case_paths, write_whole
from mqa_ref.fuzz.minimise import Minimal
from mqa_ref.fuzz.report import FuzzReport, Reported
from mqa_ref.fuzz.workers import UNSHRUNK, Answer, Inline, Pool, Run, Saved, Task
from mqa_ref.golden.tensorfile import read
from mqa_ref.report import environment

MOST_MINIMISED = 12
MINIMISE_SECONDS = 180.0
"""So many classes are minimised, those seen most often first, as long as no more time than this has passed; of the
others the first examples are kept as they are."""

Progress = Callable[[Totals, int], None]
"""Called after every block with what there is so far, and the number of coverpoints that can be met."""


class Runner(Protocol):
    """Who does the tasks: ``Inline``, ``Pool``, or machines elsewhere."""

    def run(self, tasks: Iterable[Task]) -> Iterator[Answer]:
        """Answers, in any order; ``tasks`` is advanced when there is room for another."""
        ...

    def close(self) -> None:
        """End whatever was started."""
        ...


def run_campaign(
    campaign: Campaign,
    *,
    max_examples: int | None = None,
    seconds: float | None = None,
    workers: int = 1,
    shard: tuple[int, int] = (1, 1),
    folder: Path | None = None,
    required: bool = False,
    stop_at_failure: bool = False,
    progress: Progress | None = None,
    runner: Runner | None = None,
) -> FuzzReport:
    """Run a campaign. ``max_examples``: of all shards together; ``seconds``: for drawing (minimising comes after it);
    one of the two at least. ``folder``: the database of failures, which must exist; None keeps nothing. ``runner``:
    who does the work, in place of ``workers`` processes; it is closed here.

    Raises InputError with every bad argument, NotAvailable and OracleError as they come.
    """
    _check(max_examples, seconds, workers, shard)
    begun = time.monotonic()
    place = "" if folder is None else str(folder)
    doer: Runner = runner or (Inline(campaign, place) if workers == 1 else Pool(campaign, workers, place))
    points = coverpoints_of(campaign)
    results: list[BlockResult] = []
    try:
        saved, mended = _saved(campaign, doer.run, folder, shard)

        def tasks() -> Iterator[Task]:
            if max_examples is not None:
                numbers: Iterator[tuple[int, int]] = iter(blocks_of(max_examples, shard))
            else:
                numbers = ((number, BLOCK) for number in itertools.count(shard[0] - 1, shard[1]))
            for index, size in numbers:
                left = None if seconds is None else seconds - (time.monotonic() - begun)
                failed = any(one.failures for one in results)
                if (left is not None and left <= 0) or (stop_at_failure and failed):
                    return
                yield Task(index, size, left, stop_at_failure)

        for answer in doer.run(tasks()):
            if isinstance(answer, BlockResult):
                results.append(answer)
            if progress is not None:
                progress(merge(results), len(points))
        totals = merge(results)
        reported = _minimised(totals, doer.run, folder)
    finally:
        doer.close()
    return FuzzReport(
        campaign=campaign,
        totals=totals,
        reported=tuple(reported),
        coverpoints=points,
        seconds=time.monotonic() - begun,
        workers=workers,
        shard=shard,
        saved=saved,
        mended=mended,
        required=required,
        environment=environment(*(("sglang",) if campaign.kernel == "sglang" else ())),
    )


def coverpoints_of(campaign: Campaign) -> tuple[str, ...]:
    """The coverpoints that a campaign can meet."""
    return reachable(
        campaign.flows,
        campaign.orders,
        options=campaign.options,
        pages=campaign.pages,
        heads=campaign.heads,
        own_schedule=campaign.own_schedule,
    )


def _check(max_examples: object, seconds: object, workers: object, shard: object) -> None:
    faults = []
    if max_examples is None and seconds is None:
        faults.append(Fault("max_examples", "None", "a number of examples, or a time"))
    if max_examples is not None and (type(max_examples) is not int or max_examples < 1):
        faults.append(Fault("max_examples", repr(max_examples), "an integer of 1 or more"))
    if seconds is not None and (not isinstance(seconds, int | float) or not seconds > 0):
        faults.append(Fault("seconds", repr(seconds), "a positive number"))
    if type(workers) is not int or workers < 1:
        faults.append(Fault("workers", repr(workers), "an integer of 1 or more"))
    good = isinstance(shard, tuple) and len(shard) == 2 and all(type(one) is int for one in shard)
    if not good or not 1 <= shard[0] <= shard[1]:  # type: ignore[index]  # a tuple of two, or good is False
        faults.append(Fault("shard", repr(shard), "(I, N) with 1 <= I <= N"))
    if faults:
        raise InputError(faults)


def _saved(
    campaign: Campaign, run: Run, folder: Path | None, shard: tuple[int, int]
) -> tuple[dict[str, tuple[Found, ...]], tuple[str, ...]]:
    """The cases of the database that were found with this kernel, tried again: those that fail still, and the others.
    Each shard takes its part."""
    tasks = []
    for number, path in enumerate(case_paths(folder, SUFFIX) if folder is not None else ()):
        if number % shard[1] == shard[0] - 1 and read_case(path).kernel == campaign.kernel:
            tasks.append(Task(case=read(path, MAX_BYTES, "a case file"), source=str(path)))
    failing: dict[str, tuple[Found, ...]] = {}
    mended = []
    for answer in run(tasks):
        assert isinstance(answer, Saved)
        if answer.failures:
            failing[answer.source] = answer.failures
        elif not answer.unsupported:
            mended.append(answer.source)
    return dict(sorted(failing.items())), tuple(sorted(mended))


def _minimised(totals: Totals, run: Run, folder: Path | None) -> list[Reported]:
    """Each class of failure once, by the first example that shows it; a class that a smallest launch shows as well
    needs no launch of its own."""
    told: dict[str, str] = {}
    minimised = 0
    kept: list[Reported] = []
    begun = time.monotonic()
    for found in sorted(totals.failures, key=lambda one: (-totals.counts[one.name], one.place, one.name)):
        if found.name in told:
            continue
        least = Minimal(found, frozenset({found.name}), 0, 0.0)
        in_time = time.monotonic() - begun < MINIMISE_SECONDS
        shrinks = bool(found.description) and found.name != PROCESS_DIED
        if shrinks and minimised < MOST_MINIMISED and in_time:
            minimised += 1
            answer = next(iter(list(run([Task(found=found)]))))
            assert isinstance(answer, Minimal)
            least = answer
        told |= dict.fromkeys(least.also, found.name)
        path = None
        if folder is not None and least.found.case:
            path = folder / least.found.file
            write_whole(path, least.found.case)
        also = tuple(sorted(least.also - {found.name}))
        kept.append(
            Reported(least.found, totals.counts[found.name], path, also, least.evaluations, least.seconds)
        )
    if folder is not None:
        _tidy(folder, set(told))
    return kept


def _tidy(folder: Path, names: set[str]) -> None:
    """Take away the unshrunk cases whose classes are written down now. Another process may do the same."""
    for path in case_paths(folder, SUFFIX):
        if path.name.startswith(UNSHRUNK):
            with suppress(InputError):
                if read_case(path).failure in names:
                    path.unlink(missing_ok=True)
