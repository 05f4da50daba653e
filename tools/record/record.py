"""Run operations, tensor-core steps and small programs on the GPU of this machine and write what came back.

    PYTHONPATH=. python tools/record/record.py OUTPUT.npz WGMMA.cubin

The result is one .npz of plain arrays and a JSON description; ``python -m mqa_ref.golden.silicon.pack`` turns it into
the recordings of the package. Needs cuda-python and a GPU of compute capability 9.0.
"""

from __future__ import annotations

import ctypes
import datetime as dt
import json
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np
from gpu import Gpu

from mqa_ref.golden.silicon.operands import OPERATIONS, Operation, operand_sets
from mqa_ref.golden.silicon.products import half_accumulators, products
from mqa_ref.golden.silicon.programs import PROGRAMS, output_bytes
from mqa_ref.golden.silicon.values import THREADS as VALUE_THREADS
from mqa_ref.golden.silicon.values import given, split
from mqa_ref.golden.silicon.values import programs as value_programs
from mqa_ref.verification.words import words

THREADS = 256


def operation_ptx(operation: Operation) -> str:
    """A kernel that applies one instruction to arrays of operands."""
    width, result = operation.source_bits, operation.result_bits
    lines = [".version 8.6", ".target sm_90a", ".address_size 64"]
    names = [f"p{i}" for i in range(operation.arity)] + ["out"]
    lines.append(
        f".visible .entry kernel({', '.join(f'.param .u64 {n}' for n in names)}, .param .u32 count)\n{{"
    )
    lines.append(".reg .pred %p;\n.reg .b16 %h<8>;\n.reg .b32 %r<16>;\n.reg .b64 %d<16>;")
    lines.append(
        "mov.u32 %r8, %ctaid.x;\nmov.u32 %r9, %ntid.x;\nmov.u32 %r10, %tid.x;\nmad.lo.s32 %r8, %r8, %r9, %r10;"
    )
    lines.append("ld.param.u32 %r11, [count];\nsetp.ge.u32 %p, %r8, %r11;\n@%p ret;")
    registers = []
    for place in range(operation.arity):
        register = f"%{'r' if width == 32 else 'h'}{place}"
        registers.append(register)
        lines.append(
            f"ld.param.u64 %d1, [p{place}];\nmul.wide.u32 %d2, %r8, {width // 8};\nadd.s64 %d1, %d1, %d2;"
        )
        lines.append(f"ld.global.b{width} {register}, [%d1];")
    target = "%r7" if result == 32 else "%h7"
    lines.append(f"{operation.ptx} {target}, {', '.join(registers)};")
    lines.append(f"ld.param.u64 %d1, [out];\nmul.wide.u32 %d2, %r8, {result // 8};\nadd.s64 %d1, %d1, %d2;")
    lines.append(f"st.global.b{result} [%d1], {target};\nret;\n}}\n")
    return "\n".join(lines)


def record_operations(gpu: Gpu, out: dict[str, Any]) -> None:
    for name, operation in OPERATIONS.items():
        operands = operand_sets(name)
        count = len(operands[0])
        kind = np.uint32 if operation.result_bits == 32 else np.uint16
        target = gpu.upload(np.zeros(count, kind))
        arguments = [ctypes.c_uint64(gpu.upload(o)) for o in operands] + [
            ctypes.c_uint64(target),
            ctypes.c_uint32(count),
        ]
        function = gpu.function(operation_ptx(operation).encode() + b"\0", "kernel")
        gpu.launch(function, -(-count // THREADS), THREADS, 0, arguments)
        out[f"operation.{name}"] = gpu.download(target, count, kind)
        print(f"{name}: {count} sets", flush=True)


def record_products(gpu: Gpu, cubin: bytes, out: dict[str, Any]) -> None:
    given = products()
    for acc, start in (("fp32", given.c), ("fp16", half_accumulators(given.c))):
        target = gpu.upload(np.zeros_like(start))
        arguments = [ctypes.c_uint64(gpu.upload(x)) for x in (given.a, given.b, start)] + [
            ctypes.c_uint64(target)
        ]
        function = gpu.function(cubin, "products_f32" if acc == "fp32" else "products_f16")
        gpu.launch(function, len(given.names), 128, 0, arguments)
        out[f"products.{acc}"] = gpu.download(target, start.size, start.dtype).reshape(start.shape)
        print(f"products {acc}: {start.size} values", flush=True)


def record_programs(gpu: Gpu, out: dict[str, Any]) -> None:
    for program in PROGRAMS:
        source = gpu.upload(words(f"silicon/program/{program.name}", program.words))
        size = output_bytes(program)
        target = gpu.upload(np.zeros(size, np.uint8))
        raw = program.parameter if program.tile is None else gpu.tensor_map(program.tile, source)
        arguments: list[Any] = [ctypes.c_uint64(source), ctypes.c_uint64(target)]
        aligned = ctypes.create_string_buffer(raw, 128)
        arguments.append(aligned)
        function = gpu.function(program.ptx.encode() + b"\0", "kernel")
        gpu.launch(function, 1, program.threads, program.shared, arguments)
        out[f"program.{program.name}"] = gpu.download(target, size, np.uint8)
        out[f"map.{program.name}"] = np.frombuffer(raw, np.uint8).copy()
        out[f"address.{program.name}"] = np.array([source], np.uint64)
        print(f"program {program.name}: {size} bytes", flush=True)


def record_values(gpu: Gpu, out: dict[str, Any]) -> None:
    source = gpu.upload(given())
    for program in value_programs():
        count = VALUE_THREADS * len(program.instructions)
        target = gpu.upload(np.zeros(count, np.uint64))
        function = gpu.function(program.ptx.encode() + b"\0", "kernel")
        arguments = [ctypes.c_uint64(source), ctypes.c_uint64(target)]
        gpu.launch(function, 1, VALUE_THREADS, 0, arguments)
        for key, found in split(program, gpu.download(target, count, np.uint64)).items():
            out[f"value.{key}"] = found
        print(f"values: {program.keys[0]} and {len(program.keys) - 1} more", flush=True)


def main(target: str, cubin: str) -> None:
    gpu = Gpu()
    out: dict[str, Any] = {}
    facts = gpu.describe()
    facts |= {"date": dt.datetime.now(dt.UTC).date().isoformat(), "numpy": np.__version__}
    facts |= {"python": platform.python_version(), "program": "tools/record/record.py"}
    smi = Path("driver.txt")
    if smi.exists():
        facts["driver"] = smi.read_text().strip()
    record_operations(gpu, out)
    record_products(gpu, Path(cubin).read_bytes(), out)
    record_programs(gpu, out)
    record_values(gpu, out)
    out["facts"] = np.frombuffer(json.dumps(facts, sort_keys=True).encode(), np.uint8)
    np.savez_compressed(target, **out)
    print(json.dumps(facts))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
