"""The launch of DeepGEMM's kernel on a problem, as its host code makes it: buffers, parameters, tensor maps.

Source: csrc/jit_kernels/impls of the public repository (smxx_fp8_fp4_paged_mqa_logits.hpp, sm100_mqa_logits.hpp) at the
state of sgl-deep-gemm 0.1.5; standing: doc, and hw for sm_90a, where launches made from this data ran on an H200.
"""

from __future__ import annotations

from functools import lru_cache

from mqa_ref.flow import Flow
from mqa_ref.kernel.deepgemm.metadata import lengths_2d, metadata
from mqa_ref.kernel.deepgemm.package import headers
from mqa_ref.kernel.deepgemm.shape import HEAD_DIM, PAGE, Arch, Shape
from mqa_ref.kernel.nvcc import compile_kernel
from mqa_ref.kernel.raw_launch import Buffer, Pointer, RawKernel, RawLaunch, Scalar, TensorMap, flat, poisoned
from mqa_ref.problem import Problem


@lru_cache(maxsize=16)
def compile_shape(shape: Shape) -> RawKernel:
    """The kernel of a shape; compiled once for each set of headers, compiler and options, then read from disk.

    Raises NotAvailable without the wheel or nvcc, KernelError when it does not compile.
    """
    found = headers()
    return compile_kernel(shape.source(), shape.arch, (found.include,), found.identity)


def describe_launch(problem: Problem, flow: Flow, arch: Arch) -> RawLaunch:
    """One launch on ``problem``, which has the schedule of DeepGEMM's own metadata (``metadata``), not the problem's.

    Needs no compiler. Raises Unsupported for a shape or flow that the kernel does not serve.
    """
    shape = Shape.of(problem, flow, arch)
    page_bytes, rows, pages = PAGE * (HEAD_DIM + 4), problem.rows, problem.num_pages
    buffers = (
        Buffer("q", flat(problem.q)),
        Buffer("kv_fused", flat(problem.kv_fused)),
        Buffer("weights", flat(problem.weights)),
        Buffer("block_table", flat(problem.block_table), row_bytes=problem.block_table.shape[1] * 4),
        Buffer("context_lens", flat(lengths_2d(problem))),
        Buffer("schedule_meta", flat(metadata(problem, arch))),
        Buffer("logits", poisoned(rows * problem.row_stride * flow.bits_dtype.itemsize), writable=True),
    )
    box = shape.query_box
    queries = TensorMap(
        *("q", "uint8", (HEAD_DIM, rows * problem.heads), (HEAD_DIM,), (HEAD_DIM, box * problem.heads), 128)
    )
    keys = TensorMap(
        *("kv_fused", "uint8", (HEAD_DIM, PAGE, pages), (HEAD_DIM, page_bytes), (HEAD_DIM, PAGE, 1), 128)
    )
    scales = TensorMap(
        *("kv_fused", "float32", (PAGE, pages), (page_bytes,), (PAGE, 1)), offset=PAGE * HEAD_DIM
    )
    weights = TensorMap(
        *("weights", "float32", (problem.heads, rows), (problem.heads * 4,), (problem.heads, box))
    )
    # The SM100 kernel takes a fifth map, of query scales, which it prefetches and never loads from.
    maps = (queries, keys, scales, weights) if arch == "sm_90a" else (queries, scales, keys, scales, weights)
    return RawLaunch(
        grid=(problem.num_sms, 1, 1),
        block=(shape.threads, 1, 1),
        shared_bytes=shape.shared_bytes,
        parameters=(
            Scalar(problem.batch if arch == "sm_90a" else rows),
            Scalar(problem.row_stride),
            Scalar(problem.block_table.shape[1]),
            *(Pointer("context_lens"), Pointer("logits"), Pointer("block_table"), Pointer(None)),
            Pointer("schedule_meta"),
            *maps,
        ),
        buffers=buffers,
        output="logits",
        overlaps=False,
    )


def describe_metadata(problem: Problem, arch: Arch) -> tuple[str, RawLaunch]:
    """DeepGEMM's metadata kernel for the lengths of a problem: its CUDA C++ text, and its launch; the output buffer
    ``schedule_meta`` is int32 [num_sms + 1, 2]."""
    lens = Buffer("context_lens", flat(lengths_2d(problem)))
    out = Buffer("schedule_meta", poisoned((problem.num_sms + 1) * 8), writable=True)
    aligned = -(-problem.batch // 32) * 32
    first: tuple[Scalar, ...]
    if arch == "sm_90a":
        header = "deep_gemm/scheduler/sm90_paged_mqa_logits.cuh"
        name = f"sm90_paged_mqa_logits_metadata<{aligned}, 256, {problem.num_sms}, false>"
        threads, shared = 32, (3 * aligned + 1) * 4
        first = (Scalar(problem.batch), Scalar(problem.next_n), Scalar(1, size=1))
    else:
        header = "deep_gemm/scheduler/sm100_paged_mqa_logits.cuh"
        name = f"sm100_paged_mqa_logits_metadata<{problem.next_n}, true, false, 1, 256, {problem.num_sms}>"
        threads, shared = 256, 2 * problem.batch * 4
        first = (Scalar(problem.batch), Scalar(problem.rows))
    # cute's and CUTLASS's attributes are not all in the scheduler's own includes.
    text = f"#include <cute/arch/cluster_sm90.hpp>\n#include <{header}>\n"
    text += f"const void *mqa_ref_kernel() {{ return (const void *)&deep_gemm::sched::{name}; }}\n"
    launch = RawLaunch(
        grid=(1, 1, 1),
        block=(threads, 1, 1),
        shared_bytes=shared,
        parameters=(*first, Pointer("context_lens"), Pointer(None), Pointer("schedule_meta")),
        buffers=(lens, out),
        output="schedule_meta",
    )
    return text, launch
