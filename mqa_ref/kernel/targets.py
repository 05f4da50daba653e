"""The kernels that can be tested, by name, and how each is compiled for a problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from mqa_ref.errors import Fault, InputError, Unsupported
from mqa_ref.flow import Flow
from mqa_ref.kernel.compile import CompiledKernel, compile_kernel, import_compiler
from mqa_ref.kernel.sources import load_from_file, load_from_module, load_sglang, sglang_path
from mqa_ref.problem import Problem

LATER = ("deepgemm",)
"""Kernels of other projects that this version knows of but cannot run."""


@dataclass(frozen=True)
class Target:
    """One kernel to test. ``load`` returns the kernel class; it may import the compiler, so it is called late.

    ``isolated``: the kernel is code that this project did not write. ``load``, ``compile`` and the launch execute it,
    so they belong into the process of ``mqa_ref.verification.worker``.
    """

    name: str
    load: Callable[[], Callable[..., Any]]
    isolated: bool = False

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
    """The target called ``name``: "builtin", "sglang", ``FILE.py:CLASS`` or ``MODULE:CLASS``. Executes nothing of it.

    Raises NotAvailable for "sglang" when it is not installed, Unsupported for a kernel that this version knows of but
    does not serve, InputError for any other name and for a file that does not exist.
    """
    if name in _TARGETS:
        return _TARGETS[name]
    if name == "sglang":
        sglang_path()
        return Target(name, load_sglang, isolated=True)
    known = ", ".join(sorted((*_TARGETS, "sglang")))
    if name in LATER:
        raise Unsupported(f"kernel {name!r} cannot be tested by this version, which serves: {known}")
    place, _, attribute = name.rpartition(":")
    if place.endswith(".py") and attribute.isidentifier():
        if not Path(place).is_file():
            raise InputError([Fault("kernel", repr(name), f"a file that exists; there is no {place}")])
        return Target(name, partial(load_from_file, Path(place), attribute), isolated=True)
    if attribute.isidentifier() and all(part.isidentifier() for part in place.split(".")):
        return Target(name, partial(load_from_module, place, attribute), isolated=True)
    raise InputError([Fault("kernel", repr(name), f"one of: {known}, FILE.py:CLASS, MODULE:CLASS")])


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
