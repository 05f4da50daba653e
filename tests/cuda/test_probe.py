"""What is missing is named, from the driver library down to the compute capability; workers share the GPUs."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from mqa_ref.cuda import probe
from mqa_ref.errors import InputError, NotAvailable


class Library:
    """libcuda.so.1 as far as the probe asks it."""

    def __init__(self, count: int = 1, capability: tuple[int, int] = (9, 0), start: int = 0) -> None:
        self.count, self.capability, self.start = count, capability, start

    def cuInit(self, _: int) -> int:  # noqa: N802 - the driver's name
        return self.start

    def cuDeviceGetCount(self, out: Any) -> int:  # noqa: N802
        out._obj.value = self.count
        return 0

    def cuDeviceGet(self, out: Any, index: int) -> int:  # noqa: N802
        out._obj.value = index
        return 0

    def cuDeviceGetName(self, out: Any, _: int, device: ctypes.c_int) -> int:  # noqa: N802
        out.value = f"GPU number {device.value}".encode()
        return 0

    def cuDeviceGetAttribute(self, out: Any, attribute: int, _: Any) -> int:  # noqa: N802
        out._obj.value = self.capability[attribute - 75]
        return 0

    def cuDriverGetVersion(self, out: Any) -> int:  # noqa: N802
        out._obj.value = 13010
        return 0


@pytest.fixture(autouse=True)
def _no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(probe.DEVICE_VARIABLE, raising=False)
    monkeypatch.delenv(probe.WORKER_VARIABLE, raising=False)
    monkeypatch.setattr(probe, "_has_package", lambda: True)


def having(monkeypatch: pytest.MonkeyPatch, library: Library | None) -> None:
    def load() -> Any:
        if library is None:
            raise OSError("no such file")
        return library

    monkeypatch.setattr(probe, "load_driver", load)


@pytest.mark.parametrize(
    ("library", "package", "words"),
    [
        (None, True, "driver library libcuda.so.1 is not here"),
        (Library(start=999), True, "does not start"),
        (Library(count=0), True, "sees no GPU"),
        (Library(), False, "package cuda.bindings is not installed; the extra `gpu` brings it"),
    ],
)
def test_the_first_thing_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, library: Library | None, package: bool, words: str
) -> None:
    having(monkeypatch, library)
    monkeypatch.setattr(probe, "_has_package", lambda: package)
    assert words in (probe.missing() or "")
    with pytest.raises(NotAvailable, match=words):
        probe.require()


def test_a_gpu_of_another_capability_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    having(monkeypatch, Library())
    assert probe.missing() is None
    assert probe.require(((9, 0),)).capability == (9, 0)
    with pytest.raises(NotAvailable) as caught:
        probe.require(((10, 0),), "the kernel builtin")
    here = "GPU 0, GPU number 0, compute capability 9.0"
    told = f"the kernel builtin needs a GPU of compute capability 10.0; here is {here}"
    assert str(caught.value) == told


def test_facts_name_the_gpu_and_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    having(monkeypatch, Library(count=4, capability=(10, 0)))
    monkeypatch.setenv(probe.DEVICE_VARIABLE, "3")
    facts = probe.require(((10, 0),))
    assert (facts.index, facts.name, facts.cuda) == (3, "GPU number 3", "13.1")
    assert facts.environment().keys() == {"date", "gpu", "compute_capability", "driver", "cuda_of_driver"}


def test_workers_are_spread_over_the_gpus() -> None:
    workers = [probe.choose_device(4, {probe.WORKER_VARIABLE: f"gw{i}"}) for i in range(9)]
    assert workers == [0, 1, 2, 3, 0, 1, 2, 3, 0]
    assert probe.choose_device(4, {}) == 0
    assert probe.choose_device(4, {probe.WORKER_VARIABLE: "master"}) == 0
    assert probe.choose_device(4, {probe.DEVICE_VARIABLE: "2", probe.WORKER_VARIABLE: "gw1"}) == 2


@pytest.mark.parametrize("value", ["4", "-1", "x", "1.0", "99999"])
def test_a_variable_that_names_no_gpu_is_refused(value: str) -> None:
    with pytest.raises(InputError, match="a number from 0 to 3"):
        probe.choose_device(4, {probe.DEVICE_VARIABLE: value})
