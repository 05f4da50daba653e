"""A driver that is no driver: its device memory is this process's, its kernels are Python functions.

It keeps the one rule that matters here: a launch with programmatic stream serialization may run before the launch ahead
of it has stored anything, and in this driver it always does.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

import pytest

Kernel = Callable[[Any, list[int]], None]
"""Gets the launch configuration and the addresses of the parameters."""


class Status(IntEnum):
    """A few CUresult codes."""

    CUDA_SUCCESS = 0
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209
    CUDA_ERROR_ILLEGAL_ADDRESS = 700


def u32(address: int) -> int:
    return ctypes.c_uint32.from_address(address).value


def u64(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


class FakeDriver:
    """The calls that ``mqa_ref.cuda.driver.Gpu`` makes. ``kernels``: by entry name. ``fails``: call -> status."""

    CUfunction_attribute = SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8)
    CUlaunchAttributeID = SimpleNamespace(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION=6)
    CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL=1)

    def __init__(self, kernels: dict[str, Kernel]) -> None:
        self.kernels = {"write_late": write_late} | kernels
        self.fails: dict[str, Status] = {}
        self.memory: dict[int, Any] = {}
        self.log: list[str] = []
        self.late: Callable[[], None] | None = None
        self.graph: list[Callable[[], None]] | None = None

    def CUlaunchConfig(self) -> Any:  # noqa: N802 - the driver's name
        return SimpleNamespace(attrs=[], numAttrs=0)

    def CUlaunchAttribute(self) -> Any:  # noqa: N802
        return SimpleNamespace()

    CUlaunchAttributeValue = CUlaunchAttribute

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu"):
            raise AttributeError(name)

        def call(*arguments: Any) -> tuple[Any, ...]:
            self.log.append(name)
            if name in self.fails:
                return (self.fails[name],)
            value = getattr(self, f"do_{name}", lambda *_: 1)(*arguments)
            return (Status.CUDA_SUCCESS,) if value is None else (Status.CUDA_SUCCESS, value)

        return call

    def do_cuMemAlloc(self, size: int) -> int:  # noqa: N802
        block = ctypes.create_string_buffer(size)
        self.memory[ctypes.addressof(block)] = block
        return ctypes.addressof(block)

    def do_cuMemFree(self, address: int) -> None:  # noqa: N802
        del self.memory[address]

    def do_cuMemcpyHtoDAsync(self, target: int, source: int, size: int, _: Any) -> None:  # noqa: N802
        self.drain()
        ctypes.memmove(target, source, size)

    def do_cuMemcpyDtoH(self, target: int, source: int, size: int) -> None:  # noqa: N802
        ctypes.memmove(target, source, size)

    def do_cuStreamSynchronize(self, _: Any) -> None:  # noqa: N802
        self.drain()

    def do_cuModuleGetFunction(self, _: Any, name: bytes) -> Kernel:  # noqa: N802
        return self.kernels[name.decode()]

    def do_cuStreamBeginCapture(self, *_: Any) -> None:  # noqa: N802
        self.graph = []

    def do_cuStreamEndCapture(self, _: Any) -> Any:  # noqa: N802
        made, self.graph = self.graph, None
        return made

    def do_cuGraphInstantiate(self, graph: Any, _: int) -> Any:  # noqa: N802
        return graph

    def do_cuGraphLaunch(self, graph: Any, _: Any) -> None:  # noqa: N802
        for launch in graph:
            launch()

    def do_cuLaunchKernelEx(self, config: Any, kernel: Kernel, pointers: int, extra: int) -> None:  # noqa: N802
        assert extra == 0
        sizes = (8, 8, 8, 4, 8, 8, 4) if kernel is write_late else (8,) * 6
        held = [
            ctypes.create_string_buffer(ctypes.string_at(u64(pointers + 8 * i), size), max(8, size))
            for i, size in enumerate(sizes)
        ]
        overlaps = any(
            one.id == 6 and one.value.programmaticStreamSerializationAllowed for one in config.attrs
        )

        def launch() -> None:
            def run() -> None:
                kernel(config, [ctypes.addressof(one) for one in held])

            if kernel is write_late:
                self.drain()
                self.late = run
            elif overlaps:
                run()
                self.drain()
            else:
                self.drain()
                run()

        if self.graph is not None:
            self.graph.append(launch)
        else:
            launch()

    def drain(self) -> None:
        """Let the launch that was held back run."""
        late, self.late = self.late, None
        if late is not None:
            late()


def write_late(_: Any, parameters: list[int]) -> None:
    """What the kernel of ``mqa_ref.cuda.writer`` does."""
    for slot in range(2):
        source, target, words = parameters[1 + 3 * slot : 4 + 3 * slot]
        if u32(words):
            ctypes.memmove(u64(target), u64(source), u32(words) * 4)


@pytest.fixture
def driver() -> Callable[..., FakeDriver]:
    """driver(entry=kernel, ...)"""
    return lambda **kernels: FakeDriver(kernels)
