"""The faults reported in the field (docs/peers.md), each put back: what fuzzing must find.

Each is as near to its report as a launch allows: an edit of the kernel's PTX; a kernel that takes its inputs for other
ones (``inputs``); one whose result is spoiled (``result``); a builder of schedules that is wrong; a reference that is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mqa_ref.findings import Finding
from mqa_ref.flow import Flow
from mqa_ref.launch import Launch
from mqa_ref.problem import Problem
from mqa_ref.schedule import Form, build
from mqa_ref.verification.runner import Launcher

Inputs = Callable[[Problem, Mapping[str, Any]], Problem]
Result = Callable[[Problem, Launch], Launch]
Builder = Callable[[ArrayLike, int, Form], NDArray[np.int32]]


@dataclass(frozen=True)
class Bug:
    """``number``: that of docs/peers.md. ``what``: the fault as it is put in. One of the others is set; ``generation``
    is another ReLU of the reference."""

    number: int
    what: str
    ptx: Callable[[str], str] | None = None
    inputs: Inputs | None = None
    result: Result | None = None
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
            told = launch(given, flow, options=options, edit_ptx=self.ptx or edit_ptx, **how)
            return told if self.result is None else self.result(problem, told)

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


def _odd_atoms(problem: Problem, launch: Launch) -> Launch:
    """Query tokens are taken in pairs; the odd one gets the logits of the one before it."""
    if problem.next_n % 2 == 0 or problem.next_n == 1:
        return launch
    logits = launch.logits.reshape(problem.batch, problem.next_n, -1).copy()
    logits[:, -1] = logits[:, -2]
    return replace(launch, logits=logits.reshape(launch.logits.shape))


def _whole_tiles(problem: Problem, _: Mapping[str, Any]) -> Problem:
    """Table entries are read for all pages of the last tile."""
    lengths = (-(-problem.context_lens // 128) * 128).astype(np.int32)
    return taken_for(problem, context_lens=lengths)


def _endless(problem: Problem, launch: Launch) -> Launch:
    """The walk ends where it meets its end exactly, and nowhere else."""
    if not any(fault.kind == "no_termination" for fault in problem.schedule_faults):
        return launch
    finding = Finding("runaway", "error", "a walk that never meets its end")
    return replace(launch, findings=(*launch.findings, finding))


def _weights_lag(problem: Problem, _: Mapping[str, Any]) -> Problem:
    """A row without tokens does not advance the weights: the next row is given those of the empty one."""
    weights = problem.weights.reshape(problem.batch, problem.next_n, -1).copy()
    late = np.flatnonzero((problem.context_lens[1:] > 0) & (problem.context_lens[:-1] == 0)) + 1
    weights[late] = weights[late - 1]
    return taken_for(problem, weights=weights.reshape(problem.weights.shape))


def _short_result(problem: Problem, launch: Launch) -> Launch:
    """The result ends 256 columns early where a split is begun."""
    longest = int(problem.context_lens.max())
    written = launch.written.copy()
    if longest % 256:
        written[:, longest // 256 * 256 :] = False
    return replace(launch, written=written)


def _no_nan(problem: Problem, _: Mapping[str, Any]) -> Problem:
    """NaN codes count as 448."""
    pool, codes = problem.kv_fused.copy(), problem.page * problem.head_dim
    keys = pool[:, :codes]
    keys[(keys & 0x7F) == 0x7F] -= 1
    q = problem.q.copy()
    q[(q & 0x7F) == 0x7F] -= 1
    return taken_for(problem, kv_fused=pool, q=q)


def _interleaved(problem: Problem, _: Mapping[str, Any]) -> Problem:
    """A page is taken for tokens of D codes and a scale each."""
    pages, dim = problem.num_pages, problem.head_dim
    tokens = problem.kv_fused.reshape(pages, problem.page, dim + 4)
    parts = [tokens[:, :, :dim].reshape(pages, -1), tokens[:, :, dim:].reshape(pages, -1)]
    return taken_for(problem, kv_fused=np.concatenate(parts, axis=1))


def _first_token(problem: Problem, _: Mapping[str, Any]) -> Problem:
    """Only the first token of a page is read, for all of them."""
    keys = np.repeat(problem.key_codes[:, :1], problem.page, axis=1).reshape(problem.num_pages, -1)
    scales = np.repeat(problem.scale_bits[:, :1], problem.page, axis=1).view(np.uint8)
    return taken_for(problem, kv_fused=np.concatenate([keys, scales], axis=1))


def _signed_codes(problem: Problem, _: Mapping[str, Any]) -> Problem:
    """Codes from 0x80 on are taken for two's complement: the magnitude is that of the negated byte."""
    q = problem.q.copy()
    high = q >= 0x80
    q[high] = 0x80 | ((0x100 - q[high].astype(np.int32)) & 0x7F).astype(np.uint8)
    q[(q & 0x7F) == 0x7F] -= 1
    return taken_for(problem, q=q)


