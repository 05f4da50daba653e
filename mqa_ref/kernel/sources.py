"""Where the class of a kernel comes from that is not this project's own: a file, a module, or the one file of an
installed distribution.

Loading executes the file. Only ``mqa_ref.verification.worker`` does that, in a process of its own.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from mqa_ref.errors import Fault, InputError, NotAvailable
from mqa_ref.kernel.contract import check_contract


@dataclass(frozen=True)
class InstalledFile:
    """One file of a distribution, the kernel class in it, and the command that brings both."""

    distribution: str
    file: str
    kernel: str
    install: str

    def path(self) -> Path:
        """Where the file lies. Raises NotAvailable with the command, also for a version that does not have the file."""
        try:
            installed = distribution(self.distribution)
        except PackageNotFoundError as error:
            message = f"the package {self.distribution} is not installed; {self.install} brings it"
            raise NotAvailable(message) from error
        for file in installed.files or ():
            path = Path(str(installed.locate_file(file)))
            if file.as_posix() == self.file and path.is_file():
                return path
        told = f"{self.distribution} {installed.version} has no file {self.file}"
        raise NotAvailable(f"{told}; {self.install} brings one that has")

    def load(self) -> Callable[..., Any]:
        """The kernel class; nothing else of the distribution is imported."""
        return load_from_file(self.path(), self.kernel)


SGLANG = InstalledFile(
    "sglang",
    "sglang/kernels/ops/attention/dsa/cutedsl_fp8_paged_mqa_logits.py",
    "FP8MQALogitsKernel",
    "pip install --no-deps sglang==0.5.23",
)
FLASHINFER = InstalledFile(
    "flashinfer-python",
    "flashinfer/attn_scores/kernels/fp8_paged_mqa_logits.py",
    "FP8MQALogitsKernel",
    "pip install --no-deps flashinfer-python==0.7.2.post1",
)


def load_from_file(path: Path, name: str) -> Callable[..., Any]:
    """Execute a file as a module of a private name and take its class ``name``, which must keep the contract.

    The file's folder is put last on the import path, so that it may import its neighbours. Raises InputError for a
    file that is not there, a class that is not in it, and a class that breaks the contract; what the file raises
    comes through.
    """
    if not path.is_file():
        raise InputError([Fault("kernel", str(path), "a file that exists")])
    private = f"_mqa_ref_kernel_{path.stem}"
    spec = importlib.util.spec_from_file_location(private, path)
    if spec is None or spec.loader is None:
        raise InputError([Fault("kernel", str(path), "a Python file")])
    module = importlib.util.module_from_spec(spec)
    # The compiler finds the source of a kernel through sys.modules.
    sys.modules[private] = module
    sys.path.append(str(path.parent.resolve()))
    spec.loader.exec_module(module)
    return _take(module, name, f"{path.name}:{name}")


def load_from_module(module_name: str, name: str) -> Callable[..., Any]:
    """Import a module and take its class; the current folder is put last on the import path. Errors as for a file."""
    sys.path.append(str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise InputError([Fault("kernel", module_name, "a module that can be imported")]) from error
    return _take(module, name, f"{module_name}:{name}")


def _take(module: object, name: str, told: str) -> Callable[..., Any]:
    if not hasattr(module, name):
        raise InputError([Fault("kernel", told, f"a class; there is no {name}")])
    return check_contract(getattr(module, name), told)
