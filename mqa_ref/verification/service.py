"""The requests that the worker process answers: load the kernel, compile it for a shape, launch it on a problem.

Every exception of the kernel's own code ends here, whatever its type, and becomes plain values.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from mqa_ref.errors import EmulatorError, InputError, KernelError, NotAvailable, OracleError, Unsupported
from mqa_ref.flow import Flow
from mqa_ref.kernel.targets import Target, resolve
from mqa_ref.verification.launch import execute
from mqa_ref.verification.messages import compiled_message, launch_message, read_problem
from mqa_ref.verification.wire import Message

SHAPE = ("page", "heads", "head_dim", "next_n", "num_sms")
MOST_TEXT = 2000
PASSED_ON: tuple[type[Exception], ...] = (Unsupported, NotAvailable, EmulatorError, OracleError)
"""Errors of this package that are told outside as what they are."""


class Service:
    """Answers requests about one kernel; the first one loads it."""

    def __init__(self) -> None:
        self.target: Target | None = None

    def answer(self, request: Message) -> Message:
        """The answer, or what went wrong in place of one."""
        plain = request.plain
        action: Callable[[Message], Message] = {
            "load": self._load,
            "compile": self._compile,
            "launch": self._launch,
            "native": self._native,
            "watch": self._watch,
        }[plain["ask"]]
        try:
            return action(request)
        except InputError as error:
            faults = [[fault.argument, fault.value, fault.expected] for fault in error.faults]
            return Message({"error": "InputError", "faults": faults})
        except PASSED_ON as error:
            return Message({"error": type(error).__name__, "text": _text(error)})
        except KernelError as error:
            return Message({"error": KernelError.__name__, "text": _text(error)})
        except MemoryError:
            return Message({"error": "KernelOutOfMemory", "text": "the kernel's code ran out of memory"})
        except BaseException as error:  # noqa: BLE001 - the kernel may raise anything, SystemExit included
            return Message({"error": KernelError.__name__, "text": describe(error)})

    def _load(self, request: Message) -> Message:
        target = resolve(request.plain["kernel"])
        if request.plain.get("native"):
            from mqa_ref.verification.native import require_for

            require_for(target)
        if target.raw is not None:
            self.target = target
            return Message({})
        kernel = target.load()
        self.target = replace(target, load=lambda: kernel)
        return Message({})

    def _compile(self, request: Message) -> Message:
        plain = request.plain
        shape: Any = SimpleNamespace(**{name: plain["shape"][name] for name in SHAPE})
        return compiled_message(self._loaded().compile(shape, Flow.parse(plain["flow"]), plain["options"]))

    def _launch(self, request: Message) -> Message:
        plain: Mapping[str, Any] = request.plain
        problem, flow = read_problem(replace(request, plain=plain["problem"])), Flow.parse(plain["flow"])
        compiled = self._loaded().compile(problem, flow, plain["options"])
        ptx = compiled.ptx if plain["ptx"] is None else plain["ptx"]
        launch = execute(
            *(compiled, ptx, problem, flow),
            machine=plain["machine"],
            order=plain["order"],
            seed=plain["seed"],
            **plain["emulation"],
        )
        return launch_message(launch)

    def _native(self, request: Message) -> Message:
        from mqa_ref.cuda.launch import Settings
        from mqa_ref.verification.native import launch_native

        plain: Mapping[str, Any] = request.plain
        problem, flow = read_problem(replace(request, plain=plain["problem"])), Flow.parse(plain["flow"])
        settings = Settings(**plain["settings"])
        return launch_message(
            launch_native(self._loaded(), plain["ptx"], problem, flow, plain["options"], settings)
        )

    def _watch(self, request: Message) -> Message:
        from mqa_ref.verification.observe import watch

        plain: Mapping[str, Any] = request.plain
        problem, flow = read_problem(replace(request, plain=plain["problem"])), Flow.parse(plain["flow"])
        compiled = self._loaded().compile(problem, flow, plain["options"])
        ptx = compiled.ptx if plain["ptx"] is None else plain["ptx"]
        order, seed = plain["order"], plain["seed"]
        return Message(watch(compiled, ptx, problem, flow, plain["watch"], order=order, seed=seed))

    def _loaded(self) -> Target:
        assert self.target is not None, "the first request loads"
        return self.target


def _text(error: BaseException) -> str:
    try:
        return str(error)[:MOST_TEXT]
    except BaseException:  # noqa: BLE001 - even its text is the kernel's code
        return "(its text cannot be made)"


def describe(error: BaseException) -> str:
    """The type and text of an exception, and the innermost line it came from."""
    where = ""
    frames = traceback.extract_tb(error.__traceback__)
    if frames:
        where = f" (in {frames[-1].name}, {frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno})"
    return f"{type(error).__name__}: {_text(error)}{where}"
