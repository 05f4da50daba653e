"""The rules a launch's inputs must keep: every fault at once, and none that only follows from another.

Shapes and rules are those of op.md ("Inputs of one launch", "What a launch writes", "Schedule metadata"). A rule that
needs an argument which is not usable (wrong type, wrong number of axes, wrong dtype for its values) is not judged.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref import schedule as sched
from mqa_ref.errors import Fault

PAGES = (32, 64, 128)
HEAD_DIMS = (32, 64, 128)
MOST_LOGITS = 2**31 - 1
"""The most elements of a logits buffer (rows times row stride). This project's own limit: 32-bit indices end there."""

_ARRAYS: dict[str, tuple[type[np.generic], int, str]] = {
    "q": (np.uint8, 4, "[B, next_n, H, D], e4m3fn codes"),
    "kv_fused": (np.uint8, 2, "[pages, page*(D+4)]"),
    "weights": (np.float32, 2, "[B*next_n, H]"),
    "block_table": (np.int32, 2, "[B, max_pages]"),
    "context_lens": (np.int32, 1, "[B]"),
    "schedule": (np.int32, 2, "[num_sms+1, 2]"),
}
_ORDER = (
    "q",
    "kv_fused",
    "weights",
    "block_table",
    "context_lens",
    "page",
    "num_sms",
    "max_context_len",
    "schedule",
)


@dataclass(frozen=True)
class _Inputs:
    """What is usable of the arguments: ``shapes`` of arrays with the right number of axes, ``values`` of those with the
    right dtype too, and the numbers, None for one that is not usable (or, for ``columns``, not given)."""

    shapes: Mapping[str, tuple[int, ...]]
    values: Mapping[str, NDArray[Any]]
    page: int | None
    num_sms: int | None
    columns: int | None
    columns_given: bool

    @property
    def lengths(self) -> NDArray[np.int64] | None:
        """The lengths, when each by itself is possible."""
        lengths = self.values.get("context_lens")
        return None if lengths is None or lengths.size == 0 or lengths.min() < 0 else lengths.astype(np.int64)


def aligned_columns(columns: int) -> int:
    """``columns`` rounded up to 256, the row stride of the logits (op.md, "Inputs of one launch")."""
    return -(-columns // sched.SPLIT_TOKENS) * sched.SPLIT_TOKENS


def find_faults(
    arrays: Mapping[str, object], *, page: object, num_sms: object, max_context_len: object
) -> list[Fault]:
    """Every fault of the arguments of ``Problem``, in their order; an empty list means that they are good.

    ``arrays``: the arguments that are arrays by name; a ``schedule`` of None is no fault.
    """
    given = {name: value for name, value in arrays.items() if name != "schedule" or value is not None}
    faults = [fault for name, value in given.items() for fault in _array_faults(name, value)]
    tables = {
        name: value
        for name, value in given.items()
        if isinstance(value, np.ndarray) and value.ndim == _ARRAYS[name][1]
    }
    shapes = {name: table.shape for name, table in tables.items()}
    values = {name: table for name, table in tables.items() if not list(_array_faults(name, table))}
    sms_fault = sched.cta_count_fault(num_sms)
    tokens, columns = _integer(page), _integer(max_context_len)
    if tokens not in PAGES:
        faults.append(Fault("page", repr(page), "one of " + ", ".join(map(str, PAGES))))
        tokens = None
    if sms_fault is not None:
        faults.append(sms_fault)
    if max_context_len is not None and (columns is None or columns < 1):
        faults.append(Fault("max_context_len", repr(max_context_len), "an integer, at least 1"))
        columns = None
    sms = _integer(num_sms) if sms_fault is None else None
    inputs = _Inputs(shapes, values, tokens, sms, columns, max_context_len is not None)
    for rule in (_q, _shapes, _lengths, _sizes, _table, _schedule):
        faults.extend(rule(inputs))
    return sorted(faults, key=lambda fault: _ORDER.index(fault.argument))


def _integer(value: object) -> int | None:
    if isinstance(value, bool | np.bool_):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]  # what is no integer gives None
    except TypeError:
        return None


def _array_faults(name: str, value: object) -> Iterator[Fault]:
    dtype, axes, layout = _ARRAYS[name]
    expected = f"a numpy array {layout}, dtype {np.dtype(dtype)}"
    if not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray):
        yield Fault(name, f"type {type(value).__name__}", expected)
        return
    if value.dtype != np.dtype(dtype):
        yield Fault(name, f"dtype {value.dtype}", expected)
    if value.ndim != axes:
        yield Fault(name, f"shape {list(value.shape)}", expected)


def _q(inputs: _Inputs) -> Iterator[Fault]:
    if "q" not in inputs.shapes:
        return
    batch, next_n, heads, dim = inputs.shapes["q"]
    n = next_n * heads
    if batch < 1:
        yield Fault("q", f"B = {batch}", "at least one sequence")
    if heads % 4 != 0:
        yield Fault("q", f"H = {heads}", "H % 4 == 0: the heads take four partial sums in turn")
    if not 8 <= n <= 256:
        yield Fault("q", f"N = next_n*H = {n}", "N in 8..256")
    elif n % 8 != 0:
        yield Fault("q", f"N = next_n*H = {n}", "N % 8 == 0")
    if dim not in HEAD_DIMS:
        yield Fault("q", f"D = {dim}", "D one of " + ", ".join(map(str, HEAD_DIMS)))


