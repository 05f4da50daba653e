"""Errors of the driver as typed errors, and the parameters of a launch as the driver gets them."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from mqa_ref.cuda.driver import Bound, Gpu, import_driver
from mqa_ref.cuda.launch import parameters_of
from mqa_ref.cuda.writer import PTX_PARAMETERS, ptx, write
from mqa_ref.errors import KernelError, NotAvailable, Unsupported
from mqa_ref.kernel.raw_launch import Buffer, Pointer, RawLaunch, Scalar, TensorMap, poisoned


@pytest.mark.parametrize(
    ("call", "code", "kind", "words"),
    [
        (
            "cuStreamSynchronize",
            700,
            KernelError,
            "ILLEGAL_ADDRESS; run the REPRO line under `compute-sanitizer`",
        ),
        ("cuModuleLoadData", 209, Unsupported, "does not take this image"),
        ("cuMemAlloc", 2, NotAvailable, "refuses cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY"),
    ],
)
def test_errors_are_typed(driver: Any, call: str, code: int, kind: type[Exception], words: str) -> None:
    fake = driver(kernel=lambda *_: None)
    gpu = Gpu(0, fake)
    fake.fails[call] = type(next(iter(fake.cuInit(0))))(code)
    uses: dict[str, Any] = {"cuStreamSynchronize": gpu.synchronize, "cuMemAlloc": lambda: gpu.allocate(16)}
    uses["cuModuleLoadData"] = lambda: gpu.function(b"\x7fELF", "kernel")
    with pytest.raises(kind, match=words):
        uses[call]()


def test_parameters_arrive_aligned_and_whole(driver: Any) -> None:
    seen: list[tuple[int, bytes]] = []

    def kernel(config: Any, _: list[int]) -> None:
        assert (config.gridDimX, config.blockDimY, config.sharedMemBytes) == (3, 2, 99)

    fake = driver(kernel=kernel)
    raw = (bytes(range(128)), b"abcd", (7).to_bytes(8, "little"))

    def peek(config: Any, function: Any, pointers: int, extra: int) -> None:
        for i, one in enumerate(raw):
            address = ctypes.c_uint64.from_address(pointers + 8 * i).value
            seen.append((address, ctypes.string_at(address, len(one))))
        function(config, [])

    fake.do_cuLaunchKernelEx = peek
    gpu = Gpu(0, fake)
    gpu.launch(gpu.function(b"\x7fELF", "kernel", 99), Bound((3, 1, 1), (32, 2, 1), 99, raw))
    assert [data for _, data in seen] == list(raw)
    assert all(address % 64 == 0 for address, _ in seen)


def test_a_described_launch_is_bound_to_addresses(driver: Any) -> None:
    class Mapped(Gpu):
        def tensor_map(self, one: TensorMap, address: int) -> bytes:
            return (address + one.offset).to_bytes(8, "little") * 16

    launch = RawLaunch(
        grid=(4, 1, 1),
        block=(64, 1, 1),
        shared_bytes=5,
        parameters=(
            *(Scalar(258, 4), Pointer("in", 16), Pointer(None)),
            TensorMap("in", "uint8", (16, 2), (16,), (16, 1), offset=16),
        ),
        buffers=(Buffer("in", np.zeros(64, np.uint8)), Buffer("out", poisoned(64), writable=True)),
        output="out",
        overlaps=True,
    )
    bound = parameters_of(Mapped(0, driver()), launch, {"in": 0x1000, "out": 0x2000})
    assert bound.parameters[:3] == (b"\x02\x01\x00\x00", (0x1010).to_bytes(8, "little"), bytes(8))
    assert bound.parameters[3][:8] == (0x1010).to_bytes(8, "little")
    assert (bound.grid, bound.block, bound.shared_bytes, bound.overlaps) == ((4, 1, 1), (64, 1, 1), 5, True)


def test_the_writer_takes_what_its_text_declares() -> None:
    bound = write([(0x10, 0x20, 8)], delay_ns=5)
    assert [len(one) for one in bound.parameters] == list(PTX_PARAMETERS)
    assert [int.from_bytes(one, "little") for one in bound.parameters] == [5, 0x10, 0x20, 2, 0, 0, 0]
    declared = ptx().partition("(")[2].partition(")")[0].split(",")
    assert [8 if ".u64" in one else 4 for one in declared] == list(PTX_PARAMETERS)


def test_without_the_package_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cuda.bindings", None)
    with pytest.raises(NotAvailable, match=r"cuda\.bindings"):
        import_driver()
