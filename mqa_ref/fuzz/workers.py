"""Where blocks and minimisations are run: in this process, or in several others. All of it is the same work, asked for
and answered in plain data; a process that dies is replaced and its work done again, once.

Anything that takes a ``Task`` and gives back its answer can stand here: ``perform`` is a pure function of both.
"""

from __future__ import annotations

import multiprocessing
import pickle
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from mqa_ref.errors import MqaRefError
from mqa_ref.fuzz.block import run_block
from mqa_ref.fuzz.campaign import BLOCK, PROCESS_DIED, BlockResult, Campaign, Found
from mqa_ref.fuzz.casefile import decode_case
from mqa_ref.fuzz.files import write_whole
from mqa_ref.fuzz.minimise import Minimal, minimise
from mqa_ref.fuzz.session import Session

TRIES = 2
GRACE_SECONDS = 5.0
"""What a process is given to end by itself."""
KEPT = 2
UNSHRUNK = "unshrunk-"
"""What the names of cases begin with that are not minimised yet."""


@dataclass(frozen=True)
class Task:
    """Run a block (``index``, ``size`` examples, ``seconds`` at most, ``stop`` at a failure), or minimise a failure
    (``found``), or try a saved case again (``case``, its bytes, and ``source``, its name). ``fatal``: examples by
    number that ended the process and are not run again, with what is to be told of each."""

    index: int = -1
    size: int = BLOCK
    seconds: float | None = None
    stop: bool = False
    found: Found | None = None
    case: bytes = b""
    source: str = ""
    fatal: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Begun:
    """What a process says before each example: its number."""

    number: int


@dataclass
class _Job:
    """A task that a process has. ``at``: the example it is at. ``tries``: processes that died of it before."""

    task: Task
    tries: int = 0
    at: int | None = None


@dataclass(frozen=True)
class Saved:
    """What a saved case gave: its name, the class it was saved for, and the failures that it shows now."""

    source: str
    name: str
    failures: tuple[Found, ...]
    unsupported: str = ""


Answer = BlockResult | Minimal | Saved
Run = Callable[[Iterable[Task]], Iterator[Answer]]


class Keeper:
    """Writes the case of a failure into ``folder`` at once, so that no later end of the process loses it; of each class
    the first few."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._kept: Counter[str] = Counter()

    def __call__(self, found: Found) -> None:
        """Write one, if it is among the first of its class."""
        self._kept[found.name] += 1
        if self.folder and self._kept[found.name] <= KEPT:
            write_whole(Path(self.folder) / f"{UNSHRUNK}{found.file}", found.case)


def perform(
    task: Task, session: Session, keep: Keeper, begun: Callable[[Begun], None] | None = None
) -> Answer:
    """Do one task: a pure function of the task and the session's campaign, but for time. ``begun`` is called before
    each example of a block."""
    if task.found is not None:
        return minimise(session.campaign, task.found, session)
    if task.case:
        return _again(task, session)
    how: Any = {"size": task.size, "seconds": task.seconds, "stop": task.stop, "fatal": task.fatal}
    if begun is not None:
        how["before"] = lambda number: begun(Begun(number))
    return run_block(session.campaign, task.index, session=session, keep=keep, **how)


def _again(task: Task, session: Session) -> Saved:
    case = decode_case(task.case, task.source)
    outcome = session.judge_subject(case.subject, case.check, case.label).outcome
    found = tuple(Found(one.name, one.message, -1, 0) for one in outcome.failures)
    return Saved(task.source, case.failure, found, outcome.unsupported)


def _serve(connection: Connection, campaign: Campaign, folder: str) -> None:
    """What a worker process does until its connection closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keep = Keeper(folder)
    with Session(campaign) as session:
        while True:
            try:
                task = connection.recv()
            except EOFError:
                return
            try:
                answer: Any = perform(task, session, keep, connection.send)
            except MqaRefError as error:
                answer = error
            connection.send(answer)


