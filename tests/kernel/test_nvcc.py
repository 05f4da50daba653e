"""nvcc: what is missing is named, what does not compile says why, what was compiled is kept."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mqa_ref.errors import KernelError, NotAvailable
from mqa_ref.kernel import nvcc

pytest.importorskip("nvidia.cu13", reason="nvidia-cuda-nvcc is not installed")
ONE = "template <int N> __global__ void k(float *p) { p[threadIdx.x] = N; }\n"
KEPT = f"{ONE}const void *kept() {{ return (const void *)&k<7>; }}\n"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Any:
    nvcc.toolchain.cache_clear()
    monkeypatch.setenv("MQA_REF_CACHE", "off")
    yield
    nvcc.toolchain.cache_clear()


def fake(folder: Path, text: str) -> Path:
    tool = folder / "nvidia" / "cu13" / "bin" / "nvcc"
    tool.parent.mkdir(parents=True)
    tool.write_text(f"#!/bin/sh\n{text}\n")
    tool.chmod(0o755)
    return tool


def test_a_kernel_is_compiled_once_and_then_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQA_REF_CACHE", str(tmp_path / "cache"))
    made = nvcc.compile_kernel(KEPT, "sm_90a", (), "headers 1")
    assert ".target sm_90a" in made.ptx
    assert f".entry {made.entry}(" in made.ptx
    assert ".loc" in made.ptx
    assert made.cubin.startswith(b"\x7fELF")
    assert made.compiler.startswith("nvcc V13.")

    def refuse(*arguments: Any) -> Any:
        raise AssertionError("compiled again")

    monkeypatch.setattr(nvcc, "_run", refuse)
    assert nvcc.compile_kernel(KEPT, "sm_90a", (), "headers 1") == made
    for source, arch, identity in (
        (KEPT + "\n", "sm_90a", "headers 1"),
        (KEPT, "sm_100a", "headers 1"),
        (KEPT, "sm_90a", "headers 2"),
    ):
        with pytest.raises(AssertionError, match="compiled again"):
            nvcc.compile_kernel(source, arch, (), identity)


def test_what_does_not_compile_says_why() -> None:
    with pytest.raises(KernelError, match="no_such_thing"):
        nvcc.compile_kernel(KEPT.replace("k<7>", "no_such_thing"), "sm_90a", (), "")


def test_a_source_must_instantiate_one_kernel() -> None:
    with pytest.raises(KernelError, match="has 0"):
        nvcc.compile_kernel("int nothing;\n", "sm_90a", (), "")
    with pytest.raises(KernelError, match="has 2"):
        nvcc.compile_kernel(KEPT + "const void *more() { return (const void *)&k<8>; }\n", "sm_90a", (), "")


def test_no_host_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NotAvailable, match=r"g\+\+"):
        nvcc.toolchain()


def test_no_nvcc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "nvcc" else "/usr/bin/g++")
    with pytest.raises(NotAvailable, match="pip install 'nvidia-cuda-nvcc>=13'"):
        nvcc.toolchain()


def test_an_nvcc_without_headers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake(tmp_path, "echo release 13.0, V13.0.88")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(NotAvailable, match=r"lacks the headers cuda\.h"):
        nvcc.toolchain()


@pytest.mark.parametrize("text", ["echo release 12.9, V12.9.1", "echo unknown", "exit 1"])
def test_an_nvcc_that_is_too_old(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str) -> None:
    tool = fake(tmp_path, text)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(shutil, "which", lambda name: str(tool))
    with pytest.raises(NotAvailable, match="no nvcc 13 or newer"):
        nvcc.toolchain()


def test_an_nvcc_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    nvcc.toolchain()

    def late(*arguments: Any, **more: Any) -> Any:
        raise subprocess.TimeoutExpired("nvcc", 300)

    monkeypatch.setattr(subprocess, "run", late)
    with pytest.raises(KernelError, match="stopped after 300 seconds"):
        nvcc.compile_kernel(KEPT, "sm_90a", (), "")