def _wrapped_pages(problem: Problem, _: Mapping[str, Any]) -> Problem:
    """Page number times page bytes is kept in 15 bits, as the report's was in 31: a pool of 2 GiB is not launched."""
    last = max(1, (1 << 15) // problem.kv_fused.shape[1])
    return taken_for(problem, block_table=np.where(problem.block_table >= 0, problem.block_table % last, -1))


def _odd_register_weights(problem: Problem, options: Mapping[str, Any]) -> Problem:
    """The weights after those in registers begin two heads early."""
    kept = int(options.get("max_w_in_reg", 0))
    if not 0 < kept < problem.heads:
        return problem
    weights = problem.weights.copy()
    weights[:, kept:] = np.roll(problem.weights, 2, axis=1)[:, kept:]
    return taken_for(problem, weights=weights)


_NEVER_WAITS = "setp.eq.u32 P1, 0, 0;"
BUGS: Mapping[str, Bug] = {
    "peer-01": Bug(1, "context_lens[B] is read", ptx=_reads_past_lengths),
    "peer-02": Bug(2, "the builder fails for a batch without tokens", builder=_no_zero_batches),
    "peer-03": Bug(3, "the builder sees 8191 rows", builder=_first_8191_rows),
    "peer-04": Bug(4, "odd query tokens are taken in pairs", result=_odd_atoms),
    "peer-05": Bug(
        5, "a wait for a barrier is left out", ptx=_once(r"mbarrier\.try_wait[^;]*;", _NEVER_WAITS)
    ),
    "peer-06": Bug(6, "table entries of the whole last tile are read", inputs=_whole_tiles),
    "peer-07": Bug(7, "the walk ends by inequality alone", result=_endless),
    "peer-08": Bug(8, "a row without tokens leaves its weights to the next", inputs=_weights_lag),
    "peer-09": Bug(9, "the result is 256 columns short", result=_short_result),
    "peer-10": Bug(10, "no ReLU before the sum", ptx=lambda text: text.replace("abs.f32", "mov.b32")),
    "peer-11": Bug(11, "the reference has the ReLU of the other generation", generation="max"),
    "peer-13": Bug(13, "NaN codes count as 448", inputs=_no_nan),
    "peer-14": Bug(14, "scales are taken for interleaved", inputs=_interleaved),
    "peer-15": Bug(15, "only the first token of a page is read", inputs=_first_token),
    "peer-16": Bug(16, "codes of 0x80 and more are sign-extended", inputs=_signed_codes),
    "peer-17": Bug(17, "page offsets wrap at 2^15", inputs=_wrapped_pages),
    "peer-19": Bug(19, "the weights after those in registers begin early", inputs=_odd_register_weights),
    "peer-20": Bug(20, "lengths are read before the wait", ptx=_once(r"griddepcontrol\.wait;", "")),
}
"""By name. 12 (H = 10) and an odd ``max_w_in_reg`` are refused before a launch; 18 (padded pools) cannot be said to a
kernel of this contract, whose page stride is a constant."""
