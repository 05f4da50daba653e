"""The sizes of DeepGEMM's paged MQA logits kernels: which shapes they serve, template arguments, memory, threads.

Source: the headers of sgl-deep-gemm 0.1.5 (impls/sm90_fp8_paged_mqa_logits.cuh, impls/sm100_mqa_logits.cuh,
layout/mqa_logits.cuh) and the host code of the public repository at that state; standing: doc. The text that is
compiled asserts the sizes that have a type there, so that a wrong one does not compile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from mqa_ref.errors import Unsupported
from mqa_ref.flow import Flow
from mqa_ref.problem import Problem

Arch = Literal["sm_90a", "sm_100a"]
ARCHS: tuple[Arch, ...] = ("sm_90a", "sm_100a")

PAGE, HEAD_DIM, SPLIT_KV = 64, 128, 256
HEADS = (32, 64)
NEXT_N = (1, 2)
"""With more query tokens the SM90 kernel does not compile, and the SM100 kernel walks blocks of queries in chunks whose
size only its host code knows."""
SPECIAL_THREADS = 128
Q_STAGES = 3
_MATH_THREADS: dict[Arch, int] = {"sm_90a": 512, "sm_100a": 256}
_KV_STAGES: dict[Arch, int] = {"sm_90a": 3, "sm_100a": 5}
_SM100_TMEM_STAGES = 3
_SPLITS_PER_CHUNK = 4
_SWIZZLE_ALIGNMENT = 1024
_TYPES = {"fp32": "float", "bf16": "cutlass::bfloat16_t"}
OUTPUTS = tuple(_TYPES)


def _align(value: int, to: int) -> int:
    return -(-value // to) * to


@dataclass(frozen=True)
class Shape:
    """One instantiation of the template. ``out``: "fp32" or "bf16"."""

    arch: Arch
    next_n: int
    heads: int
    out: str

    @classmethod
    def of(cls, problem: Problem | Any, flow: Flow, arch: Arch) -> Shape:
        """The instantiation that serves a problem. Raises Unsupported, which names everything that is not served."""
        refused = [
            f"{name} = {value} (served: {', '.join(map(str, served))})"
            for name, value, served in (
                ("page", problem.page, (PAGE,)),
                ("heads", problem.heads, HEADS),
                ("head_dim", problem.head_dim, (HEAD_DIM,)),
                ("next_n", problem.next_n, NEXT_N),
                ("accumulator", flow.acc, ("fp32",)),
                ("epilogue", flow.epi, ("fp32",)),
                ("output", flow.out, OUTPUTS),
            )
            if value not in served
        ]
        if refused:
            raise Unsupported("DeepGEMM's kernel has no " + "; ".join(refused))
        return cls(arch, problem.next_n, problem.heads, flow.out)

    @property
    def threads(self) -> int:
        """Threads of a CTA."""
        return SPECIAL_THREADS + _MATH_THREADS[self.arch]

    @property
    def query_box(self) -> int:
        """Query tokens that one tensor map load brings: those of a row, or of a whole M = 128 block of heads."""
        return self.next_n if self.arch == "sm_90a" else 128 // self.heads

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a CTA."""
        stages = _KV_STAGES[self.arch]
        if self.arch == "sm_90a":
            rows = self.next_n * self.heads
            queries = Q_STAGES * (rows * HEAD_DIM + _align(rows * 4, _SWIZZLE_ALIGNMENT)) + _SWIZZLE_ALIGNMENT
            keys = stages * (PAGE * HEAD_DIM + _align(PAGE * 4, _SWIZZLE_ALIGNMENT)) + _SWIZZLE_ALIGNMENT
            groups = SPLIT_KV // PAGE
            # The host adds room for barriers and a TMEM pointer that this kernel does not have.
            return queries + groups * keys + groups * 2 * 8 + 4
        operands = Q_STAGES * 128 * HEAD_DIM + stages * SPLIT_KV * HEAD_DIM
        end = _align(operands + Q_STAGES * 4, 512) + stages * SPLIT_KV * 4 + Q_STAGES * 128 * 4
        end += 8 * 2 * (Q_STAGES + stages + _SM100_TMEM_STAGES) + 4
        return _align(end, 512)

    def source(self) -> str:
        """CUDA C++ that instantiates the kernel, and nothing else."""
        out, stages, math = _TYPES[self.out], _KV_STAGES[self.arch], _MATH_THREADS[self.arch]
        sizes = (
            f"{self.next_n}, {self.heads}, {HEAD_DIM}, {PAGE}, true, false, {Q_STAGES}, {stages}, {SPLIT_KV}"
        )
        if self.arch == "sm_90a":
            header = "deep_gemm/impls/sm90_fp8_paged_mqa_logits.cuh"
            name = f"deep_gemm::sm90_fp8_paged_mqa_logits<{sizes}, {SPECIAL_THREADS}, {math}, {out}>"
            checks = ""
        else:
            header = "deep_gemm/impls/sm100_mqa_logits.cuh"
            name = (
                f"deep_gemm::sm100_paged_mqa_logits<false, {sizes}, {_SPLITS_PER_CHUNK}, {SPECIAL_THREADS}, "
                f"{math}, {out}, float>"
            )
            storage = (
                f"deep_gemm::layout::MQALogitsSharedStorage<false, {self.heads}, {HEAD_DIM}, {self.query_box}, "
                f"{SPLIT_KV}, {Q_STAGES}, {stages}, {_SM100_TMEM_STAGES}>"
            )
            checks = f'static_assert(sizeof({storage}) == {self.shared_bytes}, "shared memory");\n'
        return (
            f"#include <{header}>\n{checks}const void *mqa_ref_kernel() {{ return (const void *)&{name}; }}\n"
        )
