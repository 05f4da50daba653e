"""The fused program as machine code of this computer: built once a process for each shape, kept on disk."""

from __future__ import annotations

import ctypes
import platform
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from mqa_ref import cachedir
from mqa_ref.reference.fused.block import Shape
from mqa_ref.reference.fused.program import ARGUMENTS, NAME, program

_C_TYPES = {"ptr": ctypes.c_void_p, "i64": ctypes.c_int64, "i32": ctypes.c_int32, "i1": ctypes.c_bool}
_NEEDED = {"x86_64": ("avx2", "fma", "f16c")}
"""By architecture, what a processor must have: without it LLVM would call a library for fma and fp16. Others could do
as well, but nobody has run it there."""
_LOCK = threading.Lock()
_KIND = "fused"


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
    import llvmlite
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    triple, cpu = llvm.get_process_triple(), llvm.get_host_cpu_name()
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=3, reloc="pic", codemodel="small"
    )
    text = program(shape)
    key = cachedir.key_of(text, llvmlite.__version__, repr(llvm.llvm_version_info), triple, cpu, features)
    known = cachedir.load(_KIND, key)
    code = known.blobs["object"] if known else _compile(llvm, target, text)
    if known is None:
        cachedir.store(_KIND, key, cachedir.Entry({"shape": str(shape), "cpu": cpu}, {"object": code}))
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    kind = ctypes.CFUNCTYPE(None, *(_C_TYPES[kind] for kind, _ in ARGUMENTS))
    return kind(engine.get_function_address(NAME)), engine


def _compile(llvm: Any, target: Any, text: str) -> bytes:
    module = llvm.parse_assembly(text)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = False
    builder = llvm.create_pass_builder(target, options)
    builder.getModulePassManager().run(module, builder)
    return bytes(target.emit_object(module))
