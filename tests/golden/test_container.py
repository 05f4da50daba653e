"""The file format: what is written is safetensors, and nothing that is not exactly that is read."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from safetensors import safe_open

from mqa_ref.errors import InputError
from mqa_ref.golden import container
from mqa_ref.golden.entry import Entry


def header_of(data: bytes) -> dict[str, Any]:
    length = int.from_bytes(data[:8], "little")
    header: dict[str, Any] = json.loads(data[8 : 8 + length])
    return header


def with_header(data: bytes, edit: Callable[[dict[str, Any]], object]) -> bytes:
    """The file with an edited header, spelled canonically and padded, over the same data."""
    header = header_of(data)
    edit(header)
    return around(json.dumps(header, sort_keys=True, separators=(",", ":")).encode(), data)


def around(text: bytes, data: bytes) -> bytes:
    body = data[8 + int.from_bytes(data[:8], "little") :]
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + body


def refusal(data: bytes) -> str:
    with pytest.raises(InputError) as caught:
        container.decode(data, "some/file.safetensors")
    (fault,) = caught.value.faults
    assert fault.argument == "some/file.safetensors"
    return str(fault)


def test_everything_comes_back(entry: Entry) -> None:
    back = container.decode(container.encode(entry), "x")
    for name in ("name", "kind", "case_id", "views", "whole", "tiles", "faults"):
        assert getattr(back, name) == getattr(entry, name)
    assert set(back.tensors) == set(entry.tensors)
    for name, array in entry.tensors.items():
        assert back.tensors[name].dtype == array.dtype
        np.testing.assert_array_equal(back.tensors[name], array)


def test_the_order_of_tensors_does_not_show(entry: Entry) -> None:
    turned = replace(
        entry, tensors=dict(list(entry.tensors.items())[::-1]), views=dict(list(entry.views.items())[::-1])
    )
    assert container.encode(turned) == container.encode(entry)


def test_the_library_reads_the_same(entry: Entry, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(container.encode(entry))
    loaded = safetensors.numpy.load_file(path)
    assert set(loaded) == set(entry.tensors)
    for name, array in entry.tensors.items():
        assert loaded[name].dtype == array.dtype
        np.testing.assert_array_equal(loaded[name], array)
    with safe_open(path, "numpy") as file:
        assert list(file.metadata()) == ["mqa_ref"]


def test_every_flipped_bit_and_every_truncation_is_refused(entry: Entry) -> None:
    data = container.encode(entry)
    for at in range(8 * len(data)):
        changed = bytearray(data)
        changed[at // 8] ^= 1 << at % 8
        assert refusal(bytes(changed))
    for length in range(len(data)):
        assert refusal(data[:length])
    assert "something after the end" in refusal(data + b"\0")


@pytest.mark.parametrize("length", [2**64 - 1, 2**40, container.MAX_HEADER_BYTES + 8])
def test_a_header_longer_than_allowed(entry: Entry, length: int) -> None:
    data = container.encode(entry)
    assert f"a header of {length} bytes" in refusal(length.to_bytes(8, "little") + data[8:])


def test_a_header_longer_than_the_file(entry: Entry) -> None:
    data = container.encode(entry)
    assert "the file is truncated" in refusal((64 * 1024).to_bytes(8, "little") + data[8:])


def test_a_header_with_more_padding_than_needed(entry: Entry) -> None:
    data = container.encode(entry)
    length = int.from_bytes(data[:8], "little")
    padded = (length + 8).to_bytes(8, "little") + data[8 : 8 + length] + b" " * 8 + data[8 + length :]
    assert "less than 8 spaces" in refusal(padded)


def reshape(name: str, **facts: Any) -> Callable[[dict[str, Any]], object]:
    return lambda header: header[name].update(facts)


def grow(header: dict[str, Any], name: str, stop: int) -> None:
    """Let the last uint16 tensor end at byte ``stop``; the empty one after it goes."""
    del header["bits.c"]
    start = header[name]["data_offsets"][0]
    header[name].update(data_offsets=[start, stop], shape=[(stop - start) // 2])


BAD_HEADERS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "huge shape": (reshape("bits.a", shape=[2**40]), "dtype, shape and data_offsets"),
    "huge product": (reshape("bits.a", shape=[2**22, 2**22]), "16 bytes, expected"),
    "negative": (reshape("bits.a", shape=[-4]), "dtype, shape"),
    "bool": (reshape("bits.b", shape=[True]), "dtype, shape"),
    "no axis": (reshape("bits.a", shape=[]), "dtype, shape"),
    "three axes": (reshape("bits.a", shape=[1, 1, 4]), "dtype, shape"),
    "float": (reshape("bits.a", dtype="F32"), "dtype, shape"),
    "unknown": (reshape("bits.a", dtype=["U32"]), "dtype, shape"),
    "overlap": (reshape("bits.b", data_offsets=[44, 50]), "no gap and no overlap"),
    "gap": (reshape("bits.b", data_offsets=[49, 55]), "no gap and no overlap"),
    "backwards": (reshape("bits.b", data_offsets=[54, 48]), "no gap and no overlap"),
    "too short": (reshape("bits.a", data_offsets=[0, 12]), "12 bytes, expected 16"),
    "beyond": (lambda h: grow(h, "bits.b", 60), "54 bytes of data, expected 60"),
    "one offset": (reshape("bits.b", data_offsets=[48]), "dtype, shape"),
    "more facts": (reshape("bits.b", note=1), "dtype, shape"),
    "traversal": (lambda h: h.update({"../../etc/x": h.pop("bits.c")}), "a tensor called '../../etc/x'"),
    "absolute": (lambda h: h.update({"/x": h.pop("bits.c")}), "a tensor called '/x'"),
    "no name": (lambda h: h.update({"": h.pop("bits.c")}), "a tensor called ''"),
    "long name": (lambda h: h.update({"a" * 101: h.pop("bits.c")}), "a tensor called"),
    "tensor renamed": (lambda h: h.update({"bits.z": h.pop("bits.c")}), "sha256 of other tensors"),
    "no metadata": (lambda h: h.pop("__metadata__"), "exactly one metadata key"),
    "second key": (lambda h: h["__metadata__"].update(more="x"), "exactly one metadata key"),
    "no text": (lambda h: h["__metadata__"].update(mqa_ref=3), "exactly one metadata key"),
    "surrogate": (lambda h: h["__metadata__"].update(mqa_ref="\ud800"), "surrogates not allowed"),
    "not canonical": (lambda h: h["__metadata__"].update(mqa_ref="{} "), "not canonical"),
}


@pytest.mark.parametrize("name", BAD_HEADERS)
def test_bad_headers(entry: Entry, name: str) -> None:
    edit, told = BAD_HEADERS[name]
    tracemalloc.start()
    try:
        data = with_header(container.encode(entry), edit)
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        assert told in refusal(data)
        assert tracemalloc.get_traced_memory()[1] - before < 1 << 20
    finally:
        tracemalloc.stop()


def test_headers_that_are_no_canonical_object(entry: Entry) -> None:
    data = container.encode(entry)
    length = int.from_bytes(data[:8], "little")
    text = data[8 : 8 + length].rstrip()
    assert "'bits.c' twice" in refusal(around(text[:-1] + b',"bits.c":{}}', data))
    assert "canonical" in refusal(around(b"[1]", data).replace(b"[1]", b"{ }"))
    assert "no object" in refusal(around(b"[1]", data))
    assert "nested deeper" in refusal(around(b"[" * 1000, data))


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(container.MAX_FILE_BYTES + 1)
    with pytest.raises(InputError, match="more than 4194304 bytes"):
        container.read(path)
    with pytest.raises(InputError, match="at most 4194304"):
        container.decode(bytes(container.MAX_FILE_BYTES + 1), "x")


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for name in ("link", "absent", "."):
        with pytest.raises(InputError, match="no regular file"):
            container.read(tmp_path / name)
