"""Runs one CTA of a launch again and watches it: its timeline, or how one element of its output came about.

The answers are plain values, since a kernel that is not this project's own runs in another process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from mqa_ref.emulator.dataflow import as_plain, graph
from mqa_ref.emulator.lane import LaneRecorder, StoreFinder
from mqa_ref.emulator.observe import Observer
from mqa_ref.emulator.timeline import Timeline
from mqa_ref.errors import Unsupported
from mqa_ref.flow import Flow
from mqa_ref.kernel.compile import CompiledKernel
from mqa_ref.kernel.targets import Target
from mqa_ref.problem import Problem
from mqa_ref.verification.launch import decoded, execute
from mqa_ref.verification.worker import Limits, Worker


class Watcher(Protocol):
    """Watches a launch of one target. ``ask``: see ``watch``; the rest as for a ``Launcher``. Raises what that does."""

    def __call__(
        self,
        problem: Problem,
        flow: Flow,
        ask: Mapping[str, Any],
        *,
        edit_ptx: Callable[[str], str] | None = None,
        order: str = "eager",
        seed: int = 0,
        options: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """What was seen."""
        ...


def watch(
    compiled: CompiledKernel,
    ptx: str,
    problem: Problem,
    flow: Flow,
    ask: Mapping[str, Any],
    *,
    order: str = "eager",
    seed: int = 0,
) -> dict[str, Any]:
    """Launch only the CTA ``ask["cta"]`` and say what it did.

    ``ask["what"]`` "timeline": the values of ``mqa_ref.emulator.timeline.Timeline``. "logit": how the CTA came to what
    it stores last at ``ask["row"]`` and ``ask["column"]``: {"nodes": [...], "root": number of the stored one}, see
    ``mqa_ref.emulator.dataflow``; both None when it stores nothing there.
    """
    cta = int(ask["cta"])

    def run(make: Callable[[Mapping[str, int]], Observer]) -> Observer:
        made: list[Observer] = []

        def observe(addresses: Mapping[str, int]) -> Observer:
            made.append(make(addresses))
            return made[0]

        execute(compiled, ptx, problem, flow, order=order, seed=seed, observe=observe)
        return made[0]

    if ask["what"] == "timeline":
        timeline = run(lambda _: Timeline(cta))
        assert isinstance(timeline, Timeline)
        return timeline.values()
    size = flow.bits_dtype.itemsize
    offset = (int(ask["row"]) * problem.row_stride + int(ask["column"])) * size
    finder = run(lambda addresses: StoreFinder(cta, addresses["logits"] + offset, size))
    assert isinstance(finder, StoreFinder)
    if finder.found is None:
        return {"nodes": None, "root": None}
    store = finder.found
    recorder = run(lambda _: LaneRecorder(cta, store))
    assert isinstance(recorder, LaneRecorder)
    nodes, root = graph(recorder.executed, decoded(ptx).program, finder.address)
    return {"nodes": [as_plain(node) for node in nodes], "root": root}


@contextmanager
def watcher(target: Target, limits: Limits | None = None) -> Iterator[Watcher]:
    """A watcher of ``target``; its worker process, if it has one, ends with the context. Raises Unsupported for a
    kernel without host code, which cannot be watched yet."""
    if target.raw is not None:
        raise Unsupported(f"{target.name} cannot be watched: it is launched without host code")
    if target.isolated:
        with Worker(target.name, limits) as worker:
            yield worker.watch
        return

    def here(
        problem: Problem,
        flow: Flow,
        ask: Mapping[str, Any],
        *,
        edit_ptx: Callable[[str], str] | None = None,
        order: str = "eager",
        seed: int = 0,
        options: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        compiled = target.compile(problem, flow, options)
        ptx = compiled.ptx if edit_ptx is None else edit_ptx(compiled.ptx)
        return watch(compiled, ptx, problem, flow, ask, order=order, seed=seed)

    yield here