class Inline:
    """The tasks done in this process. ``session``: in place of one for the campaign."""

    def __init__(self, campaign: Campaign, folder: str = "", session: Session | None = None) -> None:
        self._session, self._keep = session or Session(campaign), Keeper(folder)

    def run(self, tasks: Iterable[Task]) -> Iterator[Answer]:
        """The answers, in order."""
        return (perform(task, self._session, self._keep) for task in tasks)

    def close(self) -> None:
        """End the kernel's process, if it has one."""
        self._session.__exit__(None, None, None)


class Pool:
    """Worker processes of one campaign. ``processes`` of them at most; a task is handed out when one is free."""

    def __init__(self, campaign: Campaign, processes: int, folder: str = "") -> None:
        self.campaign, self.folder = campaign, folder
        self._context = multiprocessing.get_context("spawn")
        self._free: list[tuple[Any, Connection]] = [self._start() for _ in range(processes)]
        self._busy: dict[Connection, tuple[Any, _Job]] = {}

    def _start(self) -> tuple[Any, Connection]:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=_serve, args=(theirs, self.campaign, self.folder), daemon=False
        )
        process.start()
        theirs.close()
        return process, ours

    def run(self, tasks: Iterable[Task]) -> Iterator[Answer]:
        """Answers in the order in which they come. ``tasks`` is asked for the next one only when a process is free.

        A process that dies is replaced and its task done again, which a machine without memory may want; when one dies
        of it again, the example it was at is named a failure, and the others are run. Raises what a task raised."""
        waiting = iter(tasks)
        again: deque[_Job] = deque()
        while True:
            while self._free:
                if again:
                    job = again.popleft()
                elif (task := next(waiting, None)) is not None:
                    job = _Job(task)
                else:
                    break
                process, connection = self._free.pop()
                try:
                    connection.send(job.task)
                except OSError:
                    self._free.append(self._start())
                    again.append(job)
                    continue
                self._busy[connection] = process, job
            if not self._busy:
                return
            for ready in wait(list(self._busy)):
                connection = ready  # type: ignore[assignment]  # only connections are waited for
                process, job = self._busy[connection]
                try:
                    answer = connection.recv()
                except (EOFError, OSError, pickle.UnpicklingError):
                    del self._busy[connection]
                    process.join()
                    connection.close()
                    self._free.append(self._start())
                    told = f"the process that ran it died again, exit code {process.exitcode}"
                    if (once_more := _after_death(job, told)) is None:
                        yield died(job.task, told)
                    else:
                        again.append(once_more)
                    continue
                if isinstance(answer, Begun):
                    job.at = answer.number
                    continue
                del self._busy[connection]
                self._free.append((process, connection))
                if isinstance(answer, MqaRefError):
                    raise answer
                yield answer

    def processes(self) -> list[int]:
        """The ids of the running processes."""
        return [one.pid for one, _ in self._free] + [one.pid for one, _ in self._busy.values()]

    def close(self) -> None:
        """End all processes, those at work too."""
        for process, connection in self._free:
            connection.close()
            process.join(GRACE_SECONDS)
        busy = [(process, connection) for connection, (process, _) in self._busy.items()]
        for process, connection in (*self._free, *busy):
            with suppress(OSError):
                connection.close()
            if process.is_alive():
                process.terminate()
                process.join(GRACE_SECONDS)
            if process.is_alive():
                process.kill()
                process.join()
        self._free, self._busy = [], {}


def _after_death(job: _Job, told: str) -> _Job | None:
    """What is to be done once a process has died of a task, None for nothing more."""
    if job.tries + 1 < TRIES:
        return _Job(job.task, job.tries + 1)
    if job.at is None or job.at in job.task.fatal:
        return None
    return _Job(replace(job.task, fatal={**job.task.fatal, job.at: told}), job.tries)


def died(task: Task, message: str) -> Answer:
    """The answer in place of one that dead processes owe; the examples of a block count as skipped."""
    if task.found is not None:
        return Minimal(task.found, frozenset({task.found.name}), 0, 0.0)
    failure = Found(PROCESS_DIED, message, task.index, 0)
    if task.case:
        return Saved(task.source, "", (failure,))
    return BlockResult(task.index, skipped=task.size, failures=(failure,))
