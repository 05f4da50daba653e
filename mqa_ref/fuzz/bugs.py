"""The faults reported in the field (docs/peers.md), each put back: what fuzzing must find.

Each is as near to its report as a launch allows: an edit of the builtin kernel's source, or of its PTX; a builder of
schedules that is wrong; a reference that is; and, where no code of the kernel can have the fault, a kernel that takes
its inputs for other ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mqa_ref.flow import Flow
from mqa_ref.fuzz.edits import Fault
from mqa_ref.launch import Launch
from mqa_ref.problem import Problem
from mqa_ref.schedule import Form, build
from mqa_ref.verification.runner import Launcher

Inputs = Callable[[Problem, Mapping[str, Any]], Problem]
Builder = Callable[[ArrayLike, int, Form], NDArray[np.int32]]


@dataclass(frozen=True)
class Bug:
    """``number``: that of docs/peers.md. ``what``: the fault as it is put in. One of the others is set; ``generation``
    is another ReLU of the reference."""

    number: int
    what: str
    source: tuple[Fault, ...] = ()
    ptx: Callable[[str], str] | None = None
    inputs: Inputs | None = None
    builder: Builder = build
    generation: str = ""

    def wrap(self, launch: Launcher) -> Launcher:
        """The launcher of the kernel with the fault in it."""

        def broken(
            problem: Problem,
            flow: Flow,
            *,
            options: Mapping[str, Any] | None = None,
            edit_ptx: Callable[[str], str] | None = None,
            **how: Any,
        ) -> Launch:
            given = problem if self.inputs is None else self.inputs(problem, options or {})
            return launch(given, flow, options=options, edit_ptx=self.ptx or edit_ptx, **how)

        return broken


def taken_for(problem: Problem, **fields: Any) -> Problem:
    """A problem with other arrays or numbers and no validation, as a kernel that reads them wrongly would have it."""
    other = object.__new__(Problem)
    for name in Problem.__dataclass_fields__:
        object.__setattr__(other, name, fields.get(name, getattr(problem, name)))
    return other


def _once(pattern: str, replacement: str) -> Callable[[str], str]:
    """An edit of the first place that matches; without one the PTX stays as it is."""
    return lambda text: re.sub(pattern, replacement, text, count=1)


def _reads_past_lengths(text: str) -> str:
    """Every CTA reads ``context_lens[batch]`` first."""
    lengths = re.search(r"ld\.param\.b64\s+(%rd\d+), \[\w+_param_10\]", text)
    batch = re.search(r"ld\.param\.b32\s+(%r\d+), \[\w+_param_13\]", text)
    assert lengths is not None
    assert batch is not None
    read = (
        "{ .reg .b64 A; .reg .b64 O; .reg .b32 V; "
        f"mul.wide.s32 O, {batch[1]}, 4; add.s64 A, {lengths[1]}, O; ld.global.b32 V, [A]; }}"
    )
    anchor = re.search(r"griddepcontrol\.wait;|bar\.sync\s+0;", text)
    assert anchor is not None
    return text[: anchor.end()] + "\n" + read + text[anchor.end() :]


def _no_zero_batches(lengths: ArrayLike, num_sms: int, form: Form) -> NDArray[np.int32]:
    """A warp-wide sum that comes to nothing leaves the last entry unwritten."""
    made = build(lengths, num_sms, form)
    if not np.any(np.asarray(lengths)):
        made[-1] = (len(np.asarray(lengths)), 1)
    return made


def _first_8191_rows(lengths: ArrayLike, num_sms: int, form: Form) -> NDArray[np.int32]:
    """Shared memory for 8191 rows; those after it are not seen."""
    seen = np.asarray(lengths).copy()
    seen[8191:] = 0
    return build(seen, num_sms, form)


def _signed_codes(problem: Problem, _: Mapping[str, Any]) -> Problem:
    """Codes from 0x80 on are taken for two's complement: the magnitude is that of the negated byte."""
    q = problem.q.copy()
    high = q >= 0x80
    q[high] = 0x80 | ((0x100 - q[high].astype(np.int32)) & 0x7F).astype(np.uint8)
    q[(q & 0x7F) == 0x7F] -= 1
    return taken_for(problem, q=q)


