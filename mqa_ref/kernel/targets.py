"""The kernels that can be tested, by name, and how each is compiled for a problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mqa_ref.errors import Fault, InputError, Unsupported
from mqa_ref.flow import Flow
from mqa_ref.kernel.compile import CompiledKernel, compile_kernel, import_compiler
from mqa_ref.problem import Problem

LATER = ("sglang", "deepgemm")
"""Kernels of other projects that this version knows of but cannot run."""


@dataclass(frozen=True)
class Target:
    """One kernel to test. ``load`` returns the kernel class; it may import the compiler, so it is called late."""

    name: str
    load: Callable[[], Callable[..., Any]]

    def compile(
        self, problem: Problem, flow: Flow, options: Mapping[str, Any] | None = None
    ) -> CompiledKernel:
        """The kernel for the static shape of ``problem``; compiled once a process for each shape, flow and options.

        ``options``: further constructor arguments of the kernel class. ``num_sms`` is part of the shape, since the
        grid is a constant of the host code. Raises what ``compile_kernel`` raises.
        """
        key = tuple(sorted((options or {}).items()))
        return _compiled(
            self, problem.page, problem.heads, problem.head_dim, problem.next_n, problem.num_sms, flow, key
        )


def resolve(name: str) -> Target:
    """The target called ``name``.

    Raises Unsupported for a name that is well formed but not served by this version (another project's kernel, a
    user's class as ``FILE.py:CLASS`` or ``MODULE:CLASS``), InputError for any other.
    """
    if name in _TARGETS:
        return _TARGETS[name]
    known = ", ".join(sorted(_TARGETS))
    if name in LATER or ":" in name.strip(":"):
        raise Unsupported(f"kernel {name!r} cannot be tested by this version, which serves: {known}")
    raise InputError([Fault("kernel", repr(name), f"one of: {known}")])


@lru_cache(maxsize=64)
def _compiled(
    target: Target,
    page: int,
    num_heads: int,
    head_dim: int,
    next_n: int,
    num_sms: int,
    flow: Flow,
    options: tuple[tuple[str, Any], ...],
) -> CompiledKernel:
    import_compiler()
    return compile_kernel(
        target.load(),
        page=page,
        num_heads=num_heads,
        head_dim=head_dim,
        next_n=next_n,
        num_sms=num_sms,
        flow=flow,
        **dict(options),
    )


def _builtin() -> Callable[..., Any]:
    from mqa_ref.kernel.sm100 import PagedMqaLogitsSm100

    return PagedMqaLogitsSm100


_TARGETS: Mapping[str, Target] = {"builtin": Target("builtin", _builtin)}
