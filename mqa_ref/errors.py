"""The errors users meet: one typed class per kind of answer, so that nothing is read out of an exception's text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


class MqaRefError(Exception):
    """Base of every error this package raises on purpose."""


@dataclass(frozen=True)
class Fault:
    """One thing wrong with one argument: its name, the value it had and what was expected."""

    argument: str
    value: str
    expected: str

    def __str__(self) -> str:
        return f"{self.argument}: got {self.value}, expected {self.expected}"


class InputError(MqaRefError, ValueError):
    """Bad input. ``faults`` lists every fault found, not only the first one."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults: tuple[Fault, ...] = tuple(faults)
        if not self.faults:
            raise AssertionError("an InputError needs at least one fault")
        super().__init__("; ".join(str(fault) for fault in self.faults))


class Unsupported(MqaRefError):
    """A request that is well formed but that this target, backend or version cannot serve; said before any launch."""


class NotAvailable(MqaRefError):
    """A package or a device that was asked for is not on this machine."""


class EmulatorError(MqaRefError):
    """The emulator met something it does not model; the message names the instruction and its PTX line."""


class OracleError(MqaRefError):
    """Two independent oracles disagree: no verdict of this package can be trusted until that is mended."""
