"""A launch in a file: all its arrays, what to try with it and what failed. Data only, checked before it is believed.

The layout is that of golden files (``mqa_ref.golden.tensorfile``): safetensors with one metadata key of canonical JSON.
Whatever a stranger's file says, nothing larger than the file is allocated, every tensor must have its SHA-256, and the
launch must be one that ``Problem`` takes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.emulator.policy import ORDERS
from mqa_ref.errors import Fault, InputError, Unsupported
from mqa_ref.flow import Flow
from mqa_ref.fuzz.files import write_whole
from mqa_ref.fuzz.properties import PROPERTIES
from mqa_ref.fuzz.subject import Subject
from mqa_ref.golden import strictjson
from mqa_ref.golden.entry import plain_bytes
from mqa_ref.golden.tensorfile import decode_tensors, encode_tensors, read, refuse
from mqa_ref.kernel.targets import is_named
from mqa_ref.numerics import MACHINES
from mqa_ref.problem import Problem
from mqa_ref.reference import GENERATIONS, Generation

FORMAT = 1
SUFFIX = ".case"
MAX_BYTES = 256 << 20
MOST_LOGITS = 1 << 27
"""Elements of the result that a case may ask for; a file of few bytes can name many columns."""
MOST_TEXT = 2000
_ARRAYS = {  # by the names in the file, which knows no underscore
    "q": "uint8",
    "kv-fused": "uint8",
    "weights": "uint32",
    "block-table": "int32",
    "context-lens": "int32",
    "schedule": "int32",
}
_NUMBERS = ("page", "num_sms", "max_context_len", "next_n", "heads", "seed")
_TEXTS = (
    "case_id",
    "flow",
    "order",
    "check",
    "label",
    "machine",
    "generation",
    "kernel",
    "failure",
    "message",
)
_FIELDS = {"format", "kind", "options", "description", "sha256", *_NUMBERS, *_TEXTS}
_FAILURE = re.compile(r"[a-z_]*:[ -~]{1,200}|")


@dataclass(frozen=True, eq=False)
class Case:
    """A launch, the property ``check`` tried with it in the variant of ``label`` ("" for none), and what failed when
    it was written: the kernel, the class of failure and a sentence. ``description``: the words it was made from,
    as JSON text, for people; "" when there are none."""

    subject: Subject
    check: str = ""
    label: str = ""
    machine: str = "sm100"
    generation: Generation = "folded"
    kernel: str = "builtin"
    failure: str = ""
    message: str = ""
    description: str = field(default="", repr=False)

    @property
    def file_name(self) -> str:
        """A name that says what failed, and which launch it was."""
        words = re.sub(r"[^a-z0-9]+", "-", self.failure.lower()).strip("-")[:60] or "case"
        return f"{words}-{self.subject.problem.case_id}{SUFFIX}"


def encode_case(case: Case) -> bytes:
    """The file of a case; the same case always gives the same bytes."""
    subject, problem = case.subject, case.subject.problem
    tensors: dict[str, NDArray[Any]] = {name: getattr(problem, name.replace("-", "_")) for name in _ARRAYS}
    tensors["q"] = problem.q.reshape(-1, problem.head_dim)
    tensors["weights"] = problem.weights.view(np.uint32)
    facts: dict[str, Any] = {
        "format": FORMAT,
        "kind": "launch",
        "case_id": problem.case_id,
        "flow": str(subject.flow),
        "options": dict(subject.options),
        "order": subject.order,
        "seed": subject.seed,
        "description": case.description,
        "sha256": {name: _sha256(array) for name, array in tensors.items()},
    }
    for name in ("page", "num_sms", "max_context_len", "next_n", "heads"):
        facts[name] = getattr(problem, name)
    for name in ("check", "label", "machine", "generation", "kernel", "failure", "message"):
        facts[name] = getattr(case, name)
    facts["message"] = case.message[:MOST_TEXT]
    return encode_tensors(tensors, facts)


def decode_case(data: bytes, source: str) -> Case:
    """The case in ``data``, the content of the file ``source``. Raises InputError naming the file."""
    tensors, text = decode_tensors(data, source, MAX_BYTES)
    try:
        facts = strictjson.loads(text.encode())
        _check(facts, tensors)
        flow = Flow.parse(facts["flow"])
    except (ValueError, Unsupported) as error:
        refuse(source, str(error), f"the metadata of a case file of format {FORMAT}")
    problem = _problem(facts, tensors, source)
    if problem.case_id != facts["case_id"]:
        refuse(source, f"case id {facts['case_id'][:16]}", f"{problem.case_id}, that of the arrays")
    subject = Subject(problem, flow, facts["options"], facts["order"], facts["seed"])
    told = {
        name: facts[name]
        for name in ("check", "label", "machine", "generation", "kernel", "failure", "message")
    }
    return Case(subject, description=facts["description"], **told)


def kernel_of(case: Case, asked: str | None) -> str:
    """The kernel to run a case on: the one asked for, else the case's if it is one of those with a name here.

    A case file comes from anywhere, so it does not choose which file or module is executed: InputError where it names
    one and the caller did not.
    """
    if asked is not None:
        return asked
    if is_named(case.kernel):
        return case.kernel
    why = "--kernel, since a case file does not choose which file or module is executed"
    raise InputError([Fault("kernel", f"{case.kernel!r} in the case file, none from you", why)])


def read_case(path: Path) -> Case:
    """The case in a file. Raises InputError for anything that is none."""
    return decode_case(read(path, MAX_BYTES, "a case file"), str(path))


def write_case(folder: Path, case: Case) -> Path:
    """Write a case under its name, whole or not at all, and return the path."""
    path = folder / case.file_name
    write_whole(path, encode_case(case))
    return path


def description_text(plain: Mapping[str, Any]) -> str:
    """A description as the text that a case keeps."""
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))


def _sha256(array: NDArray[Any]) -> str:
    return hashlib.sha256(plain_bytes(array)).hexdigest()


def _check(facts: Any, tensors: Mapping[str, NDArray[Any]]) -> None:
    """Raise ValueError, saying what is wrong, unless ``facts`` are the metadata of a case with ``tensors``."""
    _want(
        isinstance(facts, dict) and set(facts) == _FIELDS, f"metadata other than {', '.join(sorted(_FIELDS))}"
    )
    _want(facts["format"] == FORMAT and facts["kind"] == "launch", "an unknown format")
    _want(
        all(type(facts[name]) is int and 0 <= facts[name] < 2**64 for name in _NUMBERS),
        "a number that is none",
    )
    texts = (*_TEXTS, "description")
    _want(all(isinstance(facts[name], str) for name in texts), "a text that is none")
    _want(
        all(len(facts[name]) <= MOST_TEXT for name in _TEXTS), f"a text of more than {MOST_TEXT} characters"
    )
    _want(facts["check"] in ("", *PROPERTIES), "a property that is none")
    _want(facts["order"] in ORDERS, "an order that is none")
    _want(facts["machine"] in MACHINES, "a machine that is none")
    _want(facts["generation"] in GENERATIONS, "a generation that is none")
    _want(_FAILURE.fullmatch(facts["failure"]) is not None, "a class of failure that is none")
    options = facts["options"]
    good = isinstance(options, dict) and len(options) <= 32
    _want(
        good and all(type(value) in (int, bool, str) for value in options.values()), "options that are none"
    )
    _want(set(tensors) == set(_ARRAYS), f"tensors other than {', '.join(_ARRAYS)}")
    _want(
        isinstance(facts["sha256"], dict) and set(facts["sha256"]) == set(tensors), "sha256 of other tensors"
    )
    for name, array in tensors.items():
        _want(array.dtype.name == _ARRAYS[name], f"tensor {name} of dtype {array.dtype}")
        _want(facts["sha256"][name] == _sha256(array), f"tensor {name} with another SHA-256")


def _problem(facts: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]], source: str) -> Problem:
    batch, next_n, heads = tensors["context-lens"].size, facts["next_n"], facts["heads"]
    q = tensors["q"]
    if q.ndim != 2 or q.shape[0] != batch * next_n * heads:
        refuse(source, f"queries of shape {list(q.shape)}", f"[{batch} * {next_n} * {heads}, D]")
    try:
        problem = Problem(
            q.reshape(batch, next_n, heads, q.shape[1]),
            tensors["kv-fused"],
            tensors["weights"].view(np.float32),
            tensors["block-table"].astype(np.int32, copy=False),
            tensors["context-lens"].astype(np.int32, copy=False),
            page=facts["page"],
            num_sms=facts["num_sms"],
            max_context_len=facts["max_context_len"],
        )
        if problem.rows * problem.row_stride > MOST_LOGITS:
            size = f"{problem.rows} rows of {problem.row_stride}"
            raise InputError([Fault("max_context_len", size, f"at most {MOST_LOGITS} logits")])
        return problem.forced(tensors["schedule"].astype(np.int32, copy=False))
    except InputError as error:
        faults = [Fault(f"{source}: {fault.argument}", fault.value, fault.expected) for fault in error.faults]
        raise InputError(faults) from None


def _want(good: bool, otherwise: str) -> None:
    if not good:
        raise ValueError(otherwise)
