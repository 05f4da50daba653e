"""One launch on a GPU, several times over: poisoned and guarded buffers, equal bits in every rerun, lengths and
schedule written just before the launch, and a captured graph replayed with other lengths.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from mqa_ref.cuda import writer
from mqa_ref.cuda.driver import Bound, Bytes, Gpu
from mqa_ref.cuda.memory import POISONS, Arena
from mqa_ref.findings import Finding
from mqa_ref.kernel.raw_launch import Buffer, Pointer, RawLaunch, Scalar

STAGED = "staged "
"""Put before the name of a buffer: where its content waits to be copied into it."""


@dataclass(frozen=True)
class Settings:
    """``reruns``: launches in all whose bits must be equal, at least 2. ``late``: also with lengths and schedule
    written just before, on the same stream. ``graph``: also captured into a graph that is replayed with changed
    lengths."""

    reruns: int = 3
    late: bool = True
    graph: bool = True


@dataclass(frozen=True)
class Native:
    """A launch for a GPU. ``image``: cubin or PTX. ``bind``: the launch, once the buffers have addresses.

    ``output``: the writable buffer, rows of ``pitch`` bytes of which ``row_bytes`` may be stored to, elements of
    ``itemsize`` bytes. ``changed``: other contents of small input buffers, for the same launch with other lengths, and
    ``rebind`` what the host makes of these; None for what it makes of the first ones.
    """

    image: bytes
    entry: str
    buffers: tuple[Buffer, ...]
    bind: Callable[[Gpu, Mapping[str, int]], Bound]
    output: str
    row_bytes: int
    pitch: int
    itemsize: int
    changed: Mapping[str, Bytes] = field(default_factory=dict)
    rebind: Callable[[Gpu, Mapping[str, int]], Bound] | None = None


@dataclass(frozen=True)
class Ran:
    """``output``: bytes [rows, row_bytes] of the first run; ``written``: bool [rows, elements], True where some run
    stored; ``seconds``: wall time of the first launch."""

    output: Bytes
    written: NDArray[np.bool_]
    findings: tuple[Finding, ...]
    ctas: int
    seconds: float


def run(gpu: Gpu, native: Native, settings: Settings) -> Ran:
    """Launch as often as the settings ask. Raises the errors of ``Gpu``."""
    staged = [
        Buffer(STAGED + buffer.name, buffer.data)
        for buffer in native.buffers
        if buffer.name in native.changed
    ]
    arena = Arena(gpu, (*native.buffers, *staged), native.row_bytes, native.pitch)
    try:
        return _Session(gpu, native, arena).all(settings)
    finally:
        arena.close()


class _Session:
    def __init__(self, gpu: Gpu, native: Native, arena: Arena) -> None:
        self.gpu, self.native, self.arena = gpu, native, arena
        self.bound = native.bind(gpu, arena.addresses)
        self.function = gpu.function(native.image, native.entry, self.bound.shared_bytes)
        self.findings: list[Finding] = []

    def all(self, settings: Settings) -> Ran:
        """The reruns, then the other ways to launch."""
        started = time.perf_counter()
        first = self.once(POISONS[0], self._plain)
        seconds = time.perf_counter() - started
        second = self.once(POISONS[1], self._plain)
        written = self._elements(first != POISONS[0]) | self._elements(second != POISONS[1])
        self._compare(first, second, written, "nondeterministic", "two launches of the same inputs")
        for number in range(2, settings.reruns):
            other = self.once(POISONS[number % 2], self._plain)
            self._compare(
                first, other, written, "nondeterministic", f"launch {number + 1} of the same inputs"
            )
        if self.native.changed and settings.late:
            late = self.once(POISONS[1], self._late, stale=True)
            what = "with lengths and schedule written just before the launch"
            self._compare(first, late, written, "stale_metadata", what)
        if self.native.changed and settings.graph:
            self._graph(first, written)
        ctas = self.bound.grid[0] * self.bound.grid[1] * self.bound.grid[2]
        return Ran(first, written, _merged(self.findings), ctas, seconds)

    def once(self, poison: int, launch: Callable[[], None], *, stale: bool = False) -> Bytes:
        """Write everything, launch, look for damage; the output. ``stale``: begin with the changed lengths."""
        before = self.arena.image(poison)
        expected = before.copy()
        if stale:
            self._put(before, self.native.changed)
        self.arena.write(before)
        launch()
        after = self.arena.read()
        self.findings += self.arena.damage(expected, after)
        return self.arena.output(after, self.native.output)

    def _plain(self) -> None:
        self.gpu.launch(self.function, self.bound)

    def _late(self, delay_ns: int = writer.DELAY_NS) -> None:
        late = self.gpu.function(writer.ptx().encode(), writer.ENTRY)
        addresses = self.arena.addresses
        copies = [
            (addresses[STAGED + name], addresses[name], data.size)
            for name, data in self.native.changed.items()
        ]
        self.gpu.launch(late, writer.write(copies, delay_ns))
        self.gpu.launch(self.function, self.bound)

    def _graph(self, first: Bytes, written: NDArray[np.bool_]) -> None:
        """Captured once; replayed with the changed lengths, against a plain launch of these; then with the own ones."""
        self.gpu.function(writer.ptx().encode(), writer.ENTRY)  # nothing may be loaded during the capture
        graph = self.gpu.captured(lambda: self._late(0))
        changed = self.arena.image(POISONS[0])
        self._put(changed, self.native.changed)
        self.arena.write(changed)
        afresh = self.native.rebind or self.native.bind
        self.gpu.launch(self.function, afresh(self.gpu, self.arena.addresses))
        direct = self.arena.output(self.arena.read(), self.native.output)
        # The staged contents change between replays, nothing else: the graph is the same.
        for contents, wanted, mask in (
            ({STAGED + name: data for name, data in self.native.changed.items()}, direct, None),
            ({}, first, written),
        ):
            before = self.arena.image(POISONS[0])
            self._put(before, contents)
            self.arena.write(before)
            self.gpu.replay(graph)
            got = self.arena.output(self.arena.read(), self.native.output)
            told = "a replayed graph with changed lengths" if mask is None else "a replayed graph"
            everywhere = np.ones(written.shape, np.bool_)
            self._compare(wanted, got, everywhere if mask is None else mask, "graph_replay_differs", told)

    def _put(self, image: Bytes, contents: Mapping[str, Bytes]) -> None:
        for name, data in contents.items():
            image[self.arena.places[name].inside] = data

    def _elements(self, differs: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Per element, whether any of its bytes differs."""
        return np.asarray(differs.reshape(len(differs), -1, self.native.itemsize).any(axis=2))

    def _compare(self, first: Bytes, other: Bytes, written: NDArray[np.bool_], kind: str, what: str) -> None:
        wrong = self._elements(first != other) & written
        if wrong.any():
            row, column = (int(one) for one in np.argwhere(wrong)[0])
            message = (
                f"{what}: other bits in {int(wrong.sum())} elements, the first at row {row}, column {column}"
            )
            self.findings.append(Finding(kind, "error", message))


def _merged(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Equal findings of several runs as one, counted."""
    counts: dict[Finding, int] = {}
    for one in findings:
        counts[one] = counts.get(one, 0) + 1
    return tuple(replace(one, count=count) for one, count in counts.items())


def parameters_of(gpu: Gpu, launch: RawLaunch, addresses: Mapping[str, int]) -> Bound:
    """A described launch (``mqa_ref.kernel.raw_launch.RawLaunch``) with its addresses."""
    made = []
    for one in launch.parameters:
        if isinstance(one, Scalar):
            made.append(one.value.to_bytes(one.size, "little"))
        elif isinstance(one, Pointer):
            place = 0 if one.buffer is None else addresses[one.buffer] + one.offset
            made.append(place.to_bytes(8, "little"))
        else:
            made.append(gpu.tensor_map(one, addresses[one.buffer]))
    return Bound(launch.grid, launch.block, launch.shared_bytes, tuple(made), launch.overlaps)
