"""Global memory as separate allocations, and the shared memory of one CTA.

Every access is checked against the exact bounds of an allocation; allocations lie far apart, so an address
one byte past an allocation belongs to none. Loads out of bounds deliver zeros and stores are dropped, after
the finding is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mqa_ref.emulator.global_shadow import GlobalShadow
from mqa_ref.emulator.ptx import Program
from mqa_ref.errors import EmulatorError

SHARED_BASE = 1024
FIRST_ADDRESS = 0x7_0000_0000_0000
SPACING = 1 << 40
_VARIABLES = 0x5_0000_0000_0000

Bytes = NDArray[np.uint8]
Share = Callable[[int], NDArray[np.bool_]]
"""CTA number -> bool [bytes of the buffer], True where that CTA has a reason to read."""


@dataclass
class Allocation:
    """One buffer: ``data`` its bytes, ``address`` where it lies, ``writable`` whether the kernel may store to
    it.

    ``stores`` counts the stores to each byte (saturating at 255) and ``owner`` holds the CTA of the last
    store, or -1; both are made only for writable buffers. ``share`` tells which bytes belong to a CTA; a load
    of others is a finding.
    """

    name: str
    address: int
    data: Bytes
    writable: bool
    share: Share | None = None
    stores: Bytes = field(init=False)
    owner: NDArray[np.int32] = field(init=False)
    shadow: GlobalShadow = field(init=False)

    def __post_init__(self) -> None:
        size = self.data.size if self.writable else 0
        self.stores = np.zeros(size, np.uint8)
        self.owner = np.full(size, -1, np.int32)
        self.shadow = GlobalShadow(size)

    @property
    def end(self) -> int:
        """First address past the buffer."""
        return self.address + self.data.size


def variable_addresses(program: Program) -> dict[str, int]:
    """Where the variables of the module lie; far from every buffer, one after the other, aligned, none touching."""
    found, at = {}, _VARIABLES
    for variable in program.variables:
        at = -(-at // variable.align) * variable.align
        found[variable.name] = at
        at += max(len(variable.data), 1) + 64
    return found


class GlobalMemory:
    """All allocations of one launch."""

    def __init__(self) -> None:
        self.allocations: list[Allocation] = []
        self.variables: list[Allocation] = []

    def place_variables(self, program: Program) -> None:
        """Give the module's variables in the global and constant spaces their first values, at their addresses."""
        addresses = variable_addresses(program)
        self.variables = [
            Allocation(
                each.name, addresses[each.name], np.frombuffer(each.data, np.uint8).copy(), each.writable
            )
            for each in program.variables
        ]

    def add(
        self, name: str, data: Bytes, *, writable: bool, offset: int = 0, share: Share | None = None
    ) -> Allocation:
        """Place ``data`` (a flat uint8 array that is used in place) at an address of the emulator's choice.

        ``offset`` shifts the start from its 1 TiB-aligned place, in bytes.
        """
        if data.dtype != np.uint8 or data.ndim != 1 or data.size > SPACING // 2:
            raise EmulatorError(f"buffer {name!r}: expected a flat uint8 array below {SPACING // 2} bytes")
        address = FIRST_ADDRESS + len(self.allocations) * SPACING + offset
        self.allocations.append(Allocation(name, address, data, writable, share))
        return self.allocations[-1]

    def find(self, address: int, size: int) -> Allocation | None:
        """The allocation that holds all of [address, address + size), or None."""
        index = (address - FIRST_ADDRESS) // SPACING
        if not 0 <= index < len(self.allocations):
            return next((v for v in self.variables if v.address <= address and address + size <= v.end), None)
        allocation = self.allocations[index]
        return allocation if allocation.address <= address and address + size <= allocation.end else None

    def nearest(self, address: int) -> str:
        """Words for a stray address: which buffer it is closest to and by how much it misses."""
        index = (address - FIRST_ADDRESS) // SPACING
        if not 0 <= index < len(self.allocations):
            return f"address {address:#x} is in no buffer"
        allocation = self.allocations[index]
        if address < allocation.address:
            return f"{allocation.address - address} bytes before {allocation.name}"
        return f"byte {address - allocation.address} of {allocation.name}, which has {allocation.data.size} bytes"


class SharedMemory:
    """The shared memory of one CTA: bytes from address ``SHARED_BASE`` on (1024-aligned, as the swizzle needs)."""

    def __init__(self, data: Bytes) -> None:
        self.base = SHARED_BASE
        self.data = data

    def offset(self, address: int, size: int) -> int | None:
        """Byte offset of an access of ``size`` bytes, or None when it is out of bounds."""
        offset = address - self.base
        return offset if offset >= 0 and offset + size <= self.data.size else None
