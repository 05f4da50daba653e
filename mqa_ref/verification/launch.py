"""One launch of a compiled kernel in the emulator: buffers in, a ``Launch`` out."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref import emulator, numerics
from mqa_ref.errors import Unsupported
from mqa_ref.flow import Flow
from mqa_ref.kernel.compile import ArgumentLayout, CompiledKernel
from mqa_ref.kernel.raw_launch import POISON_BYTE
from mqa_ref.kernel.raw_source import RawSource
from mqa_ref.kernel.targets import Target
from mqa_ref.launch import Launch
from mqa_ref.numerics import MachineModel
from mqa_ref.problem import Problem
from mqa_ref.schedule import walk
from mqa_ref.verification.raw import run_raw

CTA_BUDGET = 50_000
SPLIT_BUDGET = 60_000
"""Warp instructions a CTA may execute: a base, and an allowance for each split of 256 tokens and each next_n
token."""
FORCED_CTA_BUDGET = 20_000
FORCED_SPLIT_BUDGET = 15_000
"""The same for a schedule that was forced, see ``Problem.forced``."""


def launch(
    target: Target,
    problem: Problem,
    flow: Flow,
    *,
    machine: str | MachineModel = "sm100",
    edit_ptx: Callable[[str], str] | None = None,
    order: str = "eager",
    seed: int = 0,
    engine: str = "compiled",
    sanitize: bool = True,
    options: Mapping[str, Any] | None = None,
    budget: int | None = None,
) -> Launch:
    """Compile ``target`` for the shape of ``problem`` and execute it on the CPU.

    ``edit_ptx`` rewrites the PTX before it runs (mutants); ``order`` and ``seed`` choose the interleaving
    (see ``mqa_ref.emulator.policy``). ``budget``: warp instructions a CTA may execute, None for what the problem
    needs and more. Raises Unsupported before anything runs for what the target cannot
    serve, EmulatorError for what the emulator does not model.
    """
    if target.raw is not None:
        how: dict[str, Any] = {"order": order, "seed": seed, "engine": engine, "sanitize": sanitize}
        how["budget"] = _budget(problem) if budget is None else budget
        return _execute_raw(target.raw, edit_ptx, problem, flow, machine=machine, **how)
    compiled = target.compile(problem, flow, options)
    ptx = compiled.ptx if edit_ptx is None else edit_ptx(compiled.ptx)
    return execute(
        *(compiled, ptx, problem, flow),
        machine=machine,
        order=order,
        seed=seed,
        engine=engine,
        sanitize=sanitize,
        budget=budget,
    )


def execute(
    compiled: CompiledKernel,
    ptx: str,
    problem: Problem,
    flow: Flow,
    *,
    machine: str | MachineModel = "sm100",
    order: str = "eager",
    seed: int = 0,
    engine: str = "compiled",
    sanitize: bool = True,
    budget: int | None = None,
    observe: Callable[[Mapping[str, int]], emulator.Observer] | None = None,
) -> Launch:
    """Run the host code of ``compiled`` and then ``ptx`` on the problem's buffers.

    ``observe`` makes an observer from the addresses of the buffers; then only the CTA that it watches is run.
    """
    code = decoded(ptx)
    memory = emulator.GlobalMemory()
    shape = (problem.rows, problem.row_stride)
    logits = np.full(shape[0] * shape[1] * flow.bits_dtype.itemsize, POISON_BYTE, np.uint8)
    tensors = tensors_of(problem, flow)
    addresses: dict[str, int] = {}
    for name, (data, _, _) in tensors.items():
        raw_bytes = logits if name == "logits" else np.frombuffer(data.tobytes(), np.uint8).copy()
        share = _table_share(problem) if name == "block_table" else None
        addresses[name] = memory.add(name, raw_bytes, writable=name == "logits", share=share).address
    call = host_call(compiled, code.program, problem, flow, addresses)
    outcome = emulator.run_grid(
        *(code, call, memory),
        machine=machine,
        order=order,
        seed=seed,
        budget=_budget(problem) if budget is None else budget,
        engine=engine,
        sanitize=sanitize,
        observer=None if observe is None else observe(addresses),
    )
    return _launch(outcome, next(a for a in memory.allocations if a.name == "logits"), problem, flow)


def host_call(
    compiled: CompiledKernel,
    program: emulator.Program,
    problem: Problem,
    flow: Flow,
    addresses: dict[str, int],
) -> emulator.LaunchCall:
    """What the host code of ``compiled`` launches when its tensors lie at ``addresses``; nothing is launched.

    Raises Unsupported for an argument that is not part of the contract.
    """
    host = _host(compiled.host_object, compiled.host_symbol, compiled.init_symbol, compiled.load_symbol)
    tensors = tensors_of(problem, flow)
    scalars = {"num_phys_blocks": problem.num_pages, "batch_size": problem.batch}
    raw = [_pack(layout, tensors, addresses, scalars) for layout in compiled.arguments]
    return host.call(raw, program)


def _execute_raw(
    source: RawSource,
    edit_ptx: Callable[[str], str] | None,
    problem: Problem,
    flow: Flow,
    **how: Any,
) -> Launch:
    """A kernel that is described as data; ``problem`` has the schedule of the kernel's own metadata. ``how``: machine,
    interleaving, engine and budget, as for ``emulator.run_grid``."""
    described, kernel = source.describe(problem, flow), source.compile(problem, flow)
    ptx = kernel.ptx if edit_ptx is None else edit_ptx(kernel.ptx)
    shares = {"block_table": _table_share(problem)}
    outcome, buffer = run_raw(decoded(ptx), described, shares=shares, **how)
    return _launch(outcome, buffer, problem, flow)


def _launch(outcome: emulator.Outcome, buffer: emulator.Allocation, problem: Problem, flow: Flow) -> Launch:
    """What happened, from the outcome and the buffer of logits."""
    shape = (problem.rows, problem.row_stride)
    elements = (*shape, flow.bits_dtype.itemsize)
    return Launch(
        logits=buffer.data.view(flow.bits_dtype).reshape(shape),
        written=np.all(buffer.stores.reshape(elements) > 0, axis=2),
        findings=outcome.findings,
        ctas=outcome.ctas,
        instructions=outcome.instructions,
        seconds=outcome.seconds,
        writer=buffer.owner.reshape(elements)[:, :, 0].copy(),
    )


@lru_cache(maxsize=64)
def decoded(ptx: str) -> emulator.Code:
    """The program of a PTX text, parsed and decoded once."""
    return emulator.decode(emulator.parse(ptx))


@lru_cache(maxsize=64)
def _host(host_object: bytes, *symbols: str) -> emulator.HostFunction:
    return emulator.HostFunction(host_object, *symbols)


def _table_share(problem: Problem) -> Callable[[int], NDArray[np.bool_]]:
    """Which bytes of the block table a CTA may read: the rows that its walk touches, unneeded entries
    included.

    A row that is read past its end is seen when the CTA has no business with the next one; what two rows of
    one CTA read of each other cannot be told apart.
    """
    rows = [
        {run.row for run in one.runs}
        for one in walk(problem.schedule, problem.context_lens, zero_rows="execute")
    ]
    row_bytes = problem.block_table.shape[1] * problem.block_table.dtype.itemsize

    @lru_cache(maxsize=1)
    def share(cta: int) -> NDArray[np.bool_]:
        mine = np.zeros((problem.batch, row_bytes), np.bool_)
        mine[[row for row in rows[cta] if row < problem.batch]] = True
        return mine.reshape(-1)

    return share


Tensor = tuple[NDArray[np.generic], tuple[int, ...], tuple[int, ...]]


def tensors_of(problem: Problem, flow: Flow) -> dict[str, Tensor]:
    """Argument name -> (data, sizes by mode, strides by mode in elements), as the contract describes the
    tensors."""
    n, d = problem.next_n * problem.heads, problem.head_dim
    rows, stride = problem.rows, problem.row_stride
    weights: NDArray[np.generic] = problem.weights
    if flow.epi == "fp16":
        weights = numerics.cvt_f16_f32(problem.weights.view(np.uint32))
    table, pool = problem.block_table, problem.kv_fused
    return {
        "kv_fused": (pool, pool.shape, (pool.shape[1], 1)),
        "b": (problem.q, (n, d, problem.batch), (d, 1, n * d)),
        "weights": (weights, (n, problem.batch), (1, n)),
        "logits": (np.empty(0, flow.bits_dtype), (rows, stride), (stride, 1)),
        "block_table": (table, table.shape, (table.shape[1], 1)),
        "context_lens": (problem.context_lens, (problem.batch,), (1,)),
        "schedule_meta": (problem.schedule, problem.schedule.shape, (2, 1)),
    }


def _pack(
    layout: ArgumentLayout, tensors: dict[str, Tensor], addresses: dict[str, int], scalars: dict[str, int]
) -> bytes:
    """The bytes the host function expects behind one argument pointer."""
    if layout.kind == "stream":
        return struct.pack("<Q", 0)
    if layout.kind == "int32":
        if layout.name not in scalars:
            raise Unsupported(f"the kernel takes a scalar {layout.name!r} that is not part of the contract")
        return struct.pack("<i", scalars[layout.name])
    if layout.name not in tensors:
        raise Unsupported(f"the kernel takes a tensor {layout.name!r} that is not part of the contract")
    _, sizes, strides = tensors[layout.name]
    raw = struct.pack("<Q", addresses[layout.name])
    for modes, values, bits in (
        (layout.shape_modes, sizes, layout.shape_bits),
        (layout.stride_modes, strides, layout.stride_bits),
    ):
        if modes:
            raw += bytes(-len(raw) % (bits // 8))
            raw += b"".join(struct.pack("<i" if bits == 32 else "<q", values[mode]) for mode in modes)
    return raw


def _budget(problem: Problem) -> int:
    splits = max((len(w.items) for w in walk(problem.schedule, problem.context_lens)), default=0)
    if problem.schedule_faults:
        # What was forced may never end; it is to be told in seconds, so the allowance is a few times the need.
        return FORCED_CTA_BUDGET + splits * FORCED_SPLIT_BUDGET * problem.next_n
    return CTA_BUDGET + splits * SPLIT_BUDGET * problem.next_n
