"""The one form of what a checking command writes with ``--json``: the same head, whatever was checked.

The schema that every such object holds to is ``mqa_ref/report/schema/report-1.json``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal

Status = Literal["pass", "fail", "error"]

VERSION = 1
"""Version of the JSON object; it grows when a field changes its meaning or goes away."""


def result_values(
    command: str,
    *,
    status: Status,
    exit_code: int,
    flow: str | Iterable[str] | None,
    cases: int,
    logits: int,
    mismatched: int,
    findings: int,
    seconds: float,
    seed: int | None = None,
    kernel: str | None = None,
    backend: str | None = None,
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The object of ``command`` (its words, as in "golden check"): the head, then what ``more`` holds.

    ``flow``: one name, "all", or several names, which are joined by commas; None where no flow is involved.
    ``kernel``, ``backend``: None where no kernel runs. ``logits``: elements compared; ``mismatched``: those that are
    wrong. ``seed``: None where nothing is drawn. ``seconds``: wall time, written in milliseconds' steps. Numbers that
    JSON does not know become strings. Raises ValueError when ``more`` repeats a field of the head.
    """
    head = {
        "version": VERSION,
        "command": command,
        "status": status,
        "exit_code": exit_code,
        "kernel": kernel,
        "backend": backend,
        "flow": flow if flow is None or isinstance(flow, str) else ",".join(flow),
        "cases": cases,
        "logits": logits,
        "mismatched": mismatched,
        "findings": findings,
        "seed": seed,
        "seconds": round(seconds, 3),
    }
    repeated = sorted(set(head) & set(more or {}))
    if repeated:
        raise ValueError(f"fields of the head given twice: {', '.join(repeated)}")
    plain: dict[str, Any] = json_values(head | dict(more or {}))
    return plain


def result_json(values: Mapping[str, Any]) -> str:
    """One line-broken JSON object that ends with a newline."""
    return json.dumps(values, indent=2, allow_nan=False) + "\n"


def json_values(value: Any) -> Any:
    """Mappings, sequences and numbers as JSON knows them: tuples are lists, NaN and infinities are strings."""
    if isinstance(value, Mapping):
        return {str(name): json_values(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [json_values(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value
