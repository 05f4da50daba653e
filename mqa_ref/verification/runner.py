"""Where a kernel is launched: this project's own in this process, anybody else's in a worker process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from types import SimpleNamespace
from typing import Any, Protocol

from mqa_ref.cuda.launch import Settings
from mqa_ref.emulator.engines import Emulation
from mqa_ref.flow import Flow
from mqa_ref.kernel.compile import CompiledKernel
from mqa_ref.kernel.targets import Target, resolve
from mqa_ref.launch import Launch
from mqa_ref.problem import Problem
from mqa_ref.verification.launch import launch
from mqa_ref.verification.native import require_for
from mqa_ref.verification.worker import Limits, Worker


class Launcher(Protocol):
    """``mqa_ref.verification.launch.launch`` for one target. Raises the errors of that function and, for a kernel in
    a worker process, KernelError and what derives from it."""

    def __call__(
        self,
        problem: Problem,
        flow: Flow,
        *,
        machine: str = "sm100",
        edit_ptx: Callable[[str], str] | None = None,
        order: str = "eager",
        seed: int = 0,
        options: Mapping[str, Any] | None = None,
    ) -> Launch:
        """Compile for the shape of ``problem``, launch, and return what happened."""
        ...


@contextmanager
def launcher(
    target: Target,
    limits: Limits | None = None,
    native: Settings | None = None,
    emulation: Emulation | None = None,
) -> Iterator[Launcher]:
    """A launcher of ``target``; its worker process, if it has one, ends with the context.

    ``native``: on a GPU, always in a process of its own. Raises NotAvailable when this machine has not the GPU that it
    needs.
    ``emulation``: how the emulator runs it otherwise.
    """
    if native is not None:
        require_for(target)
        with Worker(target.name, limits, native) as worker:
            yield worker.launch
        return

    if target.isolated:
        with Worker(target.name, limits, emulation=emulation) as worker:
            yield worker.launch
        return

    yield partial(launch, target, **asdict(emulation or Emulation()))


def compile_target(
    kernel: str,
    shape: Mapping[str, int],
    flow: Flow,
    limits: Limits | None = None,
    options: Mapping[str, Any] | None = None,
) -> CompiledKernel:
    """A kernel by name, compiled for a shape (page, heads, head_dim, next_n, num_sms) with ``options``. Errors as for a
    launch."""
    target = resolve(kernel)
    if target.isolated:
        with Worker(kernel, limits) as worker:
            return worker.compile(shape, flow, options)
    sizes: Any = SimpleNamespace(**shape)
    return target.compile(sizes, flow, options)
