"""The tasks of a campaign done by the workers of a Dask cluster. Needs the extra ``cluster`` (distributed).

A worker that is lost with a task has it given to another one; an answer is taken once, so that every example is counted
once. Machines of a cluster need the same versions of this package and of Hypothesis, since that is what makes a block
the same everywhere.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING
from uuid import uuid4

from mqa_ref.errors import Fault, InputError, MqaRefError, NotAvailable
from mqa_ref.fuzz.campaign import BlockResult, Campaign
from mqa_ref.fuzz.session import Session
from mqa_ref.fuzz.workers import Answer, Keeper, Task, died, perform

if TYPE_CHECKING:
    from distributed import Client, Future

CONNECT_SECONDS = 15
AHEAD = 2
"""Tasks handed out for each thread of the cluster: one at work and one that waits there."""

_ONE_AT_A_TIME = threading.Lock()
"""Hypothesis keeps state of a process; a worker with several threads does one task after the other."""


@lru_cache(maxsize=2)
def _session(campaign: Campaign) -> Session:
    return Session(campaign)


def _perform(campaign: Campaign, task: Task) -> Answer | MqaRefError:
    """One task in a process of the cluster, with the kernel that an earlier task has loaded there."""
    with _ONE_AT_A_TIME:
        try:
            return perform(task, _session(campaign), Keeper(""))
        except MqaRefError as error:
            return error


class Cluster:
    """A ``Runner``. ``address``: of the scheduler, such as tcp://host:8786. ``folder``: where the cases of failures are
    kept, on this machine, as soon as their block has come back.

    Raises NotAvailable without distributed, and when no scheduler answers; InputError for an address that is none.
    """

    def __init__(self, campaign: Campaign, address: str, folder: str = "") -> None:
        if find_spec("distributed") is None:
            raise NotAvailable("distributed is not installed; the extra `cluster` brings it")
        from distributed import Client

        self.campaign, self._keep = campaign, Keeper(folder)
        try:
            self.client: Client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except ValueError as error:
            fault = Fault("--cluster", repr(address), "the address of a scheduler such as tcp://host:8786")
            raise InputError([fault]) from error
        except OSError as error:
            raise NotAvailable(f"no Dask scheduler answers at {address}: {error}") from error

    def run(self, tasks: Iterable[Task]) -> Iterator[Answer]:
        """Answers in the order in which they come. A task whose workers were lost again and again, as often as the
        cluster allows (``distributed.scheduler.allowed-failures``), is answered with a failure. Raises what a task
        raised."""
        from distributed import as_completed

        waiting, open_tasks = iter(tasks), dict[str, Task]()
        ready = as_completed(loop=self.client.loop)
        try:
            self._refill(waiting, open_tasks, ready)
            while open_tasks:
                future: Future = next(ready)
                task = open_tasks.pop(future.key)
                yield self._answer(future, task)
                self._refill(waiting, open_tasks, ready)
        finally:
            self.client.cancel([*ready.futures], force=True)

    def _refill(self, waiting: Iterator[Task], open_tasks: dict[str, Task], ready: object) -> None:
        room = max(1, AHEAD * sum(self.client.nthreads().values()))
        while len(open_tasks) < room and (task := next(waiting, None)) is not None:
            future = self.client.submit(_perform, self.campaign, task, key=f"mqa-ref-{uuid4()}", pure=False)
            open_tasks[future.key] = task
            ready.add(future)  # type: ignore[attr-defined]  # an as_completed, which has no types

    def _answer(self, future: Future, task: Task) -> Answer:
        from distributed.scheduler import KilledWorker

        try:
            answer: Answer | MqaRefError = future.result()
        except KilledWorker as error:
            return died(task, f"the processes of the cluster that ran it died: {error}"[:500])
        if isinstance(answer, MqaRefError):
            raise answer
        if isinstance(answer, BlockResult):
            for found in answer.failures:
                if found.case:
                    self._keep(found)
        return answer

    def close(self) -> None:
        """Leave the cluster as it was."""
        self.client.close()
