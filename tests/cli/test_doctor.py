"""What the doctor says when packages, tools or the driver are hidden; each is hidden alone."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import pytest

from mqa_ref.cli.abilities import Ability, abilities
from mqa_ref.cli.app import run
from mqa_ref.report.schema import faults_of_json

Patch = pytest.MonkeyPatch
SM100 = ("builtin", "sglang", "flashinfer", "FILE.py:CLASS, MODULE:CLASS")
DEEPGEMM = ("deepgemm@sm_90a", "deepgemm@sm_100a")


def hide(monkeypatch: Patch, *modules: str) -> None:
    for name in modules:
        monkeypatch.setitem(sys.modules, name, None)


def without(name: str) -> Callable[[str], Any]:
    def found(asked: str) -> Any:
        if asked == name:
            raise PackageNotFoundError(asked)
        return distribution(asked)

    return found


def named() -> dict[tuple[str, str], Ability]:
    return {(one.name, one.backend): one for one in abilities()}


@pytest.fixture(autouse=True)
def no_driver(monkeypatch: Patch) -> None:
    monkeypatch.setattr("mqa_ref.cuda.probe.DRIVER", "libnosuchdriver.so")


def test_every_target_on_every_backend() -> None:
    found = named()
    for name in (*SM100, *DEEPGEMM):
        cuda = found[name, "cuda"].reason
        assert cuda is not None
        assert "the NVIDIA driver library libnosuchdriver.so is not here" in cuda
        assert (name, "emulator") in found
    assert found["builtin", "emulator"] == Ability(
        "target", "builtin", "emulator", version=found["builtin", "emulator"].version
    )


def test_without_the_compiler_no_kernel_in_cute_dsl_runs(monkeypatch: Patch) -> None:
    before = named()
    hide(monkeypatch, "cutlass")
    found = named()
    for name in SM100:
        one = found[name, "emulator"]
        assert one.reason == "not installed: nvidia-cutlass-dsl"
        assert one.install is not None
    for name in DEEPGEMM:  # CUDA C++ needs none
        assert found[name, "emulator"] == before[name, "emulator"]


def test_without_llvmlite_nothing_is_emulated(monkeypatch: Patch) -> None:
    hide(monkeypatch, "llvmlite")
    reason = named()["builtin", "emulator"].reason
    assert reason == "not installed: llvmlite"


@pytest.mark.parametrize(
    ("package", "where", "names", "install"),
    [
        ("sglang", "mqa_ref.kernel.sources", ("sglang",), "pip install --no-deps sglang=="),
        (
            "flashinfer-python",
            "mqa_ref.kernel.sources",
            ("flashinfer",),
            "pip install --no-deps flashinfer-python==",
        ),
        ("sgl-deep-gemm", "mqa_ref.kernel.deepgemm.package", DEEPGEMM, "pip install 'mqa-ref[deepgemm]'"),
    ],
)
def test_without_the_package_of_a_kernel(
    monkeypatch: Patch, package: str, where: str, names: tuple[str, ...], install: str
) -> None:
    from mqa_ref.kernel.deepgemm import package as deepgemm

    monkeypatch.setattr(f"{where}.distribution", without(package))
    deepgemm.headers.cache_clear()
    found = named()
    deepgemm.headers.cache_clear()
    for name in names:
        one = found[name, "emulator"]
        assert one.reason is not None
        assert one.reason.startswith(f"the package {package} is not installed")
        assert one.install is not None
        assert one.install.startswith(install)
    others = {name for name in (*SM100, *DEEPGEMM) if name not in names}
    told = {
        name
        for name, backend in found
        if backend == "emulator" and package in (found[name, backend].reason or "")
    }
    assert not told & others


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("hypothesis", "fuzz"),
        ("distributed", "cluster"),
        ("jinja2", "report"),
        ("torch", "gpu"),
        ("mmasim", "dev"),
    ],
)
def test_without_the_package_of_an_extra(monkeypatch: Patch, module: str, extra: str) -> None:
    hide(monkeypatch, module)
    told = [one for one in abilities() if one.reason == f"not installed: {module}"]
    assert [one.install for one in told] == [f"pip install 'mqa-ref[{extra}]'"]


@pytest.mark.parametrize("tool", ["nvdisasm", "ptxas"])
def test_without_the_tools(monkeypatch: Patch, tool: str) -> None:
    from mqa_ref.errors import NotAvailable

    def missing(name: str) -> Path:
        if name == tool:
            raise NotAvailable(f"no {name}")
        return Path(name)

    monkeypatch.setattr("mqa_ref.kernel.cubin.tool", missing)
    told = [one for one in abilities() if one.name.startswith("sass") and one.reason]
    assert [(one.reason, one.install) for one in told] == [(f"no {tool}", "pip install 'mqa-ref[sass]'")]


def test_the_command(tmp_path: Path, monkeypatch: Patch, capsys: pytest.CaptureFixture[str]) -> None:
    hide(monkeypatch, "jinja2")
    assert run(["doctor", "--json", str(tmp_path / "d.json")]) == 0
    text = capsys.readouterr().out
    assert "no: not installed: jinja2" in text
    assert "install: pip install 'mqa-ref[report]'" in text
    told = json.loads((tmp_path / "d.json").read_text())
    assert faults_of_json(told) == ()
    (row,) = [one for one in told["abilities"] if one["reason"] == "not installed: jinja2"]
    assert row["install"] == "pip install 'mqa-ref[report]'"
    assert told["environment"]["numpy"] != "absent"
    assert "libnosuchdriver.so" in told["gpu"]
