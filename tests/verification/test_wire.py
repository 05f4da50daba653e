"""The file between two processes: what goes in comes out, and nothing that is damaged or forged is read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqa_ref.verification.wire import MAGIC, Message, WireError, read, write


def test_what_goes_in_comes_out(tmp_path: Path) -> None:
    arrays: dict[str, np.ndarray] = {
        "codes": np.arange(24, dtype=np.uint8).reshape(2, 3, 4),
        "numbers": np.array([[1.5, -0.0], [np.inf, np.nan]], np.float32).T,
        "nothing": np.zeros((0, 7), np.int32),
        "big": np.array([1, 2**31], ">u4"),
    }
    write(tmp_path / "m", Message({"a": [1, None, "x"], "b": 0.5}, arrays))
    message = read(tmp_path / "m")
    assert message.plain == {"a": [1, None, "x"], "b": 0.5}
    assert list(message.arrays) == list(arrays)
    for name, array in arrays.items():
        assert message.arrays[name].shape == array.shape
        assert message.arrays[name].tobytes() == array.astype(array.dtype.newbyteorder("<")).tobytes()
    assert (tmp_path / "m").stat().st_mode & 0o077 == 0


def test_objects_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(WireError):
        write(tmp_path / "m", Message({}, {"x": np.array([object()])}))


def raw(header: Any, rest: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return MAGIC + (len(text) if length is None else length).to_bytes(8, "little") + text + rest


def one(**changed: Any) -> dict[str, Any]:
    return {"plain": {}, "arrays": [{"name": "x", "dtype": "|u1", "shape": [4]} | changed]}


FORGED: dict[str, bytes] = {
    "empty": b"",
    "not ours": b"\x80\x04K\x01." * 9,
    "longer header than file": raw(one(), b"1234", 1 << 40),
    "cut header": raw(one())[:-3],
    "no json": raw(b"{'plain'"),
    "too deep": raw(b"[" * 100_000),
    "no object": raw([1]),
    "another key": raw({"plain": {}, "arrays": [], "code": ""}),
    "plain is a list": raw({"plain": [], "arrays": []}),
    "arrays is a number": raw({"plain": {}, "arrays": 3}),
    "an array is a number": raw({"plain": {}, "arrays": [3]}),
    "too little data": raw(one(), b"123"),
    "too much data": raw(one(), b"12345"),
    "object dtype": raw(one(dtype="|O"), b"1234"),
    "unknown dtype": raw(one(dtype="<f8", shape=[1]), b"12345678"),
    "negative size": raw(one(shape=[-4]), b"1234"),
    "size of 2^60": raw(one(shape=[2**60]), b"1234"),
    "product of sizes": raw(one(shape=[2**30, 2**30, 2**30]), b"1234"),
    "size is true": raw(one(shape=[True, 4]), b"1234"),
    "size is a float": raw(one(shape=[4.0]), b"1234"),
    "five axes": raw(one(shape=[1, 1, 1, 1, 4]), b"1234"),
    "twice": raw({"plain": {}, "arrays": one()["arrays"] * 2}, b"12345678"),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_files(tmp_path: Path, name: str) -> None:
    (tmp_path / "m").write_bytes(FORGED[name])
    with pytest.raises(WireError):
        read(tmp_path / "m")


def test_the_forged_one_without_the_fault_is_read(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(raw(one(), b"1234"))
    assert read(tmp_path / "m").arrays["x"].tobytes() == b"1234"


@pytest.mark.parametrize(
    "make",
    [
        lambda path: None,
        lambda path: path.mkdir(),
        lambda path: os.mkfifo(path),
        lambda path: path.symlink_to("/dev/zero"),
    ],
    ids=["nothing", "folder", "pipe", "link"],
)
def test_what_is_no_file(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "m")
    with pytest.raises(WireError):
        read(tmp_path / "m")
