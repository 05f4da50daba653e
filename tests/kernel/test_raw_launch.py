"""Launches as data: what does not fit is refused, every fault at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mqa_ref.errors import InputError
from mqa_ref.kernel.raw_launch import Buffer, Pointer, RawLaunch, Scalar, TensorMap, flat, poisoned

BUFFERS = (Buffer("in", np.zeros(4096, np.uint8)), Buffer("out", poisoned(64), writable=True))


def launch(*parameters: Any, **changed: Any) -> RawLaunch:
    told: dict[str, Any] = {"grid": (1, 1, 1), "block": (32, 1, 1), "shared_bytes": 0, "buffers": BUFFERS}
    return RawLaunch(**{**told, "parameters": parameters, "output": "out", **changed})


def test_what_fits() -> None:
    made = launch(
        Scalar(2**32 - 1),
        Scalar(1, size=1),
        Pointer("in", 4096),
        Pointer(None),
        TensorMap("in", "uint8", (128, 32), (128,), (128, 16), 128),
        TensorMap("in", "float32", (64, 15), (256,), (64, 1), offset=256),
    )
    assert made.buffer("in").data.size == 4096
    assert set(made.buffer("out").data.tolist()) == {0xFD}


@pytest.mark.parametrize(
    ("parameter", "expected"),
    [
        (Scalar(2**32), "fits its size"),
        (Scalar(-1), "fits its size"),
        (Scalar(1, size=3), "fits its size"),
        (Pointer("elsewhere"), "the name of a buffer"),
        (Pointer("in", 4097), "inside the buffer"),
        (TensorMap("elsewhere", "uint8", (16,), (), (16,)), "the name of a buffer"),
        (TensorMap("in", "uint8", (128, 33), (128,), (128, 1)), "at most 4096"),
        (TensorMap("in", "float32", (64, 16), (256,), (64, 1), offset=16), "at most 4096"),
        (TensorMap("in", "uint8", (128, 2), (100,), (128, 1)), "multiples of 16 bytes"),
        (TensorMap("in", "uint8", (128, 2), (128,), (128, 1), offset=8), "multiples of 16 bytes"),
        (TensorMap("in", "uint8", (128, 2), (128,), (128, 257)), "1 to 256 each"),
        (TensorMap("in", "uint8", (128, 2), (128,), (8, 1)), "1 to 256 each"),
        (TensorMap("in", "float32", (64, 2), (256,), (64, 1), 128), "fits"),
        (TensorMap("in", "uint8", (128, 2), (128,), (128, 1), 64), "0, or 128"),
        (TensorMap("in", "uint8", (128, 2), (), (128, 1)), "as many dimensions"),
    ],
)
def test_what_does_not_fit(parameter: Any, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        launch(parameter)


def test_every_fault_is_told_at_once() -> None:
    twice = (*BUFFERS, BUFFERS[0])
    with pytest.raises(InputError) as caught:
        launch(Scalar(-1), Pointer("elsewhere"), buffers=twice, output="in")
    assert [fault.argument for fault in caught.value.faults] == [
        *("parameters[0]", "parameters[1]", "buffers", "output")
    ]


def test_bytes_are_little_endian_copies() -> None:
    source = np.array([[1, 2], [3, -1]], ">i4")
    made = flat(source.T)
    assert made.tobytes() == np.array([1, 3, 2, -1], "<i4").tobytes()
    made[:] = 0
    assert source[0, 0] == 1
