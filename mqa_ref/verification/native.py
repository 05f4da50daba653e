"""One launch of a kernel on a GPU: buffers as the emulator gets them, and what came back as the same ``Launch``.

A kernel described as data is bound by the driver. A CuTe DSL kernel has host code: it is run as for the emulator, with
the CUDA runtime replaced by callbacks and the addresses of the GPU, and makes grid, shared memory and tensor maps
(``mqa_ref.emulator.HostFunction``); what it would launch is then launched through the driver.

Standing: the first way ran on an H200. The second needs sm_100 and has not run on hardware; its parts have (the host
code in the emulator, the driver calls on an H200).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref import emulator, schedule
from mqa_ref.cuda.driver import Bound, Gpu
from mqa_ref.cuda.launch import Native, Settings, parameters_of, run
from mqa_ref.cuda.probe import require
from mqa_ref.flow import Flow
from mqa_ref.kernel.compile import CompiledKernel
from mqa_ref.kernel.raw_launch import Buffer, flat, poisoned
from mqa_ref.kernel.targets import Target
from mqa_ref.launch import Launch
from mqa_ref.problem import Problem
from mqa_ref.verification.launch import host_call, tensors_of

GUARD_COLUMNS = 256
"""Columns that lie between a row's end and the next row: a whole split."""
CHANGING = ("context_lens", "schedule_meta")
CUTE_CAPABILITY = (10, 0)
"""sm_100a code runs on compute capability 10.0 alone (PTX ISA, ".target": architecture-specific features)."""
_CAPABILITIES = {"sm_90a": (9, 0), "sm_100a": CUTE_CAPABILITY}


def capability(target: Target) -> tuple[int, int]:
    """The compute capability that the kernel's code runs on."""
    return CUTE_CAPABILITY if target.raw is None else _CAPABILITIES[target.raw.arch]


def require_for(target: Target) -> None:
    """Raises NotAvailable that names what a launch of the kernel on this machine lacks."""
    require((capability(target),), f"the kernel {target.name}")


@lru_cache(maxsize=1)
def open_gpu() -> Gpu:
    """The GPU of this process."""
    return Gpu(require().index)


def launch_native(
    target: Target,
    ptx: str | None,
    problem: Problem,
    flow: Flow,
    options: Mapping[str, Any] | None,
    settings: Settings,
    gpu: Gpu | None = None,
) -> Launch:
    """Compile, and launch as often as the settings ask. ``ptx``: text to run in place of the compiled code, which the
    driver compiles. Raises NotAvailable without the GPU it needs, the errors of ``Gpu``, and those of compiling."""
    device = open_gpu() if gpu is None else gpu
    wide = _wider(problem)
    other = _halved(wide, target)
    make = _described if target.raw is not None else _compiled
    native = make(target, ptx, wide, other, flow, options)
    ran = run(device, native, settings)
    shape = (problem.rows, problem.row_stride)
    return Launch(
        logits=ran.output.view(flow.bits_dtype).reshape(shape),
        written=ran.written.reshape(shape),
        findings=ran.findings,
        ctas=ran.ctas,
        instructions=0,
        seconds=ran.seconds,
    )


def _wider(problem: Problem) -> Problem:
    """The same with rows of the output further apart: what lies between belongs to no row."""
    return _like(problem, problem.context_lens, problem.row_stride + GUARD_COLUMNS).forced(problem.schedule)


def _halved(problem: Problem, target: Target) -> Problem:
    """The same with half of every length, and a schedule for these."""
    lengths = problem.context_lens // 2
    built = schedule.build(lengths, problem.num_sms)
    return target.scheduled(_like(problem, lengths, problem.max_context_len, built))


def _like(
    problem: Problem, lengths: NDArray[np.int32], columns: int, built: NDArray[np.int32] | None = None
) -> Problem:
    arrays = (problem.q, problem.kv_fused, problem.weights, problem.block_table, lengths.astype(np.int32))
    return Problem(
        *arrays, page=problem.page, num_sms=problem.num_sms, max_context_len=columns, schedule=built
    )


def _described(
    target: Target,
    ptx: str | None,
    problem: Problem,
    other: Problem,
    flow: Flow,
    options: Mapping[str, Any] | None,  # noqa: ARG001 - a kernel described as data has none
) -> Native:
    assert target.raw is not None, "only for kernels that are described as data"
    launch, kernel = target.raw.describe(problem, flow), target.raw.compile(problem, flow)
    changed = target.raw.describe(other, flow)
    return _native(
        image=kernel.cubin if ptx is None else ptx.encode(),
        entry=kernel.entry,
        buffers=launch.buffers,
        bind=lambda gpu, addresses: parameters_of(gpu, launch, addresses),
        rebind=lambda gpu, addresses: parameters_of(gpu, changed, addresses),
        changed={name: changed.buffer(name).data for name in CHANGING},
        problem=problem,
        flow=flow,
    )


def _compiled(
    target: Target,
    ptx: str | None,
    problem: Problem,
    other: Problem,
    flow: Flow,
    options: Mapping[str, Any] | None,
) -> Native:
    compiled = target.compile(problem, flow, options)
    program = emulator.parse(compiled.ptx if ptx is None else ptx)
    size = problem.rows * problem.row_stride * flow.bits_dtype.itemsize
    buffers = [
        Buffer(name, poisoned(size) if name == "logits" else flat(data), name == "logits")
        for name, (data, _, _) in tensors_of(problem, flow).items()
    ]
    return _native(
        image=compiled.cubin if ptx is None else ptx.encode(),
        entry=program.name,
        buffers=tuple(buffers),
        bind=lambda _, addresses: _bind(compiled, program, problem, flow, addresses),
        rebind=lambda _, addresses: _bind(compiled, program, other, flow, addresses),
        changed={"context_lens": flat(other.context_lens), "schedule_meta": flat(other.schedule)},
        problem=problem,
        flow=flow,
    )


def _bind(
    compiled: CompiledKernel,
    program: emulator.Program,
    problem: Problem,
    flow: Flow,
    addresses: Mapping[str, int],
) -> Bound:
    """What the host code launches when its tensors lie at these addresses."""
    call = host_call(compiled, program, problem, flow, dict(addresses))
    space = call.parameters
    parameters = tuple(space[one.offset : one.offset + one.size] for one in program.parameters)
    return Bound(call.grid, call.block, call.shared_bytes, parameters, call.overlaps)


def _native(*, problem: Problem, flow: Flow, **rest: Any) -> Native:
    size = flow.bits_dtype.itemsize
    pitch = problem.row_stride
    return Native(
        output="logits",
        row_bytes=(pitch - GUARD_COLUMNS) * size,
        pitch=pitch * size,
        itemsize=size,
        **rest,
    )
