"""Compiling CUDA C++ to PTX and cubin with nvcc, from PyPI or from a toolkit on the PATH; results are kept on disk."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mqa_ref import cachedir
from mqa_ref.errors import KernelError, NotAvailable
from mqa_ref.kernel.raw_launch import RawKernel

INSTALL = "pip install 'nvidia-cuda-nvcc>=13' 'nvidia-cuda-runtime>=13' 'nvidia-cuda-cccl>=13'"
SECONDS = 300
"""What one compilation may take; 9 seconds is usual."""
OLDEST_RELEASE = 13
_HEADERS = ("cuda.h", "cuda_runtime.h", "crt/host_defines.h", "cccl/cuda/std/utility")
_OPTIONS = (
    *("-std=c++20", "-O3", "-lineinfo", "--expt-relaxed-constexpr", "--expt-extended-lambda"),
    "--diag-suppress=39,161,174,177,186,550,940",
    "--ptxas-options=--register-usage-level=10",
    # Headers of one release 13 with the compiler of another: what torch's pins and a newer nvcc give.
    "-DCCCL_DISABLE_CTK_COMPATIBILITY_CHECK",
)
_ENTRY = re.compile(r"^\s*(?:\.visible\s+|\.weak\s+)*\.entry\s+([\w$]+)", re.MULTILINE)
_KIND = "nvcc"
_SHOWN = 2000


@dataclass(frozen=True)
class Toolchain:
    """An nvcc, its version line, and the folders of headers it needs beside its own."""

    nvcc: Path
    version: str
    include: tuple[Path, ...]


@cache
def toolchain() -> Toolchain:
    """The nvcc of the installed packages, or of a toolkit on the PATH.

    Raises NotAvailable that says what to install: nvcc itself, headers, or a C++ compiler for it.
    """
    if shutil.which("g++") is None and shutil.which("c++") is None:
        raise NotAvailable("nvcc needs a C++ compiler, and there is no g++ on the PATH")
    for folder in sys.path:
        for nvcc in sorted(Path(folder or ".").glob("nvidia/cu*/bin/nvcc")):
            include = nvcc.parents[1] / "include"
            missing = [header for header in _HEADERS if not (include / header).is_file()]
            if missing:
                raise NotAvailable(f"nvcc lacks the headers {', '.join(missing)}; {INSTALL} brings them")
            return Toolchain(nvcc, _version(nvcc), (include / "cccl", include))
    on_path = shutil.which("nvcc")
    if on_path is None:
        raise NotAvailable(f"compiling CUDA C++ needs nvcc 13 or newer; {INSTALL} brings it")
    return Toolchain(Path(on_path), _version(Path(on_path)), ())


def _version(nvcc: Path) -> str:
    run = subprocess.run([str(nvcc), "--version"], capture_output=True, text=True, check=False, timeout=60)
    release = re.search(r"release (\d+)\.\d+, (V[\d.]+)", run.stdout)
    if run.returncode != 0 or release is None or int(release[1]) < OLDEST_RELEASE:
        raise NotAvailable(f"{nvcc} is no nvcc {OLDEST_RELEASE} or newer; {INSTALL} brings one")
    return f"nvcc {release[2]}"


def compile_kernel(source: str, arch: str, include: Sequence[Path], identity: str) -> RawKernel:
    """PTX and cubin of the one kernel that ``source`` instantiates, for ``arch`` ("sm_90a", "sm_100a").

    ``include``: folders of the source's headers; ``identity``: a hash of what is in them. The result is kept in
    ``mqa_ref.cachedir`` under the hash of source, architecture, options, compiler and headers. Raises NotAvailable
    without a compiler and KernelError, with what the compiler said, when the source does not compile.
    """
    tools = toolchain()
    key = cachedir.key_of(source, arch, tools.version, identity, *_OPTIONS)
    kept = cachedir.load(_KIND, key)
    if kept is not None:
        return RawKernel(
            kept.blobs["ptx"].decode(), kept.blobs["cubin"], kept.meta["entry"], arch, tools.version
        )
    ptx, cubin = _run(tools, source, arch, include)
    entries = _ENTRY.findall(ptx)
    if len(entries) != 1:
        raise KernelError(f"the source was to instantiate one kernel, the PTX has {len(entries)}")
    cachedir.store(_KIND, key, cachedir.Entry({"entry": entries[0]}, {"ptx": ptx.encode(), "cubin": cubin}))
    return RawKernel(ptx, cubin, entries[0], arch, tools.version)


def _run(tools: Toolchain, source: str, arch: str, include: Sequence[Path]) -> tuple[str, bytes]:
    with tempfile.TemporaryDirectory(prefix="mqa-ref-") as name:
        folder = Path(name)
        (folder / "kernel.cu").write_text(source)
        command = [str(tools.nvcc), *_OPTIONS, f"-arch={arch}", "-cubin", "kernel.cu", "-o", "kernel.cubin"]
        command += ["--keep", "--keep-dir", name]
        command += [f"-I{path}" for path in (*include, *tools.include)]
        try:
            run = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS
            )
        except subprocess.TimeoutExpired as error:
            raise KernelError(f"nvcc was stopped after {SECONDS} seconds") from error
        if run.returncode != 0:
            raise KernelError(f"nvcc does not compile the kernel: {(run.stderr + run.stdout)[:_SHOWN]}")
        return (folder / "kernel.ptx").read_text(), (folder / "kernel.cubin").read_bytes()
