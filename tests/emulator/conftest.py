"""A bench for small PTX programs: one CTA, an input buffer, an output buffer, and what the machine found."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mqa_ref.emulator import GlobalMemory, LaunchCall, decode, parse, run_grid
from mqa_ref.findings import Finding

PROLOGUE = """
.version 8.8
.target {target}
.address_size 64
.extern .shared .align 1024 .b8 dyn[];
.visible .entry kernel(.param .u64 in_ptr, .param .u64 out_ptr)
.reqntid {threads}
{{
.reg .pred %p<16>;
.reg .b16 %h<16>;
.reg .b32 %r<64>;
.reg .b64 %d<64>;
ld.param.b64 %d60, [in_ptr];
ld.param.b64 %d61, [out_ptr];
mov.u32 %r60, %tid.x;
mul.wide.u32 %d62, %r60, 8;
add.s64 %d62, %d61, %d62;
mov.b32 %r61, dyn;
shr.u32 %r62, %r60, 5;
"""


@dataclass(frozen=True)
class Ran:
    """``out``: the output buffer as bytes; ``findings`` by kind."""

    out: NDArray[np.uint8]
    findings: tuple[Finding, ...]

    @property
    def kinds(self) -> set[str]:
        return {finding.kind for finding in self.findings}

    def words(self, kind: Any = np.uint32) -> NDArray[Any]:
        """The first element of ``kind`` in each thread's 8-byte slot."""
        return self.out.view(np.uint8).reshape(-1, 8)[:, : np.dtype(kind).itemsize].copy().view(kind)[:, 0]


Bench = Callable[..., Ran]


@pytest.fixture
def bench() -> Bench:
    """bench(body, data=bytes, warps=1, ...): %d60 input, %d61 output, %d62 this thread's 8 bytes of output,
    %r60 thread, %r61 dynamic shared memory, %r62 warp.
    """

    def run(
        body: str,
        data: NDArray[Any] | None = None,
        *,
        warps: int = 1,
        ctas: int = 1,
        shared: int = 4096,
        order: str = "eager",
        seed: int = 0,
        budget: int = 20_000,
        out_bytes: int | None = None,
        overlaps: bool = False,
        target: str = "sm_100a",
        engine: str = "compiled",
    ) -> Ran:
        threads = warps * 32
        code = decode(parse(PROLOGUE.format(threads=threads, target=target) + body + "\nret;\n}\n"))
        memory = GlobalMemory()
        given = np.zeros(8, np.uint8) if data is None else np.frombuffer(data.tobytes(), np.uint8).copy()
        source = memory.add("in", given, writable=False)
        out = np.zeros(threads * 8 if out_bytes is None else out_bytes, np.uint8)
        results = memory.add("out", out, writable=True)
        parameters = struct.pack("<QQ", source.address, results.address)
        call = LaunchCall((1, 1, ctas), (threads, 1, 1), shared, parameters, overlaps)
        outcome = run_grid(code, call, memory, order=order, seed=seed, budget=budget, engine=engine)
        assert outcome.ctas == ctas
        return Ran(out, outcome.findings)

    return run
