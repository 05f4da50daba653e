"""The fused program as machine code of this computer: built once a process for each shape, kept on disk."""

from __future__ import annotations

import ctypes
import platform
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from mqa_ref import objectcode
from mqa_ref.reference.fused.block import Shape
from mqa_ref.reference.fused.program import ARGUMENTS, NAME, program

_C_TYPES = {"ptr": ctypes.c_void_p, "i64": ctypes.c_int64, "i32": ctypes.c_int32, "i1": ctypes.c_bool}
_NEEDED = {"x86_64": ("avx2", "fma", "f16c")}
"""By architecture, what a processor must have: without it LLVM would call a library for fma and fp16. Others could do
as well, but nobody has run it there."""
_LOCK = threading.Lock()


@cache
def supported() -> bool:
    """Whether this processor has the instructions and llvmlite is installed; else the NumPy reference does the work."""
    needed = _NEEDED.get(platform.machine())
    if needed is None:
        return False
    try:
        import llvmlite.binding as llvm
    except ImportError:
        return False
    features = llvm.get_host_cpu_features()
    return all(features.get(name, False) for name in needed)


def function(shape: Shape) -> Callable[..., None]:
    """The function for a shape; its arguments are ARGUMENTS. Other threads run while it runs."""
    with _LOCK:
        return _build(shape)[0]


@cache
def _build(shape: Shape) -> tuple[Callable[..., None], Any]:
    """The function, and the engine that owns its code."""
    engine = objectcode.link("fused", program(shape), objectcode.Way("scalar code", 3, _passes))
    kind = ctypes.CFUNCTYPE(None, *(_C_TYPES[kind] for kind, _ in ARGUMENTS))
    return kind(engine.get_function_address(NAME)), engine


def _passes(llvm: Any, module: Any, target: Any) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = False
    builder = llvm.create_pass_builder(target, options)
    builder.getModulePassManager().run(module, builder)
