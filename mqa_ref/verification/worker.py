"""A kernel that this project did not write, compiled and launched in a process of its own, with limits.

A kernel file is code: executing it may do anything that its user may do. The process keeps accidents away from this
one (endless loops, exhausted memory, crashes, prints, exits); it is no jail for malice.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any, TypeVar

from mqa_ref import errors
from mqa_ref.cuda.launch import Settings
from mqa_ref.emulator.engines import Emulation
from mqa_ref.errors import Fault, InputError, KernelDied, KernelError, KernelTimeout, MqaRefError
from mqa_ref.flow import Flow
from mqa_ref.kernel.compile import CompiledKernel
from mqa_ref.kernel.targets import resolve
from mqa_ref.launch import Launch
from mqa_ref.problem import Problem
from mqa_ref.verification import wire
from mqa_ref.verification.child import Child
from mqa_ref.verification.messages import problem_message, read_compiled, read_launch
from mqa_ref.verification.wire import Message, WireError

Result = TypeVar("Result")
MODULE = "mqa_ref.verification.worker_main"
UNLIMITED = 1 << 62
MOST_TIMEOUTS = 3
"""After so many cases in a row that ran out of time the kernel is given up."""
SHOWN_OUTPUT = 600
_TYPED = ("Unsupported", "NotAvailable", "EmulatorError", "OracleError", "KernelError", "KernelOutOfMemory")
_GOES_ON = ("InputError", "Unsupported", "NotAvailable", "EmulatorError", "OracleError")
"""Answers after which the process is as good as before; after any other failure the next case gets a new one."""


@dataclass(frozen=True)
class Limits:
    """``seconds``: for loading the kernel, and for each case, compilation and launch together. ``memory_bytes``:
    private memory of the process. ``start_seconds``: for starting it, which is this package's imports."""

    seconds: float = 300.0
    memory_bytes: int = 8 << 30
    start_seconds: float = 120.0


