"""The kernels that can be tested, by name, and how each is compiled for a problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from importlib.metadata import version as package_version
from pathlib import Path
from typing import Any

from mqa_ref.errors import Fault, InputError, Unsupported
from mqa_ref.flow import Flow
from mqa_ref.kernel.cache import cached, file_source, own_source
from mqa_ref.kernel.compile import CompiledKernel, compile_kernel, import_compiler
from mqa_ref.kernel.deepgemm.package import DISTRIBUTION
from mqa_ref.kernel.raw_source import RawSource
from mqa_ref.kernel.serves import ANYTHING, Serves
from mqa_ref.kernel.sources import FLASHINFER, SGLANG, InstalledFile, load_from_file, load_from_module
from mqa_ref.problem import Problem

DEEPGEMM = "deepgemm"

Options = tuple[tuple[str, tuple[Any, ...]], ...]
"""Names and values of constructor arguments; a tuple, so that it can be a key."""

_SHARED: Options = (
    ("remove_kv_wait_in_epilogue", (False, True)),
    ("early_tmem_copy", (False, True)),
    ("smem_subpartition_opt", (False, True)),
    ("max_kv_pipeline", (False, True)),
    ("max_umma_pipeline", (False, True)),
)
CONTRACT_OPTIONS: Options = (
    *(("max_w_in_reg", (0, 4, 16, 32)), ("num_epi_subtiles", (1, 2, 4))),
    *(*_SHARED, ("enable_pdl", (False, True))),
)
"""Of the builtin kernel and of the one of sglang."""
FLASHINFER_OPTIONS: Options = (
    *(("w_cache_regs", (None, 4, 24, 160)), ("num_epi_subtiles", (1, 2, 4))),
    *_SHARED,
    ("use_flat_logits_view", (None, False, True)),
    ("use_two_level_task_loop", (None, False, True)),
    ("use_paired_pipeline_polls", (None, False, True)),
    ("arch", ("sm_100a", "sm_103a", "sm_107a")),
)


@dataclass(frozen=True)
class Declared:
    """What is known of a kernel's arithmetic, so that the reference can predict its bits. Names of the reference.

    ``generation``: its ReLU ("folded", "max" or "max_nan"). ``order``: the order in which the heads are added, None
    when it is not known: such a kernel is held to the bound for any order. ``machine``: its tensor core. ``tail``: what
    it stores behind the valid columns of a row, a rule of ``mqa_ref.reference.tail``, None when nothing is said.
    """

    generation: str = "folded"
    order: str | None = "four_chains"
    tail: str | None = None
    machine: str = "sm100"


@dataclass(frozen=True)
class Target:
    """One kernel to test. ``load`` returns the kernel class; it may import the compiler, so it is called late.

    ``isolated``: the kernel is code that this project did not write. ``load``, ``compile`` and the launch execute it,
    so they belong into the process of ``mqa_ref.verification.worker``. ``declared``: what is known of its arithmetic;
    of a kernel from a file or a module it is that of the contract, and the caller may say otherwise. ``options``: its
    further constructor arguments, each with the values that the level "full" crosses; None where they are not known
    before it is loaded. ``distribution``: the package that it comes from, whose version belongs to a report. ``raw``:
    of a kernel without host code, how it is compiled and launched; it has nothing to load, and nothing of it is
    executed outside the emulator or a GPU. ``serves``: the launches that it takes, as far as that is known.
    """

    name: str
    load: Callable[[], Callable[..., Any]]
    isolated: bool = False
    declared: Declared = Declared()
    options: Options | None = None
    distribution: str | None = None
    raw: RawSource | None = None
    serves: Serves = ANYTHING

    def scheduled(self, problem: Problem) -> Problem:
        """The problem with the schedule that the kernel is given. Raises Unsupported for a schedule that was forced
        upon a problem whose kernel computes its own."""
        if self.raw is None:
            return problem
        if problem.schedule_faults:
            raise Unsupported(f"{self.name} computes its schedule from the lengths, and takes no other")
        return problem.forced(self.raw.schedule(problem))

    def own(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Those of the options that this kernel has; all of them where that is not known."""
        names = None if self.options is None else {name for name, _ in self.options}
        return {name: value for name, value in options.items() if names is None or name in names}

    def compile(
        self, problem: Problem, flow: Flow, options: Mapping[str, Any] | None = None
    ) -> CompiledKernel:
        """The kernel for the static shape of ``problem``; compiled once a process for each shape, flow and options.

        ``options``: further constructor arguments of the kernel class. ``num_sms`` is part of the shape, since the
        grid is a constant of the host code. Raises what ``compile_kernel`` raises, and Unsupported for a kernel without
        host code.
        """
        if self.raw is not None:
            raise Unsupported(f"{self.name} has no host code; what nvcc makes of it is compiled by a launch")
        key = tuple(sorted((options or {}).items()))
        return _compiled(
            self, problem.page, problem.heads, problem.head_dim, problem.next_n, problem.num_sms, flow, key
        )