_PER_ROW = "_issue(loads.weights, (q_slot.index,), row, barrier)"
# fmt: off
SOURCE_FAULTS: Mapping[int, tuple[Fault, ...]] = {
    4: (Fault("query tokens are taken in pairs; an odd last one gets the scores of the one before it", "score",
        "source[(None, None, None, 0, part)]",
        "source[(None, None, None, 0, part - (config.num_epi_subtiles"
        " if 1 < config.next_n == t + 1 and t % 2 == 0 else 0))]"),),
    6: (Fault("table entries are read for all pages of the last tile", "roles",
        "(length + (config.page - 1)) >> (config.page.bit_length() - 1)",
        "((length + (config.tile_tokens - 1)) >> 7) * pages_per_tile"),),
    7: (Fault("the walk ends where it meets its end exactly, and nowhere else", "walk",
        "min(last_row, work.batch - 1)",
        "min(last_row, work.batch - 1) if (end_split == 0) | ((first_row == end_row) & (first_split == end_split))"
        " | (end_split < ((work.context_lens[min(end_row, work.batch - 1)] + ((1 << SPLIT_BITS) - 1)) >> SPLIT_BITS))"
        " else Int32(1 << 30)"),),
    8: (Fault("a row without tokens does not advance the weights: the next row is given its own", "roles",
        _PER_ROW,
        _PER_ROW.replace("row,", "row - 1 if (row > walk.first_row) & (work.context_lens[max(row - 1, 0)] == 0)"
        " else row,")),),
    9: (Fault("the result is taken to be 256 columns narrower", "score",
        "columns = logits.shape[1]", "columns = logits.shape[1] - 256"),),
    13: (Fault("the ReLU takes the greater of a score and 0, which drops a NaN", "epilogue",
        "    doubled = cute.arch.add_packed_f32x2(dots, tuple(cute.math.absf(dot) for dot in dots), rnd=\"rn\")",
        "    dots = tuple(_asm(Float32, \"max.f32 $0, $1, $2;\", \"=f,f,f\", dot, Float32(0.0)) for dot in dots)\n"
        "    doubled = cute.arch.add_packed_f32x2(dots, dots, rnd=\"rn\")"),),
    14: (Fault("the scales of a page are taken to begin after the first token's codes, as interleaved ones do", "sm100",
        "pages + page * head_dim, scale_bytes", "pages + head_dim, scale_bytes"),),
    15: (Fault("only the first token of a page is read: all have its scale", "score",
        "scales[(token, stage)]", "scales[(token // config.page * config.page, stage)]", 2),),
    17: (Fault("the number of a page loses its high bits, as the product with 2^31 and more did", "roles",
        "page_id = block_table[(row, entry)]", "page_id = block_table[(row, entry)] & 3"),),
    19: (Fault("the weights after those in registers begin two heads early", "score",
        "[weights[(t * config.heads + head + j, q_slot.index)] for j in range(4)]",
        "[weights[(t * config.heads + head + j - (2 if config.weights_in_registers else 0), q_slot.index)]"
        " for j in range(4)]"),),
}
# fmt: on
"""Faults in the builtin kernel's source, by number of the report."""


def _in_source(number: int) -> Bug:
    faults = SOURCE_FAULTS[number]
    return Bug(number, faults[0].what, source=faults)


_NEVER_WAITS = "setp.eq.u32 P1, 0, 0;"
BUGS: Mapping[str, Bug] = {
    "peer-01": Bug(1, "context_lens[B] is read", ptx=_reads_past_lengths),
    "peer-02": Bug(2, "the builder fails for a batch without tokens", builder=_no_zero_batches),
    "peer-03": Bug(3, "the builder sees 8191 rows", builder=_first_8191_rows),
    "peer-04": _in_source(4),
    "peer-05": Bug(
        5, "a wait for a barrier is left out", ptx=_once(r"mbarrier\.try_wait[^;]*;", _NEVER_WAITS)
    ),
    "peer-06": _in_source(6),
    "peer-07": _in_source(7),
    "peer-08": _in_source(8),
    "peer-09": _in_source(9),
    "peer-10": Bug(10, "no ReLU before the sum", ptx=lambda text: text.replace("abs.f32", "mov.b32")),
    "peer-11": Bug(11, "the reference has the ReLU of the other generation", generation="max"),
    "peer-13": _in_source(13),
    "peer-14": _in_source(14),
    "peer-15": _in_source(15),
    "peer-16": Bug(16, "codes of 0x80 and more are sign-extended", inputs=_signed_codes),
    "peer-17": _in_source(17),
    "peer-19": _in_source(19),
    "peer-20": Bug(20, "lengths are read before the wait", ptx=_once(r"griddepcontrol\.wait;", "")),
}
"""By name. 12 (H = 10) and an odd ``max_w_in_reg`` are refused before a launch; 18 (padded pools) cannot be said to a
kernel of this contract, whose page stride is a constant."""
