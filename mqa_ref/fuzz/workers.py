"""Where blocks and minimisations are run: in this process, or in several others. All of it is the same work, asked for
and answered in plain data; a process that dies is replaced and its work done again, once.

Anything that takes a ``Task`` and gives back its answer can stand here: ``perform`` is a pure function of both.
"""

from __future__ import annotations

import multiprocessing
import pickle
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from mqa_ref.errors import MqaRefError
from mqa_ref.fuzz.block import run_block
from mqa_ref.fuzz.campaign import BLOCK, BlockResult, Campaign, Found
from mqa_ref.fuzz.casefile import decode_case
from mqa_ref.fuzz.files import write_whole
from mqa_ref.fuzz.minimise import Minimal, minimise
from mqa_ref.fuzz.session import Session

TRIES = 2
KEPT = 2
UNSHRUNK = "unshrunk-"
"""What the names of cases begin with that are not minimised yet."""


@dataclass(frozen=True)
class Task:
    """Run a block (``index``, ``size`` examples, ``seconds`` at most, ``stop`` at a failure), or minimise a failure
    (``found``), or try a saved case again (``case``, its bytes, and ``source``, its name)."""

    index: int = -1
    size: int = BLOCK
    seconds: float | None = None
    stop: bool = False
    found: Found | None = None
    case: bytes = b""
    source: str = ""


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


def perform(task: Task, session: Session, keep: Keeper) -> Answer:
    """Do one task: a pure function of the task and the session's campaign, but for time."""
    if task.found is not None:
        return minimise(session.campaign, task.found, session)
    if task.case:
        return _again(task, session)
    how: Any = {"size": task.size, "seconds": task.seconds, "stop": task.stop}
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
                answer: Any = perform(task, session, keep)
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
        self._busy: dict[Connection, tuple[Any, Task, int]] = {}

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
        A task during which the process died twice is answered with a failure. Raises what a task raised."""
        waiting = iter(tasks)
        again: deque[tuple[Task, int]] = deque()
        while True:
            while self._free:
                task, tries = again.popleft() if again else (next(waiting, None), 0)
                if task is None:
                    break
                process, connection = self._free.pop()
                try:
                    connection.send(task)
                except OSError:
                    self._free.append(self._start())
                    again.append((task, tries))
                    continue
                self._busy[connection] = process, task, tries
            if not self._busy:
                return
            for ready in wait(list(self._busy)):
                connection = ready  # type: ignore[assignment]  # only connections are waited for
                process, task, tries = self._busy.pop(connection)
                try:
                    answer = connection.recv()
                except (EOFError, OSError, pickle.UnpicklingError):
                    process.join()
                    connection.close()
                    self._free.append(self._start())
                    if tries + 1 < TRIES:
                        again.append((task, tries + 1))
                    else:
                        yield _died(task, process.exitcode)
                    continue
                self._free.append((process, connection))
                if isinstance(answer, MqaRefError):
                    raise answer
                yield answer

    def processes(self) -> list[int]:
        """The ids of the running processes."""
        return [one.pid for one, _ in self._free] + [one.pid for one, _, _ in self._busy.values()]

    def close(self) -> None:
        """End all processes, those at work too."""
        for process, connection in self._free:
            connection.close()
            process.join(5)
        for connection, (process, _, _) in self._busy.items():
            with suppress(OSError):
                connection.close()
            process.terminate()
            process.join(5)
            if process.is_alive():
                process.kill()
                process.join()
        self._free, self._busy = [], {}


def _died(task: Task, code: int | None) -> Answer:
    """The answer in place of one that a dead process owes."""
    if task.found is not None:
        return Minimal(task.found, frozenset({task.found.name}), 0, 0.0)
    message = f"the process that ran it died twice, exit code {code}"
    failure = Found("error:process_died", message, task.index, 0)
    return Saved(task.source, "", (failure,)) if task.case else BlockResult(task.index, failures=(failure,))