def _shapes(inputs: _Inputs) -> Iterator[Fault]:
    """The shapes that q, page and num_sms settle."""
    wanted: dict[str, tuple[int | None, ...]] = {}
    if "q" in inputs.shapes:
        batch, next_n, heads, dim = inputs.shapes["q"]
        width = inputs.page * (dim + 4) if inputs.page is not None and dim in HEAD_DIMS else None
        wanted = {"kv_fused": (None, width), "weights": (batch * next_n, heads)}
        wanted |= {"block_table": (batch, None), "context_lens": (batch,)}
    wanted["schedule"] = (None if inputs.num_sms is None else inputs.num_sms + 1, 2)
    for name, shape in wanted.items():
        found = inputs.shapes.get(name)
        if found is not None and any(w is not None and w != f for w, f in zip(shape, found, strict=True)):
            text = ", ".join("any" if w is None else str(w) for w in shape)
            yield Fault(name, f"shape {list(found)}", f"{_ARRAYS[name][2]} = [{text}]")
    if inputs.shapes.get("kv_fused", (1,))[0] < 1:
        yield Fault("kv_fused", "no page", "at least one page")
    if inputs.shapes.get("block_table", (1, 1))[1] < 1:
        yield Fault("block_table", "no column", "at least one column")


def _first(bad: NDArray[np.bool_]) -> tuple[int, str]:
    """The first place of a fault, and a note on how many more there are."""
    places = np.flatnonzero(bad)
    return int(places[0]), f" (and {places.size - 1} more)" if places.size > 1 else ""


def _lengths(inputs: _Inputs) -> Iterator[Fault]:
    lengths = inputs.values.get("context_lens")
    if lengths is None:
        return
    if np.any(lengths < 0):
        row, more = _first(lengths < 0)
        yield Fault("context_lens", f"{lengths[row]} for sequence {row}{more}", "lengths of 0 or more")
    if inputs.columns is not None and np.any(lengths > inputs.columns):
        row, more = _first(lengths > inputs.columns)
        expected = f"at most max_context_len = {inputs.columns}"
        yield Fault("context_lens", f"{lengths[row]} for sequence {row}{more}", expected)


def _sizes(inputs: _Inputs) -> Iterator[Fault]:
    """The logits must stay below MOST_LOGITS elements; nothing of that size is allocated to find out."""
    columns = inputs.columns
    if not inputs.columns_given and inputs.lengths is not None:
        columns = int(inputs.lengths.max())
    if columns is None or "q" not in inputs.shapes:
        return
    rows = inputs.shapes["q"][0] * inputs.shapes["q"][1]
    if rows * aligned_columns(columns) > MOST_LOGITS:
        name = "max_context_len" if inputs.columns_given else "context_lens"
        value = f"{columns} columns for {rows} rows"
        yield Fault(
            name, value, f"at most {MOST_LOGITS} logits, rows rounded up to {sched.SPLIT_TOKENS} columns"
        )


def _table(inputs: _Inputs) -> Iterator[Fault]:
    lengths, page, width = inputs.lengths, inputs.page, inputs.shapes.get("block_table", (0, 0))[1]
    if lengths is None or page is None or width < 1:
        return
    needed = -(-lengths // page)
    if np.any(needed > width):
        row, more = _first(needed > width)
        expected = f"{needed[row]} for the {lengths[row]} tokens of sequence {row} in pages of {page}{more}"
        yield Fault("block_table", f"{width} columns", f"at least {expected}")
    table, pool = inputs.values.get("block_table"), inputs.shapes.get("kv_fused", (0,))[0]
    if table is None or pool < 1 or table.shape[0] != lengths.size:
        return
    bad = (np.arange(width) < needed[:, None]) & ((table < 0) | (table >= pool))
    if np.any(bad):
        at, more = _first(bad.reshape(-1))
        value = f"page id {table.reshape(-1)[at]} at [{at // width}, {at % width}]{more}"
        yield Fault("block_table", value, f"page ids in 0..{pool - 1} where a sequence has tokens")


_SCHEDULE_RULES = {
    "shape": "entries (row, split), one more than CTAs",
    "bounds": "entries in the batch",
    "stale": "entries at splits the rows have (of 256 tokens)",
    "no_termination": "ranges whose end the CTA meets",
    "missing": "every split executed",
    "duplicate": "every split executed once",
}


def _schedule(inputs: _Inputs) -> Iterator[Fault]:
    """The schedule over the lengths; one fault for each kind, with the first place."""
    table, lengths = inputs.values.get("schedule"), inputs.lengths
    if table is None or lengths is None or inputs.num_sms is None or table.shape != (inputs.num_sms + 1, 2):
        return
    if "q" in inputs.shapes and inputs.shapes["q"][0] != lengths.size:
        return
    found = sched.check(table, lengths)
    for kind, expected in _SCHEDULE_RULES.items():
        same = [fault for fault in found if fault.kind == kind]
        if same:
            more = f" (and {len(same) - 1} more)" if len(same) > 1 else ""
            yield Fault("schedule", f"{kind}: {same[0]}{more}", expected)
