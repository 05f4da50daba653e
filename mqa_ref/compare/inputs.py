"""What a comparison is given, checked: shapes and dtypes that fit, all faults at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mqa_ref.errors import Fault, InputError
from mqa_ref.flow import Flow
from mqa_ref.launch import Launch
from mqa_ref.problem import Problem


def check(output: Mapping[str, tuple[Any, str]], launch: Launch, problem: Problem, flow: Flow) -> None:
    """Refuse arrays that do not fit. ``output``: arrays [rows, columns] by name, each with the dtype it must have; the
    first gives the number of columns. Raises InputError."""
    dtype = str(flow.bits_dtype)
    rows, written = problem.rows, launch.logits.shape
    given = {**output, "launch.logits": (launch.logits, dtype), "launch.written": (launch.written, "bool")}
    faults = [
        Fault(name, f"dtype {array.dtype}", f"{wanted} for output {flow.out}")
        for name, (array, wanted) in given.items()
        if array.dtype != wanted
    ]
    names = list(output)
    leading = output[names[0]][0].shape
    if len(leading) != 2 or leading[0] != rows:
        faults.append(Fault(names[0], f"shape {leading}", f"[{rows}, columns]"))
    for name in names[1:]:
        shape = output[name][0].shape
        if shape != leading:
            faults.append(Fault(name, f"shape {shape}", f"{leading}, as {names[0]} has"))
    if len(written) != 2 or written[0] != rows or (len(leading) == 2 and written[1] < leading[1]):
        columns = ", ".join(map(str, leading[-1:]))
        faults.append(Fault("launch.logits", f"shape {written}", f"[{rows}, at least {columns}]"))
    if launch.written.shape != written:
        faults.append(
            Fault("launch.written", f"shape {launch.written.shape}", f"{written}, as launch.logits has")
        )
    if faults:
        raise InputError(faults)
