"""Machine code of this computer from LLVM text: compiled once, kept on disk (``cachedir``), linked in each process.

An object is known by the text it was made from, the name of the way, the LLVM and the processor: another version of
the project has other texts, so nothing stale can be found, if a way whose passes change gets another name. Entries are
written whole or not at all, which several processes may do at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from mqa_ref import cachedir

Optimise = Callable[[Any, Any, Any], None]
"""What the passes do to a module: llvmlite's binding module, the module, the target machine."""


class Way(NamedTuple):
    """How text is compiled: the name of the way, which is part of the key, LLVM's level, and its passes."""

    name: str
    level: int
    optimise: Optimise


def _target(level: int) -> Any:
    """A target machine; it belongs to the engine that is made with it."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    return llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=level, reloc="pic", codemodel="small"
    )


@cache
def _maker() -> tuple[str, ...]:
    """Who compiles, and for which processor."""
    import llvmlite
    import llvmlite.binding as llvm

    version, features = repr(llvm.llvm_version_info), llvm.get_host_cpu_features().flatten()
    return llvmlite.__version__, version, llvm.get_process_triple(), llvm.get_host_cpu_name(), features


def link(kind: str, text: str, way: Way) -> Any:
    """The engine that owns the machine code of an LLVM module, which is used as long as the engine lives.

    ``kind``: the folder of the cache that the object is kept in.
    """
    import llvmlite.binding as llvm

    target = _target(way.level)
    key = cachedir.key_of(text, way.name, str(way.level), *_maker())
    known = cachedir.load(kind, key)
    code = known.blobs["object"] if known else _compile(text, way, target)
    if known is None:
        cachedir.store(kind, key, cachedir.Entry({"way": way.name}, {"object": code}))
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


def _compile(text: str, way: Way, target: Any) -> bytes:
    import llvmlite.binding as llvm

    module = llvm.parse_assembly(text)
    module.verify()
    way.optimise(llvm, module, target)
    return bytes(target.emit_object(module))
