"""Machine code for vector kernels, made by LLVM when a program first needs them and kept on disk (``objectcode``).

A kernel knows no program: programs are tables that name kernels (``table``), so nothing is compiled for a new program
whose instructions have been met before.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from functools import cache
from typing import Any

from mqa_ref import objectcode
from mqa_ref.emulator.compiled.vectors import Kernel

_REQUIRED = ("fma", "f16c", "avx2")
_lock = threading.Lock()
_engines: list[Any] = []
_addresses: dict[str, int] = {}


@cache
def available() -> bool:
    """Has this CPU the fused multiply-add and the fp16 conversions that the kernels rest on?"""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    return all(features.get(name, False) for name in _REQUIRED)


def _passes(llvm: Any, module: Any, target: Any) -> None:
    """Values are taken off the stack, no other pass is run: the code is vectors already, and passes take longer than
    they save."""
    builder = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options())
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)


def link(text: str) -> Any:
    """The execution engine of an LLVM module; it lives as long as the process, for its code may be in use."""
    engine = objectcode.link("engine", text, objectcode.Way("scalars", 1, _passes))
    _engines.append(engine)
    return engine


@cache
def kernels() -> dict[str, Kernel]:
    """Every vector kernel by name."""
    from mqa_ref.emulator.compiled import integers, moves, real

    return {**integers.kernels(), **real.kernels(), **moves.kernels()}


def addresses(names: Iterable[str]) -> dict[str, int]:
    """Where the machine code of kernels and services lies; those that are missing are compiled together."""
    with _lock:
        missing = sorted(set(names) - _addresses.keys())
        if missing:
            _compile(missing)
        return {name: _addresses[name] for name in names}


def _compile(names: list[str]) -> None:
    from llvmlite import ir

    from mqa_ref.emulator.compiled import services
    from mqa_ref.emulator.compiled.vectors import POINTER, WORD

    module = ir.Module("kernels")
    kind = ir.FunctionType(ir.VoidType(), [POINTER] * 5 + [WORD])
    for name in names:
        if name in kernels():
            _define(ir.Function(module, kind, _symbol(name)), kernels()[name])
        else:
            services.define(ir.Function(module, services.kind(), _symbol(name)), name)
    engine = link(str(module))
    for name in names:
        _addresses[name] = engine.get_function_address(_symbol(name))


def _define(function: Any, kernel: Kernel) -> None:
    """void kernel(d, e, a, b, c, active): two destinations, three sources, and the lanes that are written."""
    from llvmlite import ir

    from mqa_ref.emulator.compiled import vectors as v

    b = ir.IRBuilder(function.append_basic_block())
    if kernel.exchanges:
        _body(b, kernel, list(function.args[:5]), v.LANES, None)
    else:
        with v.each(b, v.LANES // v.GROUP) as group:
            bits = b.trunc(b.lshr(function.args[5], b.mul(group, v.WORD(v.GROUP))), ir.IntType(v.GROUP))
            active = b.bitcast(bits, ir.VectorType(ir.IntType(1), v.GROUP))
            widths = [*kernel.results, 0, 0][:2] + [*kernel.sources, 0, 0, 0][:3]
            pointers = [
                b.gep(
                    pointer,
                    [b.mul(group, v.WORD(v.GROUP * max(width, 8) // 8 if width else 0))],
                    source_etype=v.BYTE,
                )
                for pointer, width in zip(function.args, widths, strict=False)
            ]
            _body(b, kernel, pointers, v.GROUP, active)
    b.ret_void()


def _body(b: Any, kernel: Kernel, pointers: list[Any], count: int, active: Any) -> None:
    from mqa_ref.emulator.compiled.vectors import load_lanes, store_lanes

    sources = [
        load_lanes(b, pointer, bits, count)
        for pointer, bits in zip(pointers[2:], kernel.sources, strict=False)
    ]
    results = kernel.emit(b, pointers[2]) if kernel.broadcasts else kernel.emit(b, *sources)
    results = results if isinstance(results, tuple) else (results,)
    for pointer, value, bits in zip(pointers, results, kernel.results, strict=False):
        store_lanes(b, pointer, value, bits, active)


def _symbol(name: str) -> str:
    return "kernel." + name
