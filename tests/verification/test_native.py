"""A CuTe DSL kernel on a GPU that is the emulator: the whole native path, from host code to replayed graph, with
a driver in Python in place of NVIDIA's. And the process of a native kernel that faults, hangs or dies.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from enum import IntEnum
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mqa_ref import emulator
from mqa_ref.cuda.driver import Gpu
from mqa_ref.cuda.launch import Settings
from mqa_ref.errors import KernelDied, KernelError, KernelTimeout, NotAvailable
from mqa_ref.flow import Flow
from mqa_ref.kernel.targets import resolve
from mqa_ref.launch import Launch
from mqa_ref.reference import reference_logits
from mqa_ref.verification.given import given
from mqa_ref.verification.native import launch_native
from mqa_ref.verification.runner import launcher
from mqa_ref.verification.worker import Limits, Worker

FLOW = Flow.parse("fp32-fp32-fp32")
PROBLEM = given((130, 5), num_sms=2, page=64, heads=32, next_n=1).problem
BASE = 0x7_0000_0000_0000
"""Where the emulator puts the first buffer."""


class Ok(IntEnum):
    """CUresult."""

    CUDA_SUCCESS = 0


class EmulatedDriver:
    """The driver calls of ``Gpu`` with one allocation at BASE; PTX is executed by the emulator, in the stream's order,
    but a launch with programmatic serialization does not wait for the writer ahead of it until it says so."""

    CUfunction_attribute = SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8)
    CUlaunchAttributeID = SimpleNamespace(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION=6)
    CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL=1)
    CUlaunchConfig = staticmethod(lambda: SimpleNamespace(attrs=[], numAttrs=0))
    CUlaunchAttribute = CUlaunchAttributeValue = staticmethod(SimpleNamespace)

    def __init__(self, program: emulator.Program) -> None:
        self.program = program
        self.memory = np.zeros(0, np.uint8)
        self.launches = self.overlapping = 0
        self.findings: list[Any] = []
        self.graph: list[Callable[[], None]] | None = None

    def __getattr__(self, name: str) -> Any:
        done = getattr(type(self), f"do_{name.removeprefix('cu')}", lambda *_: 1)

        def call(*arguments: Any) -> tuple[Any, ...]:
            value = done(self, *arguments)
            return (Ok.CUDA_SUCCESS,) if value is None else (Ok.CUDA_SUCCESS, value)

        return call

    def do_MemAlloc(self, size: int) -> int:  # noqa: N802 - names of the driver
        self.memory = np.zeros(size, np.uint8)
        return BASE

    def do_MemcpyHtoDAsync(self, target: int, source: int, size: int, _: Any) -> None:  # noqa: N802
        self.memory[target - BASE :][:size] = np.frombuffer(ctypes.string_at(source, size), np.uint8)

    def do_MemcpyDtoH(self, target: int, source: int, size: int) -> None:  # noqa: N802
        ctypes.memmove(target, self.memory[source - BASE :].ctypes.data, size)

    def do_ModuleLoadData(self, image: bytes) -> Any:  # noqa: N802
        assert image.endswith(b"\0")
        return (
            emulator.decode(emulator.parse(image[:-1].decode())) if b"write_late" not in image else "writer"
        )

    def do_ModuleGetFunction(self, module: Any, name: bytes) -> Any:  # noqa: N802
        assert name in (b"write_late", self.program.name.encode())
        return module

    def do_StreamBeginCapture(self, *_: Any) -> None:  # noqa: N802
        self.graph = []

    def do_StreamEndCapture(self, _: Any) -> Any:  # noqa: N802
        made, self.graph = self.graph, None
        return made

    def do_GraphInstantiate(self, graph: Any, _: int) -> Any:  # noqa: N802
        return graph

    def do_GraphLaunch(self, graph: Any, _: Any) -> None:  # noqa: N802
        for launch in graph:
            launch()

    def do_LaunchKernelEx(self, config: Any, function: Any, pointers: int, _: int) -> None:  # noqa: N802
        sizes = (
            (8, 8, 8, 4, 8, 8, 4) if function == "writer" else [one.size for one in self.program.parameters]
        )
        starts = (ctypes.c_uint64 * len(sizes)).from_address(pointers)
        held = [ctypes.string_at(start, size) for start, size in zip(starts, sizes, strict=True)]
        launch: Callable[[], None] = partial(self.write, held)
        if function != "writer":
            launch = partial(self.execute, config, function, held)
        if self.graph is not None:
            self.graph.append(launch)
        else:
            launch()

    def write(self, held: list[bytes]) -> None:
        numbers = [int.from_bytes(one, "little") for one in held]
        for source, target, words in (numbers[1:4], numbers[4:7]):
            self.memory[target - BASE :][: 4 * words] = self.memory[source - BASE :][: 4 * words].copy()

    def execute(self, config: Any, code: emulator.Code, held: list[bytes]) -> None:
        space = bytearray(self.program.parameter_bytes)
        for one, raw in zip(self.program.parameters, held, strict=True):
            space[one.offset : one.offset + one.size] = raw
        memory = emulator.GlobalMemory()
        assert memory.add("device", self.memory, writable=True).address == BASE
        grid = (config.gridDimX, config.gridDimY, config.gridDimZ)
        block = (config.blockDimX, config.blockDimY, config.blockDimZ)
        call = emulator.LaunchCall(grid, block, config.sharedMemBytes, bytes(space), bool(config.attrs))
        outcome = emulator.run_grid(code, call, memory, budget=400_000)
        self.findings += [one for one in outcome.findings if one.fails]
        self.launches += 1
        self.overlapping += bool(config.attrs)


@pytest.mark.parametrize("pdl", [False, True])
def test_the_builtin_kernel_by_the_native_path(pdl: bool) -> None:
    target = resolve("builtin")
    options = {"enable_pdl": pdl}
    ptx = target.compile(PROBLEM, FLOW, options).ptx
    driver = EmulatedDriver(emulator.parse(ptx))
    launch = launch_native(target, ptx, PROBLEM, FLOW, options, Settings(reruns=2), Gpu(0, driver))
    assert not launch.findings
    bits, valid = reference_logits(PROBLEM, FLOW)
    assert valid.sum() == 135
    assert (launch.logits[:, : valid.shape[1]][valid] == bits[valid]).all()
    assert launch.written[:, : valid.shape[1]][valid].all()
    assert launch.logits.shape == (2, 256)
    assert launch.ctas == 2
    # Two reruns, one with late lengths, one plain with the changed ones, two replays.
    assert (driver.launches, driver.overlapping) == (6, 6 if pdl else 0)


def test_without_a_gpu_nothing_is_started() -> None:
    with (
        pytest.raises(NotAvailable, match="cannot launch on a GPU"),
        launcher(resolve("builtin"), None, Settings()),
    ):
        pass


CHILD = """
import os, time
import numpy as np
import mqa_ref.verification.native as native
import mqa_ref.verification.service as service
from mqa_ref.errors import KernelError
from mqa_ref.kernel.targets import Target
from mqa_ref.launch import Launch

