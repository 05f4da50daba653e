"""Problems, launches and compiled kernels as plain values and arrays for ``mqa_ref.verification.wire``, and back.

Everything that comes back from the process of a kernel is checked here: types, ranges, shapes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.findings import Finding
from mqa_ref.flow import Flow
from mqa_ref.kernel.compile import ArgumentLayout, CompiledKernel
from mqa_ref.launch import Launch
from mqa_ref.problem import Problem
from mqa_ref.verification.wire import Message, WireError

ARRAYS = ("q", "kv_fused", "weights", "block_table", "context_lens", "schedule")
MOST_FINDINGS = 10_000
MOST_TEXT = 4_000
_KIND = re.compile(r"[a-z][a-z0-9_]{0,63}")
_TEXTS = ("message", "ptx_text", "source")
_NUMBERS = ("cta", "warp", "ptx_line")


def problem_message(problem: Problem) -> Message:
    """All of a problem."""
    plain = {name: getattr(problem, name) for name in ("page", "num_sms", "max_context_len")}
    return Message(plain, {name: getattr(problem, name) for name in ARRAYS})


def read_problem(message: Message) -> Problem:
    """The problem, validated anew but for its schedule, which may be one that was forced."""
    given: dict[str, Any] = {name: message.arrays[name] for name in ARRAYS}
    given |= {name: message.plain[name] for name in ("page", "num_sms", "max_context_len")}
    schedule = given.pop("schedule")
    return Problem(**given).forced(schedule)


def launch_message(launch: Launch) -> Message:
    """All of a launch."""
    arrays: dict[str, NDArray[Any]] = {"logits": launch.logits, "written": launch.written.view(np.uint8)}
    if launch.writer is not None:
        arrays["writer"] = launch.writer
    plain = {name: getattr(launch, name) for name in ("ctas", "instructions", "seconds")}
    findings = [_as_plain(finding) for finding in launch.findings[:MOST_FINDINGS]]
    return Message({**plain, "findings": findings}, arrays)


def read_launch(message: Message, problem: Problem, flow: Flow) -> Launch:
    """The launch of ``problem``. Raises WireError for anything that cannot be one."""
    shape = (problem.rows, problem.row_stride)
    wanted = {"logits": flow.bits_dtype, "written": np.dtype(np.uint8), "writer": np.dtype(np.int32)}
    found = {name: (array.dtype, array.shape) for name, array in message.arrays.items()}
    if not {"logits", "written"} <= set(found) <= set(wanted):
        raise WireError("a launch with other arrays than its own")
    for name, told in found.items():
        if told != (wanted[name], shape):
            raise WireError(f"{name} is {told}, expected {(wanted[name], shape)}")
    findings = message.plain.get("findings")
    if not isinstance(findings, list) or len(findings) > MOST_FINDINGS:
        raise WireError("findings that are no list, or too long a list")
    return Launch(
        logits=message.arrays["logits"],
        written=message.arrays["written"] != 0,
        findings=tuple(_finding(one) for one in findings),
        ctas=_count(message.plain.get("ctas")),
        instructions=_count(message.plain.get("instructions")),
        seconds=float(_number(message.plain.get("seconds"))),
        writer=message.arrays.get("writer"),
    )


def compiled_message(compiled: CompiledKernel) -> Message:
    """All of a compiled kernel."""
    texts = {name: getattr(compiled, name) for name in ("ptx", "prefix", "function_name")}
    arguments = [asdict(argument) for argument in compiled.arguments]
    plain = {**texts, "arguments": arguments, "options": dict(compiled.options)}
    blobs = {name: np.frombuffer(getattr(compiled, name), np.uint8) for name in ("cubin", "host_object")}
    return Message(plain, blobs)


def read_compiled(message: Message, flow: Flow) -> CompiledKernel:
    """The compiled kernel. Its ``host_object`` is code of the kernel's: this process must not run it."""
    plain, arrays = message.plain, message.arrays
    texts = {name: plain.get(name) for name in ("ptx", "prefix", "function_name")}
    if not all(isinstance(text, str) for text in texts.values()) or set(arrays) != {"cubin", "host_object"}:
        raise WireError("a compiled kernel without its parts")
    if not isinstance(plain.get("options"), dict) or not isinstance(plain.get("arguments"), list):
        raise WireError("a compiled kernel without its arguments")
    try:
        layouts = tuple(_layout(**one) for one in plain["arguments"])
    except TypeError as error:
        raise WireError("an argument layout that is none") from error
    return CompiledKernel(
        **{name: str(text) for name, text in texts.items()},
        cubin=arrays["cubin"].tobytes(),
        host_object=arrays["host_object"].tobytes(),
        arguments=layouts,
        flow=flow,
        options=plain["options"],
    )


def _layout(**fields: Any) -> ArgumentLayout:
    given: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()
    }
    return ArgumentLayout(**given)


def _as_plain(finding: Finding) -> dict[str, Any]:
    plain = asdict(finding)
    return plain | {name: plain[name][:MOST_TEXT] for name in _TEXTS if plain[name] is not None}


def _finding(plain: Any) -> Finding:
    if not isinstance(plain, Mapping) or not {"kind", "severity", "message"} <= set(plain) <= _FIELDS:
        raise WireError("a finding with other fields than its own")
    good = isinstance(plain["kind"], str) and _KIND.fullmatch(plain["kind"]) is not None
    good = good and plain["severity"] in ("error", "info") and isinstance(plain["message"], str)
    texts = [plain[name] for name in _TEXTS if plain.get(name) is not None]
    good = good and all(isinstance(text, str) and len(text) <= MOST_TEXT for text in texts)
    numbers = [plain[name] for name in _NUMBERS if plain.get(name) is not None]
    if not good or plain.get("known") is not None:
        raise WireError("a finding whose fields have the wrong types")
    for number in (*numbers, plain.get("count", 1)):
        _count(number)
    return Finding(**plain)


_FIELDS = set(Finding.__dataclass_fields__)


def _number(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**63:
        raise WireError("a number that is none")
    return value


def _count(value: Any) -> int:
    if not isinstance(value, int):
        raise WireError("a count that is none")
    return int(_number(value))
