"""What can run on this machine: each target on each backend, and what the extras bring. No kernel is executed.

Whether something is there is asked of the same code that a command asks before it starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec

from mqa_ref.errors import NotAvailable
from mqa_ref.report.environment import package_version

SM90, SM100 = (9, 0), (10, 0)
_CORE = "pip install --force-reinstall mqa-ref"
_COMPILER = (("cutlass", "nvidia-cutlass-dsl", _CORE),)
_EMULATOR = (("numpy", "numpy", _CORE), ("llvmlite", "llvmlite", _CORE))
_SGLANG = "pip install --no-deps sglang==0.5.23"
_FLASHINFER = "pip install --no-deps flashinfer-python==0.7.2.post1"
_DEEPGEMM = "pip install 'mqa-ref[deepgemm]'"
_FILE = "FILE.py:CLASS, MODULE:CLASS"

Modules = tuple[tuple[str, str, str], ...]
"""Module, distribution, command that brings it."""


@dataclass(frozen=True)
class Ability:
    """Something that could run here. ``kind``: "target" or "extra". ``backend``: of a target, else "". ``reason``: why
    it cannot run, None when it can; ``install``: the command that helps, None where none does. ``version``: of the
    package that it comes from, None where it has none or is absent."""

    kind: str
    name: str
    backend: str = ""
    reason: str | None = None
    install: str | None = None
    version: str | None = None


Verdict = tuple[str | None, str | None]
"""Reason and command; (None, None) for yes."""


def abilities() -> tuple[Ability, ...]:
    """All of them, targets first."""
    return (*_targets(), *_extras())


def there(module: str) -> bool:
    """Whether a module could be imported. Imports only what it lies in, and nothing where that is missing."""
    try:
        return find_spec(module) is not None
    except (ModuleNotFoundError, ValueError):
        return False


def _modules(needed: Modules) -> Verdict:
    absent = [one for one in needed if not there(one[0])]
    if not absent:
        return None, None
    return f"not installed: {', '.join(name for _, name, _ in absent)}", absent[0][2]


def _asked(question: Callable[[], object], install: str | None) -> Verdict:
    try:
        question()
    except NotAvailable as error:
        return str(error), install
    return None, None


def _gpu(capability: tuple[int, int]) -> Verdict:
    from mqa_ref.cuda.probe import require

    extra = None if there("cuda.bindings") else "pip install 'mqa-ref[gpu]'"
    return _asked(lambda: require((capability,)), extra)


def _first(*answers: Verdict) -> Verdict:
    return next((one for one in answers if one[0] is not None), (None, None))


def _targets() -> Iterator[Ability]:
    from mqa_ref.kernel.targets import resolve

    compiler, emulator = _modules(_COMPILER), _modules(_EMULATOR)
    rows: tuple[tuple[str, str, tuple[int, int], Verdict, bool], ...] = (
        ("builtin", "mqa-ref", SM100, (None, None), True),
        ("sglang", "sglang", SM100, _asked(lambda: resolve("sglang"), _SGLANG), True),
        ("flashinfer", "flashinfer-python", SM100, _asked(lambda: resolve("flashinfer"), _FLASHINFER), True),
        *(
            (
                f"deepgemm@{arch}",
                "sgl-deep-gemm",
                capability,
                _asked(lambda: resolve("deepgemm"), _DEEPGEMM),
                False,
            )
            for arch, capability in (("sm_90a", SM90), ("sm_100a", SM100))
        ),
        (_FILE, "", SM100, (None, None), True),
    )
    for name, distribution, capability, own, compiled in rows:
        needs = (compiler, own) if compiled else (own,)
        version = package_version(distribution) if distribution else None
        for backend, more in (("emulator", emulator), ("cuda", _gpu(capability))):
            yield Ability("target", name, backend, *_first(*needs, more), version=version)


def _extras() -> Iterator[Ability]:
    from mqa_ref.kernel.cubin import tool

    def extra(name: str) -> str:
        return f"pip install 'mqa-ref[{name}]'"

    def modules(what: str, module: str, distribution: str, brings: str) -> Ability:
        verdict = _modules(((module, distribution, brings),))
        return Ability("extra", what, "", *verdict, version=package_version(distribution))

    yield modules("fuzz: mqa-ref fuzz", "hypothesis", "hypothesis", extra("fuzz"))
    yield modules("cluster: mqa-ref fuzz --cluster", "distributed", "distributed", extra("cluster"))
    yield modules("report: verify --report", "jinja2", "jinja2", extra("report"))
    yield modules("gpu: --on cuda, mqa-ref calibrate", "cuda.bindings", "cuda-python", extra("gpu"))
    yield modules("gpu: torch tensors, mqa-ref bench", "torch", "torch", extra("gpu"))
    yield modules("dev: mqa-ref bench against MMA-Sim", "mmasim", "mmasim", extra("dev"))
    for name, what in (("nvdisasm", "machine code counts"), ("ptxas", "compile --check-sass, second part")):
        verdict = _asked(lambda name=name: tool(name), extra("sass"))  # type: ignore[misc]
        distribution = {"nvdisasm": "nvidia-cuda-nvdisasm", "ptxas": "nvidia-cuda-nvcc"}[name]
        yield Ability("extra", f"sass: {what}", "", *verdict, version=package_version(distribution))
    yield modules("pytest plugin", "pytest", "pytest", "pip install pytest")
