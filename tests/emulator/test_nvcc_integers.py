"""Integer code that nvcc compiled, in every C type, executed by the emulator: the judge is a C++ compiler, which makes
code for this machine from the same text.
"""

from __future__ import annotations

import ctypes
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqa_ref import emulator
from mqa_ref.errors import NotAvailable
from mqa_ref.kernel.nvcc import compile_kernel, toolchain

KINDS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64)
THREADS = 128
FUNCTIONS = """
#include <cstdint>
typedef unsigned long long u64;
typedef unsigned __int128 u128;
template <class T> MARK u64 mix(T a, T b, T c) {
    T r = a + b * c;
    r ^= a << (b & 7);
    r |= b >> (c & 7);
    if (c) { r += a / c; r ^= a % c; }
    r = r < a ? r : b;
    r = ~(r - c);
    if (a > b && !(c == a)) r++;
    return (u64)(long long)r;
}
template <class T> MARK u64 wide(T a, T b, T c) {
    u128 x = (u128)(u64)a * (u64)b + ((u128)(u64)c << 40) - b;
    return (u64)(x >> 64) ^ (u64)x;
}
template <class T> MARK void both(u64 *out, const void *in, int place) {
    const T *own = (const T *)in + 3 * place;
    out[2 * place] = mix<T>(own[0], own[1], own[2]);
    out[2 * place + 1] = wide<T>(own[0], own[1], own[2]);
}
MARK void one(int kind, u64 *out, const void *in, int place) {
    if (kind == 0) both<int8_t>(out, in, place);
    if (kind == 1) both<uint8_t>(out, in, place);
    if (kind == 2) both<int16_t>(out, in, place);
    if (kind == 3) both<uint16_t>(out, in, place);
    if (kind == 4) both<int32_t>(out, in, place);
    if (kind == 5) both<uint32_t>(out, in, place);
    if (kind == 6) both<int64_t>(out, in, place);
    if (kind == 7) both<uint64_t>(out, in, place);
}
"""
KERNEL = """
__global__ void numbers(u64 *out, const void *in, int kind) { one(kind, out, in, threadIdx.x); }
const void *mqa_ref_kernel() { return (const void *)&numbers; }
"""
HOST = """
extern "C" void numbers(u64 *out, const void *in, int kind, int count) {
    for (int place = 0; place < count; place++) one(kind, out, in, place);
}
"""


def absent() -> str:
    try:
        toolchain()
    except NotAvailable as error:
        return str(error)
    return "" if shutil.which("g++") else "no g++"


pytestmark = pytest.mark.skipif(bool(absent()), reason=absent())


def operands(kind: Any) -> Any:
    """[threads, 3]: the ends of the type and small numbers among random ones; no quotient overflows."""
    draw, info = np.random.default_rng(5), np.iinfo(kind)
    values = draw.integers(info.min, info.max, (THREADS, 3), kind, endpoint=True)
    special = np.array([0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1], kind)
    values = np.where(
        draw.random((THREADS, 3)) < 0.5, special[draw.integers(0, len(special), (THREADS, 3))], values
    )
    values[(values[:, 2] == kind(-1) if info.min < 0 else values[:, 2] < 0), 2] = 3
    return np.ascontiguousarray(values.astype(kind))


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("host")
    source, library = folder / "numbers.cpp", folder / "numbers.so"
    source.write_text("#define MARK static\n" + FUNCTIONS + HOST)
    subprocess.run(["g++", "-O1", "-fwrapv", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    return ctypes.CDLL(str(Path(library)))


@pytest.fixture(scope="module")
def code() -> emulator.Code:
    kernel = compile_kernel("#define MARK __device__\n" + FUNCTIONS + KERNEL, "sm_90a", (), "numbers")
    return emulator.decode(emulator.parse(kernel.ptx))


@pytest.mark.parametrize("number", range(len(KINDS)), ids=lambda number: KINDS[number].__name__)
def test_every_type(host: Any, code: emulator.Code, number: int) -> None:
    given = operands(KINDS[number])
    expected = np.zeros((THREADS, 2), np.uint64)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (expected, given)]
    host.numbers(*pointers, number, THREADS)
    memory = emulator.GlobalMemory()
    source = memory.add("in", given.view(np.uint8).reshape(-1).copy(), writable=False)
    out = np.zeros(THREADS * 16, np.uint8)
    target = memory.add("out", out, writable=True)
    parameters = struct.pack("<QQi", target.address, source.address, number)
    call = emulator.LaunchCall((1, 1, 1), (THREADS, 1, 1), 0, parameters)
    outcome = emulator.run_grid(code, call, memory, budget=100_000)
    assert outcome.findings == ()
    assert np.array_equal(out.view(np.uint64).reshape(THREADS, 2), expected)
    assert len(np.unique(expected)) > THREADS // 2
