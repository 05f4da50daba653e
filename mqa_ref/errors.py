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


class KernelError(MqaRefError):
    """The kernel under test failed as a program, in its own code: it raised, or it wrote over what it was given."""


class KernelTimeout(KernelError):
    """The kernel's own code did not end within the time limit and was stopped."""


class KernelOutOfMemory(KernelError):
    """The kernel's own code asked for more memory than the limit."""


class KernelDied(KernelError):
    """The process that executed the kernel's own code ended: killed by a signal, or by an exit of the kernel's."""


class EmulatorError(MqaRefError):
    """The emulator met something it does not model; the message names the instruction and its PTX line."""


class OracleError(MqaRefError):
    """Two independent oracles disagree: no verdict of this package can be trusted until that is mended."""
