"""Kernels from disk: the same kernel as compiled, for just the same request, and never one of the user's."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mqa_ref import cachedir
from mqa_ref.flow import Flow
from mqa_ref.kernel import cache, targets
from mqa_ref.kernel.compile import ArgumentLayout, CompiledKernel

FLOW = Flow.parse("fp32-fp16-bf16")
ARGUMENTS = {"page": 64, "num_sms": 4, "enable_pdl": True, "w_cache_regs": None}
MADE = CompiledKernel(
    ptx="// ptx ä\n.version 8.8\n",
    cubin=b"\x7fELF\x00\n",
    host_object=b"\x7fELF\x01\xff",
    prefix="mqa",
    function_name="run",
    arguments=(
        ArgumentLayout("kv", "tensor", (0, 1), (1,), 32, 64),
        ArgumentLayout("batch", "int32"),
        ArgumentLayout("stream", "stream"),
    ),
    flow=FLOW,
    options=ARGUMENTS,
)


class Compiler:
    """Counts how often it is called."""

    def __init__(self, made: CompiledKernel = MADE) -> None:
        self.calls, self.made = 0, made

    def __call__(self) -> CompiledKernel:
        self.calls += 1
        return self.made


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(cachedir.VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_same_kernel_comes_back() -> None:
    compiler = Compiler()
    first, second = (cache.cached("source", ARGUMENTS, FLOW, compiler) for _ in range(2))
    assert compiler.calls == 1
    assert second is not first
    assert second == MADE
    assert [type(value) for value in second.options.values()] == [int, int, bool, type(None)]


@pytest.mark.parametrize(
    ("source", "arguments", "flow"),
    [
        ("other", ARGUMENTS, FLOW),
        ("source", ARGUMENTS | {"num_sms": 5}, FLOW),
        ("source", ARGUMENTS | {"enable_pdl": 1}, FLOW),
        ("source", {name: ARGUMENTS[name] for name in ("page", "num_sms")}, FLOW),
        ("source", ARGUMENTS, Flow.parse("fp16-fp16-bf16")),
    ],
)
def test_another_request_is_compiled(source: str, arguments: dict[str, Any], flow: Flow) -> None:
    compiler = Compiler()
    cache.cached("source", ARGUMENTS, FLOW, compiler)
    cache.cached(source, arguments, flow, compiler)
    assert compiler.calls == 2


@pytest.mark.parametrize("changed", ["_COMPILER", "_VARIABLES", "ARCH"])
def test_other_surroundings_compile_anew(changed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = Compiler()
    monkeypatch.setenv("XYZ_LEVEL", "3")
    cache._surroundings.cache_clear()
    cache.cached("source", ARGUMENTS, FLOW, compiler)
    monkeypatch.setattr(
        cache, changed, {"_COMPILER": "numpy", "_VARIABLES": "XYZ_", "ARCH": "sm_103a"}[changed]
    )
    cache._surroundings.cache_clear()
    cache.cached("source", ARGUMENTS, FLOW, compiler)
    cache._surroundings.cache_clear()
    assert compiler.calls == 2


def test_what_is_not_kept(place: Path) -> None:
    compiler = Compiler()
    for _ in range(2):
        cache.cached(None, ARGUMENTS, FLOW, compiler)
        cache.cached("source", ARGUMENTS | {"shape": (1, 2)}, FLOW, compiler)
    assert compiler.calls == 4
    odd = Compiler(dataclasses.replace(MADE, options={"shape": (1, 2)}))
    for _ in range(2):
        cache.cached("source", ARGUMENTS, FLOW, odd)
    assert odd.calls == 2
    assert not place.exists() or not list(place.glob("*/*"))


def test_a_damaged_kernel_is_compiled_anew(place: Path) -> None:
    compiler = Compiler()
    cache.cached("source", ARGUMENTS, FLOW, compiler)
    (path,) = place.glob("kernels/*")
    data = bytearray(path.read_bytes())
    data[data.index(MADE.host_object) + 5] ^= 1
    path.write_bytes(data)
    assert cache.cached("source", ARGUMENTS, FLOW, compiler) == MADE
    assert compiler.calls == 2


def test_a_compiler_that_fails_leaves_nothing(place: Path) -> None:
    def fail() -> CompiledKernel:
        raise RuntimeError("no")

    for _ in range(2):
        with pytest.raises(RuntimeError):
            cache.cached("source", ARGUMENTS, FLOW, fail)
    assert not list(place.glob("*/*"))


def test_which_kernels_have_a_source() -> None:
    builtin = targets.resolve("builtin")
    assert targets._source_of(builtin) == cache.own_source()
    assert targets._source_of(dataclasses.replace(builtin, load=targets._builtin, name="other")) is None
    assert targets._source_of(targets.resolve("os:path")) is None
    files = {
        name: (file.path(), targets._source_of(target)) for name, (file, target) in targets._INSTALLED.items()
    }
    assert len({source for _, source in files.values()} | {cache.own_source()}) == 1 + len(files)


def test_the_source_of_a_file_is_its_text_and_version(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text("a")
    first = cache.file_source(path, "1")
    assert first == cache.file_source(path, "1") != cache.file_source(path, "2")
    path.write_text("b")
    assert cache.file_source(path, "1") != first


_COMPILE = """
import sys
from mqa_ref.flow import Flow
from mqa_ref.kernel.targets import resolve
from mqa_ref.verification.problems import quick
compiled = resolve("builtin").compile(quick()[0].problem, Flow.parse("fp32-fp32-fp32"))
sys.stdout.write(repr(compiled) + str("cutlass" in sys.modules))
"""


def test_another_process_gets_it_without_the_compiler() -> None:
    pytest.importorskip("cutlass")
    first, second = (
        subprocess.run([sys.executable, "-c", _COMPILE], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert (first[-4:], second[-5:]) == ("True", "False")
    assert first[:-4] == second[:-5]
