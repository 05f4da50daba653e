"""Runs every CTA of one launch and gathers what happened."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mqa_ref.emulator.contraction import exposed_pairs
from mqa_ref.emulator.decode import PARAM_BASE, Code
from mqa_ref.emulator.engines import cta_maker
from mqa_ref.emulator.findings import FindingLog
from mqa_ref.emulator.host import LaunchCall
from mqa_ref.emulator.memory import GlobalMemory
from mqa_ref.emulator.observe import Observer, observed
from mqa_ref.emulator.policy import Policy
from mqa_ref.emulator.tensormap import TensorMap, decode_tensor_map
from mqa_ref.emulator.warp import LANES, Lanes
from mqa_ref.errors import EmulatorError
from mqa_ref.findings import Finding
from mqa_ref.numerics import MachineModel
from mqa_ref.numerics.environment import check_environment

MAX_SHARED_BYTES = 232448
"""Dynamic shared memory a CTA can have on SM100 (CUDA C++ Programming Guide, "Technical Specifications")."""
MAX_THREADS = 1024
"""Threads that a CTA can have (the same table); vector clocks have room for so many warps, and no more."""
TENSOR_MAP_BYTES = 128


@dataclass(frozen=True)
class Outcome:
    """What one launch did: hazards, CTAs run, warp instructions executed, seconds of wall time."""

    findings: tuple[Finding, ...]
    ctas: int
    instructions: int
    seconds: float


class Grid:
    """What all CTAs of a launch share."""

    def __init__(
        self, code: Code, call: LaunchCall, memory: GlobalMemory, machine: MachineModel | str
    ) -> None:
        self.code, self.memory, self.machine = code, memory, machine
        self.extent, self.block = call.grid, call.block
        self.shared_bytes = code.program.shared_static_bytes + call.shared_bytes
        self.dynamic_bytes = call.shared_bytes
        self.parameters = call.parameters
        self.overlaps = call.overlaps or code.uses_grid_wait
        self.log = FindingLog(code.program)
        self.observer: Observer | None = None
        self.sanitize = True
        self._maps: dict[int, TensorMap] = {}
        self._thread_registers: dict[tuple[str, int], Lanes] = {}
        required = code.program.required_threads
        threads = call.block[0] * call.block[1] * call.block[2]
        if threads > MAX_THREADS:
            raise EmulatorError(f"launched with {threads} threads a CTA, at most {MAX_THREADS} can be")
        if required is not None and threads != required:
            raise EmulatorError(f"launched with {threads} threads a CTA, the PTX requires {required}")
        limit = code.program.max_threads
        if limit is not None and threads > limit:
            raise EmulatorError(f"launched with {threads} threads a CTA, the PTX allows {limit}")
        if len(call.parameters) < code.program.parameter_bytes:
            raise EmulatorError(
                f"launched with {len(call.parameters)} bytes of parameters, the PTX declares"
                f" {code.program.parameter_bytes}"
            )
        if self.shared_bytes > MAX_SHARED_BYTES:
            raise EmulatorError(
                f"{self.shared_bytes} bytes of shared memory asked for, {MAX_SHARED_BYTES} exist"
            )

    def special(self, name: str, index: tuple[int, int, int], warp: int) -> Lanes:
        """Value of a special register in one warp of the CTA at ``index`` (PTX ISA, "Special Registers")."""
        axis = "xyz".find(name[-1])
        if name.startswith(("%tid.", "%lanemask_")) or name in ("%laneid", "%warpid"):
            if (name, warp) not in self._thread_registers:
                self._thread_registers[name, warp] = _thread_register(name, warp, self.block)
            return self._thread_registers[name, warp]
        per_axis = {"%ctaid": index, "%nctaid": self.extent, "%ntid": self.block}
        per_axis |= {"%cluster_ctaid": (0, 0, 0), "%cluster_nctaid": (1, 1, 1)}
        single = {"%cluster_ctarank": 0, "%cluster_nctarank": 1, "carry": 0}
        single |= {"%total_smem_size": self.shared_bytes, "%dynamic_smem_size": self.dynamic_bytes}
        stem = name.rpartition(".")[0]
        if name in single:
            return np.full(LANES, single[name], np.uint32)
        if stem not in per_axis or axis < 0:
            raise EmulatorError(f"special register {name} is not modelled")
        return np.full(LANES, per_axis[stem][axis], np.uint32)

    def tensor_map(self, address: int) -> TensorMap:
        """The tensor map in the parameter space at a generic address, decoded once."""
        if address not in self._maps:
            start = address - PARAM_BASE
            if not 0 <= start <= len(self.parameters) - TENSOR_MAP_BYTES:
                raise EmulatorError(f"a tensor map at {address:#x} is no kernel parameter")
            self._maps[address] = decode_tensor_map(self.parameters[start : start + TENSOR_MAP_BYTES])
        return self._maps[address]


def _thread_register(name: str, warp: int, block: tuple[int, int, int]) -> Lanes:
    thread = np.arange(warp * LANES, (warp + 1) * LANES)
    width, height, _ = block
    values = {
        "%tid.x": thread % width,
        "%tid.y": thread // width % height,
        "%tid.z": thread // (width * height),
        "%laneid": thread % LANES,
        "%warpid": thread // LANES,
    }
    lane = thread % LANES
    values |= {"%lanemask_eq": 1 << lane, "%lanemask_lt": (1 << lane) - 1, "%lanemask_le": (2 << lane) - 1}
    everyone = (1 << LANES) - 1
    values |= {"%lanemask_ge": everyone & ~((1 << lane) - 1), "%lanemask_gt": everyone & ~((2 << lane) - 1)}
    if name not in values:
        raise EmulatorError(f"special register {name} is not modelled")
    return values[name].astype(np.uint32)


def run_grid(
    code: Code,
    call: LaunchCall,
    memory: GlobalMemory,
    *,
    machine: MachineModel | str = "sm100",
    order: str = "eager",
    seed: int = 0,
    budget: int,
    engine: str = "compiled",
    sanitize: bool = True,
    progress: Callable[[int, int], None] | None = None,
    observer: Observer | None = None,
) -> Outcome:
    """Execute a launch CTA by CTA.

    ``budget`` bounds the warp instructions of each CTA: past it the CTA is stopped with the finding "runaway".
    ``engine``: "compiled" or "interpreter", which give the same outcome; see ``mqa_ref.emulator.compiled``.
    ``sanitize``: False looks for no races and no reads of what was never written in shared and tensor memory.
    ``progress`` is called with (CTAs done, CTAs). With an ``observer`` only the CTA that it watches
    is run, by the interpreter. Raises EmulatorError for anything that is not modelled, OracleError when this thread's
    arithmetic is not what the emulator relies on.
    """
    check_environment()
    grid = Grid(code if observer is None else observed(code, observer), call, memory, machine)
    grid.observer, grid.sanitize = observer, sanitize
    memory.place_variables(code.program)
    for pair in exposed_pairs(code.program):
        kind = "contracted_mul_add" if pair.certain else "contractible_mul_add"
        message = (
            f"the assembler may contract this product and the sum at PTX line {pair.total.line} into one fma"
        )
        grid.log.add(kind, message, instruction=pair.product)
    started = time.perf_counter()
    instructions, number = 0, 0
    make = cta_maker(grid, engine)
    total = call.grid[0] * call.grid[1] * call.grid[2]
    for z in range(call.grid[2]):
        for y in range(call.grid[1]):
            for x in range(call.grid[0]):
                if observer is None or observer.cta == number:
                    cta = make((x, y, z), number, Policy(order, seed + number), budget)
                    instructions += cta.run()
                    if observer is not None:
                        observer.finished(cta)
                number += 1
                if progress is not None:
                    progress(number, total)
    return Outcome(grid.log.all(), number, instructions, time.perf_counter() - started)
