"""Tensors and one text in a file: safetensors with one metadata key, written in one way only and read with distrust.

Layout (doc: the safetensors format description): 8 bytes little-endian header length, the header (JSON, padded with
spaces), then the data of all tensors without gaps. The metadata key ``mqa_ref`` holds canonical JSON. Floats are never
stored. A reader learns everything it allocates from bytes it already holds: lengths are checked against the file first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from mqa_ref.errors import Fault, InputError
from mqa_ref.golden import strictjson
from mqa_ref.golden.entry import plain_bytes
from mqa_ref.golden.metadata import KEY, is_name

MAX_FILE_BYTES = 4 << 20
MAX_HEADER_BYTES = 128 << 10
MAX_AXES = 2

_DTYPES = {"U8": "<u1", "U16": "<u2", "U32": "<u4", "I32": "<i4"}
_LENGTH = 8


def encode_tensors(tensors: Mapping[str, NDArray[Any]], metadata: object) -> bytes:
    """The file of some tensors and a JSON value; the same content always gives the same bytes."""
    names = {np.dtype(text): name for name, text in _DTYPES.items()}
    order = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    blobs = {name: plain_bytes(tensors[name]) for name in order}
    header: dict[str, Any] = {"__metadata__": {KEY: strictjson.dumps(metadata)}}
    at = 0
    for name in order:
        array, stop = tensors[name], at + len(blobs[name])
        dtype = names[array.dtype.newbyteorder("<")]
        header[name] = {"data_offsets": [at, stop], "dtype": dtype, "shape": list(array.shape)}
        at = stop
    text = strictjson.dumps(header).encode()
    text += b" " * (-len(text) % _LENGTH)
    return len(text).to_bytes(_LENGTH, "little") + text + b"".join(blobs.values())


def decode_tensors(
    data: bytes, source: str, most: int = MAX_FILE_BYTES
) -> tuple[dict[str, NDArray[Any]], str]:
    """Tensors and metadata text of ``data``, the content of the file ``source``, of at most ``most`` bytes. Raises
    InputError naming the file."""
    header, body = _split(data, source, most)
    metadata = header.pop("__metadata__", None)
    if not isinstance(metadata, dict) or list(metadata) != [KEY] or not isinstance(metadata[KEY], str):
        refuse(source, "other metadata", f"exactly one metadata key, {KEY!r}, a string")
    return _tensors(header, body, source, most), metadata[KEY]


def read(path: Path, most: int = MAX_FILE_BYTES, what: str = "a golden file") -> bytes:
    """The bytes of a file that may be ``what``, at most ``most``. InputError for what is no regular file or larger."""
    if path.is_symlink() or not path.is_file():
        refuse(str(path), "no regular file", what)
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        refuse(str(path), f"more than {most} bytes", what)
    return data


def refuse(source: str, value: str, expected: str) -> NoReturn:
    """Raise the one fault of a file."""
    raise InputError([Fault(source, value, expected)])


def _split(data: bytes, source: str, most: int) -> tuple[dict[str, Any], bytes]:
    """Header and data. The length of the header is believed only after it was compared with the file."""
    if len(data) > most:
        refuse(source, f"{len(data)} bytes", f"at most {most}")
    if len(data) < _LENGTH:
        refuse(source, f"{len(data)} bytes", "a header length of 8 bytes: the file is truncated")
    length = int.from_bytes(data[:_LENGTH], "little")
    if length > MAX_HEADER_BYTES:
        refuse(source, f"a header of {length} bytes", f"at most {MAX_HEADER_BYTES}")
    if length > len(data) - _LENGTH:
        refuse(
            source, f"a header of {length} bytes in {len(data)}", "the whole header: the file is truncated"
        )
    padded = data[_LENGTH : _LENGTH + length]
    text = padded.rstrip(b" ")
    if length % _LENGTH or len(padded) - len(text) >= _LENGTH:
        refuse(
            source,
            f"a header of {length} bytes",
            "a header padded to a multiple of 8, with less than 8 spaces",
        )
    try:
        header = strictjson.loads(text)
    except ValueError as error:
        refuse(source, f"header: {error}", "canonical JSON")
    if not isinstance(header, dict):
        refuse(source, "a header that is no object", "an object")
    return header, data[_LENGTH + length :]


def _tensors(header: Mapping[str, Any], body: bytes, source: str, most: int) -> dict[str, NDArray[Any]]:
    """The tensors by name, after all of them were found to fill the data exactly."""
    for name, facts in header.items():
        if not is_name(name):
            refuse(
                source, f"a tensor called {name[:64]!r}", "a name of lower-case words, digits, '.' and '-'"
            )
        if not _well_formed(facts, most):
            refuse(
                source,
                f"tensor {name}: {str(facts)[:80]}",
                "dtype, shape and data_offsets of a golden tensor",
            )
    at = 0
    for name, facts in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        start, stop = facts["data_offsets"]
        size = math.prod(facts["shape"]) * np.dtype(_DTYPES[facts["dtype"]]).itemsize
        if start != at:
            refuse(source, f"tensor {name} at byte {start}", f"byte {at}: no gap and no overlap")
        if stop - start != size:
            refuse(source, f"tensor {name}: {stop - start} bytes", f"{size} bytes for its shape")
        at = stop
    if at != len(body):
        refuse(source, f"{len(body)} bytes of data", f"{at} bytes: truncated, or something after the end")
    return {
        name: np.frombuffer(
            body[facts["data_offsets"][0] : facts["data_offsets"][1]], _DTYPES[facts["dtype"]]
        ).reshape(facts["shape"])
        for name, facts in header.items()
    }


def _well_formed(facts: object, most: int) -> bool:
    if not isinstance(facts, dict) or set(facts) != {"dtype", "shape", "data_offsets"}:
        return False
    shape, offsets = facts["shape"], facts["data_offsets"]
    numbers = isinstance(shape, list) and isinstance(offsets, list) and len(offsets) == 2
    return (
        numbers
        and isinstance(facts["dtype"], str)
        and facts["dtype"] in _DTYPES
        and 1 <= len(shape) <= MAX_AXES
        and all(type(number) is int and 0 <= number <= most for number in (*shape, *offsets))
    )