def launch_native(target, ptx, problem, flow, options, settings, gpu=None):
    first = int(problem.context_lens[0])
    if first == 2:
        time.sleep(600)
    if first == 3:
        os.abort()
    if first == 4:
        raise KernelError("the kernel failed on the GPU: CUDA_ERROR_ILLEGAL_ADDRESS")
    shape = (problem.rows, problem.row_stride)
    return Launch(np.full(shape, os.getpid(), np.uint32), np.ones(shape, np.bool_), (), settings.reruns, 0, 0.0)

service.resolve = lambda name: Target(name, lambda: object)
native.require_for, native.launch_native = lambda target: None, launch_native
"""


def test_what_breaks_the_context_ends_one_case_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text(CHILD)
    monkeypatch.syspath_prepend(tmp_path)
    with Worker("builtin", Limits(seconds=8), Settings(reruns=7)) as worker:

        def launched(length: int) -> Launch:
            problem = given((length,), num_sms=1, page=64, heads=32, next_n=1).problem
            return worker.launch(problem, FLOW)

        first = launched(1)
        assert first.ctas == 7, "the settings arrive"
        assert launched(1).logits[0, 0] == first.logits[0, 0], "one process serves many cases"
        seen = [int(first.logits[0, 0])]
        for length, kind, words in (
            (2, KernelTimeout, "stopped after 8 seconds"),
            (3, KernelDied, "SIGABRT"),
            (4, KernelError, "ILLEGAL_ADDRESS"),
        ):
            with pytest.raises(kind, match=words):
                launched(length)
            seen.append(int(launched(1).logits[0, 0]))
        assert len(set(seen)) == 4, "each failure is followed by a fresh process"
        assert worker.starts == 4
