"""The opcodes that the six programs spell: the kernels of this project, sglang and FlashInfer in every combination of
the level "full", DeepGEMM's kernels in every shape that they have, and its metadata kernels.
"""

from __future__ import annotations

from collections.abc import Iterator

from mqa_ref.emulator import parse
from mqa_ref.flow import Flow
from mqa_ref.kernel import resolve
from mqa_ref.kernel.deepgemm.description import compile_shape, describe_metadata
from mqa_ref.kernel.deepgemm.package import headers
from mqa_ref.kernel.deepgemm.shape import ARCHS, HEADS, NEXT_N, OUTPUTS, Arch, Shape
from mqa_ref.kernel.nvcc import compile_kernel
from mqa_ref.verification.full import full
from mqa_ref.verification.given import given

CONTRACT = ("builtin", "sglang", "flashinfer")
DEEPGEMM = tuple(f"deepgemm@{arch}" for arch in ARCHS)
METADATA = tuple(f"metadata@{arch}" for arch in ARCHS)


def opcodes_of(ptx: str) -> set[str]:
    """Every opcode of a program."""
    return {instruction.opcode for instruction in parse(ptx).instructions}


def _contract(name: str) -> Iterator[str]:
    target = resolve(name)
    assert target.options is not None
    for problem in full("all", target.options):
        flow = problem.flow or Flow.parse("fp32-fp32-fp32")
        yield target.compile(problem.problem, flow, target.own(problem.options or {})).ptx


def _deepgemm(arch: Arch) -> Iterator[str]:
    for next_n in NEXT_N:
        for heads in HEADS:
            for out in OUTPUTS:
                yield compile_shape(Shape(arch, next_n, heads, out)).ptx


def _metadata(arch: Arch) -> Iterator[str]:
    found = headers()
    for lengths in ((300, 0, 129), (5,) * 33):
        for ctas in (32, 132):
            for next_n in NEXT_N:
                problem = given(lengths, num_sms=ctas, page=64, heads=32, next_n=next_n).problem
                text, _ = describe_metadata(problem, arch)
                yield compile_kernel(text, arch, (found.include,), found.identity).ptx


def spelled(program: str) -> set[str]:
    """The opcodes of one of the programs, compiled now. Raises what compiling raises."""
    name, _, arch = program.partition("@")
    if name in CONTRACT:
        texts = _contract(name)
    else:
        (chosen,) = (one for one in ARCHS if one == arch)
        texts = _deepgemm(chosen) if name == "deepgemm" else _metadata(chosen)
    return set().union(*map(opcodes_of, texts))
