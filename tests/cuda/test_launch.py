"""Every check of a native launch, against kernels in Python that break exactly one promise each."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mqa_ref.cuda.driver import Bound, Gpu
from mqa_ref.cuda.launch import Native, Settings, run
from mqa_ref.kernel.raw_launch import Buffer, flat, poisoned

ROWS, COLUMNS, PITCH = 3, 64, 96
LENGTHS = np.array([5, 64, 0], np.int32)


def u32s(address: int, count: int) -> Any:
    words: Any = (ctypes.c_uint32 * count).from_address(address)
    return np.frombuffer(words, np.uint32)


def addresses(parameters: list[int]) -> list[int]:
    return [ctypes.c_uint64.from_address(one).value for one in parameters]


def good(_: Any, parameters: list[int]) -> None:
    """out[row, column] = in[row] + column, for as many columns as the length says."""
    given, lengths, out = addresses(parameters)[:3]
    for row, length in enumerate(u32s(lengths, ROWS)):
        u32s(out + row * PITCH * 4, int(length))[:] = u32s(given, ROWS)[row] + np.arange(
            length, dtype=np.uint32
        )


def breaking(what: Callable[..., Any]) -> Any:
    """``good``, and then ``what(in, lengths, out, number of the launch)``."""
    seen = [0]

    def kernel(config: Any, parameters: list[int]) -> None:
        good(config, parameters)
        what(*addresses(parameters)[:3], seen[0])
        seen[0] += 1

    return kernel


def native(*, overlaps: bool = False, bind: Any = None) -> Native:
    def bound(_: Gpu, where: Mapping[str, int]) -> Bound:
        words = [where[name].to_bytes(8, "little") for name in ("in", "lengths", "out")]
        return Bound((2, 1, 1), (32, 1, 1), 128, (*words, *[bytes(8)] * 3), overlaps)

    buffers = (
        Buffer("in", flat(np.array([100, 200, 300], np.uint32))),
        Buffer("lengths", flat(LENGTHS)),
        Buffer("out", poisoned(ROWS * PITCH * 4), writable=True),
    )
    return Native(
        *(b"\x7fELF", "kernel", buffers, bind or bound),
        output="out",
        row_bytes=COLUMNS * 4,
        pitch=PITCH * 4,
        itemsize=4,
        changed={"lengths": flat(LENGTHS // 2)},
    )


PLAIN = Settings()


def launched(driver: Any, kernel: Any, settings: Settings = PLAIN, **how: Any) -> Any:
    fake = driver(kernel=kernel)
    ran = run(Gpu(0, fake), native(**how), settings)
    assert not fake.memory, "every allocation is given back"
    return ran


def kinds(ran: Any) -> set[str]:
    return {finding.kind for finding in ran.findings}


def test_a_right_kernel_is_not_accused(driver: Any) -> None:
    ran = launched(driver, good, Settings(reruns=5))
    assert not ran.findings
    assert ran.ctas == 2
    out = ran.output.view(np.uint32)
    assert ran.written.sum(axis=1).tolist() == LENGTHS.tolist()
    assert out[0, :5].tolist() == [100, 101, 102, 103, 104]
    assert out[1, 63] == 263
    assert (ran.output.reshape(ROWS, COLUMNS, 4)[~ran.written] == 0xFD).all()


def test_a_store_of_the_poison_itself_counts_as_written(driver: Any) -> None:
    def store(_: int, __: int, out: int, ___: int) -> None:
        u32s(out, 8)[7] = 0xFDFDFDFD

    ran = launched(driver, breaking(store))
    assert ran.written[0].nonzero()[0].tolist() == [0, 1, 2, 3, 4, 7]


STRAYS: dict[str, tuple[Callable[..., Any], str, str]] = {
    "before": (lambda i, n, out, k: u32s(out - 4, 1).__setitem__(0, 1), "guard_overwritten", "before out"),
    "after": (
        lambda i, n, out, k: u32s(out + ROWS * PITCH * 4, 1).__setitem__(0, 1),
        "guard_overwritten",
        "0 bytes past the end of out",
    ),
    "far": (
        lambda i, n, out, k: u32s(out + ROWS * PITCH * 4 + 20_000, 1).__setitem__(0, 1),
        "guard_overwritten",
        "20000 bytes past",
    ),
    "between rows": (
        lambda i, n, out, k: u32s(out + COLUMNS * 4, 1).__setitem__(0, 1),
        "guard_overwritten",
        "behind row 0",
    ),
    "input": (lambda i, n, out, k: u32s(i, 1).__setitem__(0, 7), "input_changed", "the input in"),
    "second launch": (
        lambda i, n, out, k: u32s(out, 1).__setitem__(0, 999) if k == 1 else None,
        "nondeterministic",
        "row 0, column 0",
    ),
    "twentieth launch": (
        lambda i, n, out, k: u32s(out, 1).__setitem__(0, 999) if k == 19 else None,
        "nondeterministic",
        "launch 20",
    ),
}


@pytest.mark.parametrize("name", STRAYS)
def test_what_a_kernel_must_not_do_is_seen(driver: Any, name: str) -> None:
    what, kind, words = STRAYS[name]
    ran = launched(driver, breaking(what), Settings(reruns=20, late=False, graph=False))
    assert kinds(ran) == {kind}
    assert any(words in finding.message for finding in ran.findings), ran.findings
    assert all(finding.severity == "error" for finding in ran.findings)


def test_lengths_read_before_the_wait_are_seen(driver: Any) -> None:
    """A kernel that may overlap and does not wait reads the lengths of the launch before."""
    ran = launched(driver, good, Settings(graph=False), overlaps=True)
    assert kinds(ran) == {"stale_metadata"}
    assert not launched(driver, good, Settings(graph=False, late=False), overlaps=True).findings


def test_a_graph_that_has_kept_its_lengths_is_seen(driver: Any) -> None:
    """A host that puts lengths into the parameters: a graph keeps those of its capture."""

    def bound(lengths: Any) -> Any:
        def bind(_: Gpu, where: Mapping[str, int]) -> Bound:
            words = [where[name].to_bytes(8, "little") for name in ("in", "lengths", "out")]
            words += [int(one).to_bytes(8, "little") for one in lengths]
            return Bound((2, 1, 1), (32, 1, 1), 128, tuple(words))

        return bind

    def kernel(config: Any, parameters: list[int]) -> None:
        lengths = np.array(addresses(parameters)[3:], np.int32)
        place = ctypes.c_uint64(lengths.ctypes.data)
        good(config, [parameters[0], ctypes.addressof(place), parameters[2]])

    fake = driver(kernel=kernel)
    settings = Settings(late=False)
    kept = replace(native(bind=bound(LENGTHS)), rebind=bound(LENGTHS // 2))
    assert kinds(run(Gpu(0, fake), kept, settings)) == {"graph_replay_differs"}
    assert not launched(driver, good, settings).findings


def test_the_order_of_the_driver_calls(driver: Any) -> None:
    fake = driver(kernel=good)
    run(Gpu(0, fake), native(), Settings(reruns=2, late=False, graph=True))
    begin, end = fake.log.index("cuStreamBeginCapture"), fake.log.index("cuStreamEndCapture")
    assert fake.log[begin + 1 : end].count("cuLaunchKernelEx") == 2
    assert "cuModuleLoadData" not in fake.log[begin:], "nothing is loaded during or after a capture"
    assert fake.log.count("cuGraphLaunch") == 2
