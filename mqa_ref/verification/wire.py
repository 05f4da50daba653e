"""A file of plain values and arrays, as two processes hand it to each other when one of them is not trusted.

Layout: 16 bytes of magic; uint64, little-endian, the length of the header; the header, a JSON object
``{"plain": ..., "arrays": [{"name", "dtype", "shape"}, ...]}``; the bytes of every array, C-contiguous, in the
header's order, and nothing after them. Reading executes nothing: no pickle, dtypes from a short list, every size
checked against the file's before anything is allocated.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

MAGIC = b"mqa-ref wire 01\n"
MOST_HEADER_BYTES = 64 << 20
MOST_ARRAYS = 64
DTYPES = {"|u1": np.uint8, "<u2": np.uint16, "<u4": np.uint32, "<i4": np.int32, "<f4": np.float32}

Array = NDArray[Any]


class WireError(Exception):
    """The file is not what this module writes."""


@dataclass(frozen=True)
class Message:
    """What a file holds: JSON values, and arrays by name."""

    plain: Mapping[str, Any]
    arrays: Mapping[str, Array] = field(default_factory=dict)


def write(path: Path, message: Message) -> None:
    """Write a message to a new file that only this user can read."""
    laid = {name: np.ascontiguousarray(array) for name, array in message.arrays.items()}
    laid = {name: array.astype(array.dtype.newbyteorder("<"), copy=False) for name, array in laid.items()}
    described = [
        {"name": name, "dtype": array.dtype.str, "shape": list(array.shape)} for name, array in laid.items()
    ]
    if any(one["dtype"] not in DTYPES for one in described):
        raise WireError(f"a dtype that is not one of {', '.join(DTYPES)}")
    header = json.dumps({"plain": message.plain, "arrays": described}).encode()
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(MAGIC + len(header).to_bytes(8, "little") + header)
        for array in laid.values():
            file.write(array.reshape(-1).view(np.uint8).data if array.size else b"")


def read(path: Path) -> Message:
    """Read a message. Raises WireError for anything but a whole file that ``write`` could have written."""
    try:
        # The other side may have put a link or a pipe there: follow no link, wait for no writer.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise WireError(f"no file to read: {error.strerror}") from error
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        raise WireError("not a regular file")
    with os.fdopen(handle, "rb") as file:
        start = _exactly(file, len(MAGIC) + 8)
        length = int.from_bytes(start[len(MAGIC) :], "little")
        if not start.startswith(MAGIC) or length > min(MOST_HEADER_BYTES, status.st_size):
            raise WireError("not the start of a message")
        plain, described = _header(_exactly(file, length))
        wanted = sum(math.prod(shape) * dtype.itemsize for _, dtype, shape in described)
        if file.tell() + wanted != status.st_size:
            raise WireError(f"arrays of {wanted} bytes in a file with {status.st_size - file.tell()} left")
        arrays = {}
        for name, dtype, shape in described:
            raw = _exactly(file, math.prod(shape) * dtype.itemsize)
            arrays[name] = np.frombuffer(raw, dtype).reshape(shape)
        return Message(plain, arrays)


def _exactly(file: BinaryIO, count: int) -> bytes:
    raw = file.read(count)
    if len(raw) != count:
        raise WireError("the file ends too early")
    return raw


def _header(raw: bytes) -> tuple[Mapping[str, Any], list[tuple[str, np.dtype[Any], tuple[int, ...]]]]:
    header: Any = None
    # RecursionError: brackets nested too deep.
    with contextlib.suppress(ValueError, RecursionError):
        header = json.loads(raw)
    if not isinstance(header, dict) or set(header) != {"plain", "arrays"}:
        raise WireError("the header is no JSON object with the keys plain and arrays")
    plain, arrays = header["plain"], header["arrays"]
    if not isinstance(plain, dict) or not isinstance(arrays, list) or len(arrays) > MOST_ARRAYS:
        raise WireError("the header's values are of the wrong types")
    return plain, list(_described(arrays))


def _described(arrays: list[Any]) -> Iterator[tuple[str, np.dtype[Any], tuple[int, ...]]]:
    seen = set()
    for one in arrays:
        if not isinstance(one, dict) or set(one) != {"name", "dtype", "shape"}:
            raise WireError("an array without name, dtype and shape")
        name, dtype, shape = one["name"], one["dtype"], one["shape"]
        good_shape = isinstance(shape, list) and len(shape) <= 4
        good_shape = good_shape and all(type(size) is int and 0 <= size < 1 << 40 for size in shape)
        if not isinstance(name, str) or name in seen or not isinstance(dtype, str) or not good_shape:
            raise WireError("an array whose name, dtype or shape is of the wrong type")
        if dtype not in DTYPES:
            raise WireError(f"an array of dtype {dtype[:20]!r}")
        seen.add(name)
        yield name, np.dtype(dtype), tuple(shape)
