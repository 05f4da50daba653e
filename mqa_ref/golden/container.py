"""One golden file as bytes: its tensors and, as metadata, what they stand for, with a SHA-256 of each."""

from __future__ import annotations

import hashlib

from mqa_ref.golden import strictjson
from mqa_ref.golden.entry import FORMAT, Entry, plain_bytes
from mqa_ref.golden.metadata import check_metadata, entry_of, metadata_of
from mqa_ref.golden.tensorfile import (
    MAX_FILE_BYTES,
    MAX_HEADER_BYTES,
    decode_tensors,
    encode_tensors,
    read,
    refuse,
)

__all__ = ["MAX_FILE_BYTES", "MAX_HEADER_BYTES", "decode", "encode", "read"]


def encode(entry: Entry) -> bytes:
    """The file of an entry; the same entry always gives the same bytes."""
    return encode_tensors(entry.tensors, metadata_of(entry))


def decode(data: bytes, source: str) -> Entry:
    """The entry in ``data``, the content of the file ``source``. Raises InputError with one fault naming the file."""
    tensors, text = decode_tensors(data, source)
    try:
        facts = strictjson.loads(text.encode())
        check_metadata(facts, tensors)
    except ValueError as error:
        refuse(source, str(error), f"the metadata of a golden file of format {FORMAT}")
    for name, array in tensors.items():
        if hashlib.sha256(plain_bytes(array)).hexdigest() != facts["sha256"][name]:
            refuse(source, f"tensor {name} with another SHA-256", "data as they were written")
    return entry_of(facts, tensors)
