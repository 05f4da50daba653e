"""What one golden file says: tensors of unsigned bit patterns or schedule entries, and which of them stands for
what."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

FORMAT = 1
"""Version of the files; it grows when an older reader would misread a newer file."""

KINDS = ("logits", "schedule", "stale", "refused")


@dataclass(frozen=True)
class Digest:
    """Elements and SHA-256 of a whole array of which only a part, or nothing, is stored."""

    elements: int
    sha256: str


@dataclass(frozen=True, eq=False)
class Entry:
    """The expected results of one case.

    ``case_id``: 16 hex digits of the SHA-256 of the inputs. ``tensors``: by name, uint16 or uint32 [elements]
    for logits (valid columns only, row by row), int32 [runs, 4] for partitions and walks (CTA, row, first
    split, past the last). ``views``: view -> the tensor with its bits; equal bits are stored once. ``whole``:
    by tensor, the digest of the whole array where the tensor is a sample or is not stored. ``tiles``: the
    sampled tiles of 128 columns, empty for all. ``faults``: what is refused or found, for the kinds "stale" and
    "refused".
    """

    name: str
    kind: str
    case_id: str
    tensors: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    views: Mapping[str, str] = field(default_factory=dict)
    whole: Mapping[str, Digest] = field(default_factory=dict)
    tiles: tuple[int, ...] = ()
    faults: tuple[str, ...] = ()


def plain_bytes(array: NDArray[Any]) -> bytes:
    """The elements of ``array``, little-endian, C order."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()


def digest(array: NDArray[Any]) -> Digest:
    """The digest of a whole array."""
    return Digest(int(array.size), hashlib.sha256(plain_bytes(array)).hexdigest())
