"""Compiled kernels kept on disk (``mqa_ref.cachedir``): the compiler is not even imported for one that is known.

Only kernels whose whole source is known are kept: the project's own, and those in one file of an installed package. A
file or module of the user's may import anything, and is compiled anew in every process. What is kept has a host
object, native code that a launch executes: see ``cachedir`` for who can write there. The key is everything the result
depends on: the text of the sources, the constructor's arguments, the flow, the architecture, the versions of the
compiler and of Python, the variables that steer the compiler, and this computer's processor.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from mqa_ref import cachedir
from mqa_ref.flow import Flow
from mqa_ref.kernel.compile import ARCH, ArgumentLayout, CompiledKernel

KIND = "kernels"

_COMPILER = "nvidia-cutlass-dsl"
_VARIABLES = "CUTE_DSL_"
_BLOBS = ("ptx", "cubin", "host_object")


@cache
def own_source() -> str:
    """What stands for the source of the builtin kernel: the hash of every module of this package that compiles it."""
    return _hash_of(sorted(Path(__file__).parent.glob("*.py")))


def file_source(path: Path, version: str) -> str:
    """What stands for the source of a kernel of one file of a distribution of that version."""
    return cachedir.key_of(version, path.read_bytes(), own_source())


def cached(
    source: str | None, arguments: Mapping[str, Any], flow: Flow, compile_it: Callable[[], CompiledKernel]
) -> CompiledKernel:
    """The kernel that ``compile_it`` makes, from disk where it is there.

    ``source``: of ``own_source`` or ``file_source``, None for a kernel that is not kept. ``arguments``: of the
    constructor. What ``compile_it`` raises comes through, and nothing is kept then.
    """
    if source is None or not all(_is_plain(value) for value in arguments.values()):
        return compile_it()
    key = cachedir.key_of(
        source, json.dumps(dict(arguments), sort_keys=True), str(flow), ARCH, *_surroundings()
    )
    entry = cachedir.load(KIND, key)
    if entry is not None:
        return _unpack(entry)
    compiled = compile_it()
    if all(_is_plain(value) for value in compiled.options.values()):
        cachedir.store(KIND, key, _pack(compiled))
    return compiled


def _is_plain(value: Any) -> bool:
    """Whether JSON gives back the same value of the same type."""
    return value is None or type(value) in (bool, int, str)


def _pack(compiled: CompiledKernel) -> cachedir.Entry:
    meta = {
        "prefix": compiled.prefix,
        "function_name": compiled.function_name,
        "arguments": [asdict(argument) for argument in compiled.arguments],
        "flow": str(compiled.flow),
        "options": dict(compiled.options),
    }
    blobs = (compiled.ptx.encode(), compiled.cubin, compiled.host_object)
    return cachedir.Entry(meta, dict(zip(_BLOBS, blobs, strict=True)))


def _unpack(entry: cachedir.Entry) -> CompiledKernel:
    meta = entry.meta
    ptx, cubin, host_object = (entry.blobs[name] for name in _BLOBS)
    return CompiledKernel(
        ptx=ptx.decode(),
        cubin=cubin,
        host_object=host_object,
        prefix=meta["prefix"],
        function_name=meta["function_name"],
        arguments=tuple(_layout(**one) for one in meta["arguments"]),
        flow=Flow.parse(meta["flow"]),
        options=meta["options"],
    )


def _layout(shape_modes: list[int], stride_modes: list[int], **rest: Any) -> ArgumentLayout:
    return ArgumentLayout(shape_modes=tuple(shape_modes), stride_modes=tuple(stride_modes), **rest)


@cache
def _surroundings() -> tuple[str, ...]:
    versions = sorted(
        f"{name} {one.version}"
        for one in distributions()
        if (name := str(one.metadata["Name"]).lower().replace("_", "-")).startswith(_COMPILER)
    )
    variables = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith(_VARIABLES))
    return (sys.version, *versions, "", *variables, "", platform.machine(), _processor())


def _processor() -> str:
    """The first lines that name model and abilities; the compiler may write host code for just this processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    wanted = ("model name", "flags", "Features", "CPU part")
    return "\n".join(next((line for line in lines if line.startswith(name)), "") for name in wanted)


def _hash_of(paths: list[Path]) -> str:
    return cachedir.key_of(*(part for path in paths for part in (path.name, path.read_bytes())))
