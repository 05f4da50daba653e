"""Kernels from files, modules and an installed distribution, and the contract that they must keep."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

import mqa_ref
from mqa_ref.errors import InputError, NotAvailable
from mqa_ref.kernel import sources
from mqa_ref.kernel.contract import CALL, CONSTRUCTOR, check_contract
from mqa_ref.kernel.sources import FLASHINFER, SGLANG, InstalledFile, load_from_file, load_from_module

KEEPS = f"""
class Kernel:
    def __init__(self, {", ".join(CONSTRUCTOR)}, extra=1):
        pass

    def __call__(self, {", ".join(CALL)}):
        pass
"""


@pytest.fixture(autouse=True)
def restored_imports(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_class_from_a_file_with_a_neighbour(tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_mine.py").write_text("NUMBER = 5\n")
    (tmp_path / "kernel.py").write_text(
        KEEPS + "import neighbour_of_mine\nKernel.n = neighbour_of_mine.NUMBER\n"
    )
    kernel = load_from_file(tmp_path / "kernel.py", "Kernel")
    assert (kernel.__name__, kernel.n) == ("Kernel", 5)  # type: ignore[attr-defined]
    assert "kernel" not in sys.modules


def test_a_class_from_a_module_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "package_of_mine").mkdir()
    (tmp_path / "package_of_mine" / "inner.py").write_text(KEEPS)
    monkeypatch.chdir(tmp_path)
    assert load_from_module("package_of_mine.inner", "Kernel").__name__ == "Kernel"


@pytest.mark.parametrize("name", ["no_such_module", "json.no_such_module"])
def test_a_module_that_is_not_there(name: str) -> None:
    with pytest.raises(InputError, match="a module that can be imported"):
        load_from_module(name, "Kernel")


def test_a_module_that_lacks_another_is_not_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "needs_more.py").write_text("import no_such_module\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        load_from_module("needs_more", "Kernel")


@pytest.mark.parametrize("text", ["", "Kernel = 3", "def Kernel(): pass"])
def test_no_such_class(tmp_path: Path, text: str) -> None:
    (tmp_path / "kernel.py").write_text(text)
    with pytest.raises(InputError, match="a class"):
        load_from_file(tmp_path / "kernel.py", "Kernel")


BROKEN = {
    "constructor lacks two": (
        "num_heads, head_dim, ",
        "",
        ["Kernel.__init__"],
        "no argument num_heads, head_dim",
    ),
    "constructor wants more": ("extra=1", "extra", ["Kernel.__init__"], "required arguments extra"),
    "call lacks one": ("batch_size, ", "", ["Kernel.__call__"], "no argument batch_size"),
    "call has another": ("stream)", "stream, scale)", ["Kernel.__call__"], "arguments scale"),
    "call in another order": ("kv_fused, b,", "b, kv_fused,", ["Kernel.__call__"], "arguments b, kv_fused"),
    "call by name only": ("self, kv_fused", "self, *, kv_fused", ["Kernel.__call__"], "arguments kv_fused"),
    "no call": ("__call__", "launch", ["Kernel.__call__"], "no such method"),
    "all at once": ("num_sms, ", "more, ", ["Kernel.__init__", "Kernel.__init__"], "no argument num_sms"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_contract_is_told_argument_by_argument(tmp_path: Path, name: str) -> None:
    old, new, where, told = BROKEN[name]
    assert old in KEEPS
    (tmp_path / "kernel.py").write_text(KEEPS.replace(old, new))
    with pytest.raises(InputError) as caught:
        load_from_file(tmp_path / "kernel.py", "Kernel")
    assert [fault.argument for fault in caught.value.faults] == where
    assert caught.value.faults[0].value.startswith(told)


def test_a_constructor_that_takes_anything_keeps_the_contract() -> None:
    class Kernel:
        def __init__(self, **options: object) -> None:
            raise AssertionError(f"called with {options}")

    found: dict[str, Any] = {}
    exec(f"def call(self, {', '.join(CALL)}): pass", found)
    kernel = type("Kernel", (Kernel,), {"__call__": found["call"]})
    assert check_contract(kernel, "Kernel") is kernel


ALONE = """
import sys
from mqa_ref.kernel import sources
assert sources.{file}.load().__name__ == "FP8MQALogitsKernel"
assert [name for name in sys.modules if name.split(".")[0] in ("sglang", "flashinfer", "torch")] == []
"""


@pytest.mark.parametrize("file", ["SGLANG", "FLASHINFER"])
def test_an_installed_kernel_keeps_the_contract_and_nothing_else_is_imported(file: str) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(mqa_ref.__file__).parents[1])}
    subprocess.run([sys.executable, "-B", "-c", ALONE.format(file=file)], check=True, env=environment)


BOTH = pytest.mark.parametrize("file", [SGLANG, FLASHINFER], ids=lambda file: file.distribution)


@BOTH
def test_without_the_package_the_answer_is_the_command(
    file: InstalledFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str) -> None:
        assert name == file.distribution
        raise PackageNotFoundError(name)

    monkeypatch.setattr(sources, "distribution", absent)
    with pytest.raises(NotAvailable, match=rf"pip install --no-deps {file.distribution}==\d"):
        file.path()


@BOTH
def test_another_version_without_the_file(file: InstalledFile, monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        version = "0.4.0"
        files = ()

    monkeypatch.setattr(sources, "distribution", lambda name: Other())
    with pytest.raises(NotAvailable, match=rf"{file.distribution} 0\.4\.0 has no file"):
        file.path()


def test_the_architecture_is_given_to_a_constructor_that_asks_for_it(tmp_path: Path) -> None:
    """FlashInfer's contract: ``arch`` is required, and by name alone."""
    text = KEEPS.replace("extra=1", "extra=1, *, arch")
    (tmp_path / "kernel.py").write_text(text)
    assert load_from_file(tmp_path / "kernel.py", "Kernel").__name__ == "Kernel"
    (tmp_path / "kernel.py").write_text(text.replace("arch", "arch, device"))
    with pytest.raises(InputError, match="required arguments device"):
        load_from_file(tmp_path / "kernel.py", "Kernel")
