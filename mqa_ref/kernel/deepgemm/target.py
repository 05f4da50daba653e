"""DeepGEMM's two kernels, as sources of a target."""

from __future__ import annotations

from functools import partial

from mqa_ref.flow import Flow
from mqa_ref.kernel.deepgemm.description import compile_shape, describe_launch
from mqa_ref.kernel.deepgemm.metadata import schedule_rows
from mqa_ref.kernel.deepgemm.package import headers
from mqa_ref.kernel.deepgemm.shape import ARCHS, HEADS, NEXT_N, OUTPUTS, PAGE, Arch, Shape
from mqa_ref.kernel.nvcc import toolchain
from mqa_ref.kernel.raw_launch import RawKernel
from mqa_ref.kernel.raw_source import RawSource
from mqa_ref.kernel.serves import Serves
from mqa_ref.problem import Problem

GENERATIONS: dict[Arch, str] = {"sm_90a": "max", "sm_100a": "folded"}
"""The ReLU of each kernel."""
ORDERS: dict[Arch, str] = {"sm_90a": "deepgemm_sm90", "sm_100a": "deepgemm_sm100"}
"""The order in which each adds."""
MACHINES: dict[Arch, str] = {"sm_90a": "sm90", "sm_100a": "sm100"}
"""The tensor core of each."""
SERVES = Serves(
    page=(PAGE,),
    heads=HEADS,
    next_n=NEXT_N,
    flows=tuple(f"fp32-fp32-{out}" for out in OUTPUTS),
    own_schedule=True,
)
"""The launches that both take."""

__all__ = ["ARCHS", "GENERATIONS", "MACHINES", "ORDERS", "SERVES", "Arch", "check_installed", "source"]


def check_installed() -> None:
    """Raises NotAvailable that names what to install: the wheel, nvcc, or a C++ compiler."""
    headers()
    toolchain()


def source(arch: Arch) -> RawSource:
    """The kernel of one architecture."""
    return RawSource(
        arch,
        partial(_compile, arch),
        lambda problem, flow: describe_launch(problem, flow, arch),
        lambda problem: schedule_rows(problem, arch),
    )


def _compile(arch: Arch, problem: Problem, flow: Flow) -> RawKernel:
    return compile_shape(Shape.of(problem, flow, arch))