class Worker(AbstractContextManager["Worker"]):
    """Compiles and launches one kernel in a process that is started when first needed and again after it died.

    ``native``: launch on a GPU, with these settings; a fault there loses the process's context, and so the process.

    Every failure of the kernel's code is a KernelError (KernelTimeout, KernelOutOfMemory, KernelDied among them) with
    the end of what it printed. A kernel that could not be loaded is not loaded again: the same answer for every case.
    """

    def __init__(
        self,
        kernel: str,
        limits: Limits | None = None,
        native: Settings | None = None,
        *,
        emulation: Emulation | None = None,
    ) -> None:
        self.kernel, self.limits, self.native = kernel, limits or Limits(), native
        self.emulation = emulation or Emulation()
        self.starts = 0
        self._child: Child | None = None
        self._number = self._timeouts = 0
        self._hopeless: MqaRefError | None = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        if self._child is not None:
            self._child.close()
            self._child = None

    def compile(
        self, shape: Mapping[str, int], flow: Flow, options: Mapping[str, Any] | None = None
    ) -> CompiledKernel:
        """The kernel for a shape (page, heads, head_dim, next_n, num_sms). Raises what the class says and what
        ``Target.compile`` raises."""
        plain = {"ask": "compile", "shape": dict(shape), "flow": str(flow), "options": dict(options or {})}
        return self._ask(plain, {}, lambda answer: read_compiled(answer, flow))

    def launch(
        self,
        problem: Problem,
        flow: Flow,
        *,
        machine: str = "sm100",
        edit_ptx: Callable[[str], str] | None = None,
        order: str = "eager",
        seed: int = 0,
        options: Mapping[str, Any] | None = None,
    ) -> Launch:
        """As ``mqa_ref.verification.launch.launch``, in the other process; ``edit_ptx`` runs in this one."""
        ptx = None if edit_ptx is None else self._edited(problem, flow, options, edit_ptx)
        sent, plain = _of_launch("launch", problem, flow, options)
        plain |= {"machine": machine, "order": order, "seed": seed, "ptx": ptx}
        plain["emulation"] = asdict(self.emulation)
        if self.native is not None:
            plain |= {"ask": "native", "settings": asdict(self.native)}
        return self._ask(plain, sent.arrays, lambda answer: read_launch(answer, problem, flow))

    def watch(
        self,
        problem: Problem,
        flow: Flow,
        ask: Mapping[str, Any],
        *,
        edit_ptx: Callable[[str], str] | None = None,
        order: str = "eager",
        seed: int = 0,
        options: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """As ``mqa_ref.verification.observe.watch``, in the other process; ``edit_ptx`` runs in this one. The answer is
        whatever that process says: plain values to show, not to rely on."""
        ptx = None if edit_ptx is None else self._edited(problem, flow, options, edit_ptx)
        sent, plain = _of_launch("watch", problem, flow, options)
        plain |= {"watch": dict(ask), "order": order, "seed": seed, "ptx": ptx}
        return self._ask(plain, sent.arrays, lambda answer: dict(answer.plain))

    def _edited(
        self,
        problem: Problem,
        flow: Flow,
        options: Mapping[str, Any] | None,
        edit_ptx: Callable[[str], str],
    ) -> str:
        raw = resolve(self.kernel).raw
        if raw is not None:
            return edit_ptx(raw.compile(problem, flow).ptx)
        names = ("page", "heads", "head_dim", "next_n", "num_sms")
        return edit_ptx(self.compile({name: getattr(problem, name) for name in names}, flow, options).ptx)

    def _ask(
        self, plain: dict[str, Any], arrays: Mapping[str, wire.Array], read: Callable[[Message], Result]
    ) -> Result:
        child = self._ready()
        try:
            answer = self._exchange(child, plain, arrays)
            self._timeouts = 0
            if "error" not in answer.plain:
                return read(answer)
        except WireError as error:
            raise self._lost(
                KernelDied(f"the kernel's process gave an answer that is none: {error}")
            ) from error
        except KernelTimeout as error:
            self._timeouts += 1
            if self._timeouts >= MOST_TIMEOUTS:
                text = f"given up: {self._timeouts} cases in a row were stopped after {self.limits.seconds:g} seconds"
                self._hopeless = KernelTimeout(text)
            raise self._lost(error) from None
        except KernelError as error:
            raise self._lost(error) from None
        raise self._failure(answer.plain)

    def _ready(self) -> Child:
        """The process with the kernel loaded."""
        if self._hopeless is not None:
            raise self._hopeless
        if self._child is not None and self._child.alive:
            return self._child
        self.close()
        # A CUDA context maps far more memory than it uses, so there a limit on it would only break the driver.
        memory = self.limits.memory_bytes if self.native is None else UNLIMITED
        self._child = Child(MODULE, memory, self.limits.start_seconds)
        self.starts += 1
        try:
            answer = self._exchange(
                self._child, {"ask": "load", "kernel": self.kernel, "native": self.native is not None}, {}
            )
            if "error" in answer.plain:
                raise self._failure(answer.plain)
        except WireError as error:
            self._hopeless = self._lost(KernelDied(f"loading the kernel gave no answer: {error}"))
            raise self._hopeless from error
        except KernelError as error:
            told = type(error)(f"while the kernel was loaded: {error}")
            self._hopeless = told if self._child is None else self._lost(told)
            raise self._hopeless from None
        except MqaRefError as error:
            self._hopeless = error
            raise
        return self._child

    def _exchange(self, child: Child, plain: dict[str, Any], arrays: Mapping[str, wire.Array]) -> Message:
        self._number += 1
        number, word = self._number, secrets.token_hex(8)
        request, answer = child.folder / f"request-{number}", child.folder / f"answer-{number}"
        wire.write(request, Message({**plain, "word": word}, arrays))
        try:
            child.send(str(number))
            if child.receive(self.limits.seconds) != f"{word} {number}":
                raise KernelDied("the kernel wrote into a pipe that is not its own")
            return wire.read(answer)
        finally:
            for file in (request, answer):
                with contextlib.suppress(OSError):
                    file.unlink()

    def _failure(self, plain: Mapping[str, Any]) -> MqaRefError:
        """The exception that an answer tells of."""
        name, text, faults = plain["error"], plain.get("text"), plain.get("faults")
        made: MqaRefError
        if name == "InputError" and isinstance(faults, list) and faults and all(map(_is_fault, faults)):
            made = InputError(Fault(*fault) for fault in faults)
        elif name in _TYPED and isinstance(text, str):
            made = getattr(errors, name)(text)
        else:
            made = KernelDied("the kernel's process gave an answer that is none")
        return made if name in _GOES_ON else self._lost(made)

    def _lost(self, error: MqaRefError) -> MqaRefError:
        """End the process; the same error, with the end of what was printed."""
        child, self._child = self._child, None
        if child is None:
            return error
        # Anything still running must not print, or work, any more.
        printed = child.output() if not child.alive else ""
        child.close()
        printed = (printed or child.output())[-SHOWN_OUTPUT:]
        return type(error)(f"{error}\nit printed: {printed}") if printed else error


def _of_launch(
    ask: str, problem: Problem, flow: Flow, options: Mapping[str, Any] | None
) -> tuple[Message, dict[str, Any]]:
    """The message of a problem, and the plain values that every question about a launch begins with."""
    sent = problem_message(problem)
    return sent, {
        "ask": ask,
        "flow": str(flow),
        "problem": dict(sent.plain),
        "options": dict(options or {}),
    }


def _is_fault(value: object) -> bool:
    return isinstance(value, list) and len(value) == 3 and all(isinstance(part, str) for part in value)
