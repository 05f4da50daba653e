"""Files of recordings: tensors of bits, and the facts of the machine that gave them, each tensor with its SHA-256."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from mqa_ref.golden import strictjson
from mqa_ref.golden.entry import plain_bytes
from mqa_ref.golden.tensorfile import decode_tensors, encode_tensors, read, refuse

RECORDINGS = Path(__file__).parent / "data"
FORMAT = 1
SUFFIX = ".safetensors"
_FACTS = {"compute_capability", "cuda_driver_api", "date", "driver", "gpu", "numpy", "program", "python"}


@dataclass(frozen=True, eq=False)
class Recording:
    """One file. ``facts``: GPU, compute capability, driver, CUDA driver API version, date, and the program
    that recorded.
    """

    name: str
    tensors: Mapping[str, NDArray[Any]]
    facts: Mapping[str, str]


def encode(recording: Recording) -> bytes:
    """The file of a recording; the same recording always gives the same bytes."""
    digests = {
        name: hashlib.sha256(plain_bytes(array)).hexdigest() for name, array in recording.tensors.items()
    }
    facts = dict(recording.facts)
    return encode_tensors(
        recording.tensors, {"facts": facts, "format": FORMAT, "name": recording.name, "sha256": digests}
    )


def decode(data: bytes, source: str) -> Recording:
    """The recording in a file's bytes. Raises InputError with one fault that names the file."""
    tensors, text = decode_tensors(data, source)
    try:
        metadata = strictjson.loads(text.encode())
    except ValueError as error:
        refuse(source, str(error), "the metadata of a recording")
    if not isinstance(metadata, dict) or set(metadata) != {"facts", "format", "name", "sha256"}:
        refuse(source, "other metadata", "facts, format, name and sha256 of a recording")
    facts, digests = metadata["facts"], metadata["sha256"]
    texts = isinstance(facts, dict) and all(isinstance(fact, str) for fact in facts.values())
    if metadata["format"] != FORMAT or not texts or set(facts) != _FACTS:
        refuse(source, "other facts", f"format {FORMAT} and the facts {', '.join(sorted(_FACTS))}")
    if not isinstance(digests, dict) or set(digests) != set(tensors):
        refuse(source, "other digests", "one SHA-256 for each tensor")
    for name, array in tensors.items():
        if hashlib.sha256(plain_bytes(array)).hexdigest() != digests[name]:
            refuse(source, f"tensor {name} with another SHA-256", "data as they were written")
    if metadata["name"] != Path(source).name.removesuffix(SUFFIX):
        refuse(source, f"a recording called {metadata['name']}", "the name of its file")
    return Recording(metadata["name"], tensors, facts)


def names(folder: Path = RECORDINGS) -> tuple[str, ...]:
    """The recordings there are."""
    return tuple(sorted(path.name.removesuffix(SUFFIX) for path in folder.glob(f"*{SUFFIX}")))


def load(name: str, folder: Path = RECORDINGS) -> Recording:
    """One recording by name, such as "fma-f32", "products" or "programs". Raises InputError when it is not
    there or broken.
    """
    path = folder / f"{name}{SUFFIX}"
    return decode(read(path), str(path))
