"""Many mutants on several processes: each launch in a process of its own with a time limit, which may die of it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from functools import partial

from mqa_ref.emulator.engines import Emulation
from mqa_ref.errors import MqaRefError
from mqa_ref.fuzz.mutants.judge import OVERDUE, Step, Verdict, climb
from mqa_ref.fuzz.mutants.mutant import Mutant
from mqa_ref.fuzz.mutants.statements import replaced
from mqa_ref.verification.runner import Launcher
from mqa_ref.verification.worker import Limits, Worker

Told = Callable[[int, int, str], None]
Ask = Callable[[Mutant], Verdict]


def ptx_asker(
    kernel: str, steps: Sequence[Step], limits: Limits, emulation: Emulation | None = None
) -> tuple[Ask, Callable[[], None]]:
    """What judges PTX mutants in a process that it keeps, and what ends it."""
    open_one: list[Worker] = []

    def ask(mutant: Mutant) -> Verdict:
        if not open_one:
            open_one.append(Worker(kernel, limits, emulation=emulation))
        edited: Launcher = partial(open_one[0].launch, edit_ptx=lambda ptx: replaced(ptx, mutant.edits))
        told = climb(mutant.id, edited, steps, kernel)
        if OVERDUE in told.signs:
            # A process whose launches ran out of time too often in a row gives up the kernel: that is not meant here.
            close()
        return told

    def close() -> None:
        for worker in open_one:
            worker.close()
        open_one.clear()

    return ask, close


def run(
    mutants: Sequence[Mutant],
    make: Callable[[], tuple[Ask, Callable[[], None]]],
    workers: int = 1,
    progress: Told | None = None,
    done: Callable[[Verdict], None] | None = None,
) -> tuple[Verdict, ...]:
    """The verdict of each mutant, in their order, whatever the number of workers. ``make``: an asker for each worker.
    ``done`` is shown each verdict as it comes. Raises what an asker raises, after all have stopped."""
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in range(len(mutants)):
        waiting.put(number)
    verdicts: dict[int, Verdict] = {}
    stopped: list[MqaRefError] = []
    lock = threading.Lock()

    def work() -> None:
        ask, close = make()
        try:
            while not stopped:
                try:
                    number = waiting.get_nowait()
                except queue.Empty:
                    return
                told = ask(mutants[number])
                with lock:
                    verdicts[number] = told
                    if done is not None:
                        done(told)
                    if progress is not None:
                        progress(len(verdicts), len(mutants), told.id)
        except MqaRefError as error:
            stopped.append(error)
        finally:
            close()

    threads = [threading.Thread(target=work) for _ in range(max(1, min(workers, len(mutants))))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if stopped:
        raise stopped[0]
    return tuple(verdicts[number] for number in range(len(mutants)))
