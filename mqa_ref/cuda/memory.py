"""The buffers of one launch on the device, each between guard zones, and what became of them.

All lie in one allocation, far enough from each other that a stray store of a tile hits a guard zone and no neighbour.
Rows of the output are a guard zone apart from each other as well. Before each run everything is written anew: inputs,
guards, and a poisoned output. Runs take turns with two poisons: a store of exactly the one is seen by the other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mqa_ref.cuda.driver import Gpu
from mqa_ref.findings import Finding
from mqa_ref.kernel.raw_launch import POISON_BYTE, Buffer

Bytes = NDArray[np.uint8]
GUARD = 1 << 16
"""Bytes before, between and after buffers: two whole rows of 8,192 fp32 logits, or eight pages."""
GUARD_BYTE = 0xA5
ALIGNMENT = 1024
POISONS = (POISON_BYTE, 0x03)
"""The second is a small denormal in every format."""
_TRAILING = 1 << 12


@dataclass(frozen=True)
class Place:
    """Where a buffer lies in the allocation."""

    buffer: Buffer
    start: int

    @property
    def inside(self) -> slice:
        """Its bytes in an image of the allocation."""
        return slice(self.start, self.start + self.buffer.data.size)


class Arena:
    """One device allocation with all buffers of a launch in it; ``close`` gives it back.

    ``row_bytes``: bytes of an output row that the kernel may store to, of rows ``pitch`` bytes apart.
    """

    def __init__(self, gpu: Gpu, buffers: Sequence[Buffer], row_bytes: int, pitch: int) -> None:
        self.gpu, self.places = gpu, {}
        end = GUARD
        for buffer in buffers:
            self.places[buffer.name] = Place(buffer, end)
            end += -(-buffer.data.size // ALIGNMENT) * ALIGNMENT + GUARD
        self.size = end + _TRAILING
        self.address = gpu.allocate(self.size + ALIGNMENT)
        self.base = -(-self.address // ALIGNMENT) * ALIGNMENT
        self.row_bytes, self.pitch = row_bytes, pitch

    def close(self) -> None:
        """Free the allocation."""
        self.gpu.free(self.address)

    @property
    def addresses(self) -> dict[str, int]:
        """Device address of each buffer."""
        return {name: self.base + place.start for name, place in self.places.items()}

    def image(self, poison: int) -> Bytes:
        """All bytes as they are before a run."""
        image = np.full(self.size, GUARD_BYTE, np.uint8)
        for place in self.places.values():
            image[place.inside] = place.buffer.data
            if place.buffer.writable:
                image[place.inside] = GUARD_BYTE
                self._rows(image, place)[...] = poison
        return image

    def write(self, image: Bytes) -> None:
        """Bring all of it to the device."""
        self.gpu.upload(self.base, image)

    def read(self) -> Bytes:
        """All bytes as they are now."""
        return self.gpu.download(self.base, self.size)

    def output(self, image: Bytes, name: str) -> Bytes:
        """The output rows [rows, row_bytes] in an image, a copy without what lies between them."""
        return np.ascontiguousarray(self._rows(image, self.places[name]))

    def damage(self, before: Bytes, after: Bytes) -> list[Finding]:
        """What changed that must not: guard zones, bytes between rows, and inputs (by their SHA-256)."""
        found = []
        same = after.copy()
        for place in self.places.values():
            if place.buffer.writable:
                self._rows(same, place)[...] = self._rows(before, place)
                between = np.flatnonzero(same[place.inside] != before[place.inside])
                if between.size:
                    found.append(_stray(place.buffer.name, int(between[0]), between.size, self.pitch))
            elif _digest(after[place.inside]) != _digest(before[place.inside]):
                changed = np.flatnonzero(after[place.inside] != before[place.inside])
                message = f"{changed.size} bytes of the input {place.buffer.name} changed, the first at {changed[0]}"
                found.append(Finding("input_changed", "error", message))
            same[place.inside] = before[place.inside]
        for at in _starts(same != before):
            found.append(Finding("guard_overwritten", "error", self._near(at)))
        return found

    def _rows(self, image: Bytes, place: Place) -> Bytes:
        """A view [rows, row_bytes] of what may be stored to."""
        return image[place.inside].reshape(-1, self.pitch)[:, : self.row_bytes]

    def _near(self, at: int) -> str:
        for place in self.places.values():
            past = at - place.inside.stop
            if 0 <= past < GUARD // 2 + ALIGNMENT:
                return f"a store {past} bytes past the end of {place.buffer.name}"
            if 0 < place.start - at <= GUARD // 2:
                return f"a store {place.start - at} bytes before {place.buffer.name}"
        return f"a store at byte {at} of the allocation, between buffers"


def _stray(name: str, at: int, count: int, pitch: int) -> Finding:
    message = f"{count} bytes between the rows of {name} were stored to, the first behind row {at // pitch}"
    return Finding("guard_overwritten", "error", message)


def _starts(wrong: NDArray[np.bool_], most: int = 4) -> list[int]:
    """Where runs of wrong bytes begin, a few of them."""
    at = np.flatnonzero(wrong)
    if not at.size:
        return []
    first = np.concatenate([[True], np.diff(at) > 1])
    return [int(one) for one in at[first][:most]]


def _digest(data: Bytes) -> bytes:
    return hashlib.sha256(data.tobytes()).digest()