def resolve(name: str) -> Target:
    """The target called ``name``: "builtin", "sglang", "flashinfer", "deepgemm" (for SM90, or with the architecture, as
    in "deepgemm@sm_100a"), ``FILE.py:CLASS`` or ``MODULE:CLASS``. Executes nothing of it.

    Raises NotAvailable for a package that is not installed, InputError for any other name, an architecture that a
    kernel has not, and a file that does not exist.
    """
    if name in _TARGETS:
        return _TARGETS[name]
    if name in _INSTALLED:
        file, target = _INSTALLED[name]
        file.path()
        return target
    kernel, _, arch = name.partition("@")
    if kernel == DEEPGEMM and (arch or "@" not in name):
        return _deepgemm(name, arch)
    known = ", ".join(sorted((*_TARGETS, *_INSTALLED, DEEPGEMM)))
    place, _, attribute = name.rpartition(":")
    if place.endswith(".py") and attribute.isidentifier():
        if not Path(place).is_file():
            raise InputError([Fault("kernel", repr(name), f"a file that exists; there is no {place}")])
        return Target(name, partial(load_from_file, Path(place), attribute), isolated=True)
    if attribute.isidentifier() and all(part.isidentifier() for part in place.split(".")):
        return Target(name, partial(load_from_module, place, attribute), isolated=True)
    raise InputError([Fault("kernel", repr(name), f"one of: {known}, FILE.py:CLASS, MODULE:CLASS")])


def is_named(name: str) -> bool:
    """Is this one of the kernels that have a name here, so that the name cannot lead to code of somebody's choice?"""
    return name in _TARGETS or name in _INSTALLED or name.partition("@")[0] == DEEPGEMM


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
    def compile_it() -> CompiledKernel:
        import_compiler()
        return compile_kernel(target.load(), flow=flow, **shape, **dict(options))

    shape = {
        "page": page,
        "num_heads": num_heads,
        "head_dim": head_dim,
        "next_n": next_n,
        "num_sms": num_sms,
    }
    return cached(_source_of(target), shape | dict(options), flow, compile_it)


def _source_of(target: Target) -> str | None:
    """What the disk knows the kernel by, None for one whose whole source is not known."""
    if target is _TARGETS.get(target.name):
        return own_source()
    file, known = _INSTALLED.get(target.name, (None, None))
    # The process that executes it has put what it loaded from that file in place of ``load``.
    if file is None or known is None or replace(target, load=known.load) != known:
        return None
    return file_source(file.path(), package_version(file.distribution))


def _builtin() -> Callable[..., Any]:
    from mqa_ref.kernel.sm100 import PagedMqaLogitsSm100

    return PagedMqaLogitsSm100


def _deepgemm(name: str, arch: str) -> Target:
    from mqa_ref.kernel.deepgemm import target

    chosen = next((one for one in target.ARCHS if one == (arch or target.ARCHS[0])), None)
    if chosen is None:
        raise InputError([Fault("arch", repr(arch), "one of " + ", ".join(target.ARCHS))])
    target.check_installed()
    declared = Declared(
        target.GENERATIONS[chosen], target.ORDERS[chosen], tail="page_0", machine=target.MACHINES[chosen]
    )
    return Target(
        *(name, _nothing),
        declared=declared,
        options=(),
        distribution=DISTRIBUTION,
        raw=target.source(chosen),
        serves=target.SERVES,
    )


def _nothing() -> Callable[..., Any]:
    raise AssertionError("a kernel without host code has nothing to load")


def with_arch(kernel: str, arch: str | None) -> str:
    """The name of a kernel for an architecture. Raises InputError for a kernel that is made for one only."""
    if arch is None:
        return kernel
    if kernel != DEEPGEMM:
        raise InputError([Fault("arch", repr(arch), f"only with the kernel {DEEPGEMM}")])
    return f"{kernel}@{arch}"


def _installed(name: str, file: InstalledFile, declared: Declared, options: Options) -> Target:
    return Target(name, file.load, True, declared, options, file.distribution)


_TARGETS: Mapping[str, Target] = {
    "builtin": Target("builtin", _builtin, declared=Declared(tail="zeros"), options=CONTRACT_OPTIONS)
}
_INSTALLED: Mapping[str, tuple[InstalledFile, Target]] = {
    "sglang": (SGLANG, _installed("sglang", SGLANG, Declared(tail="entries"), CONTRACT_OPTIONS)),
    "flashinfer": (
        FLASHINFER,
        _installed("flashinfer", FLASHINFER, Declared("max_nan", tail="page_0"), FLASHINFER_OPTIONS),
    ),
}
