"""The slow and obvious twin of ``logits``: one logit at a time, plain ints, its own page look-up and order of loops.

It shares no computation with the vectorised reference: arithmetic comes from ``numerics.scalar``, bytes straight from
the page.
"""

from __future__ import annotations

from mqa_ref.errors import Fault, InputError
from mqa_ref.flow import Flow
from mqa_ref.numerics import MachineModel, scalar
from mqa_ref.problem import Problem
from mqa_ref.reference.epilogue import Generation, checked_request

_HALF = 0x3F000000


def scalar_logit(
    problem: Problem,
    flow: Flow,
    machine: str | MachineModel,
    row: int,
    col: int,
    generation: Generation = "folded",
) -> int:
    """The bit pattern of logit (``row``, ``col``), 0 where the column is not valid for the row.

    ``row`` in 0..rows-1, ``col`` in 0..max_context_len-1. Raises InputError for a place outside, and otherwise as
    ``reference_logits`` does. Standing as there.
    """
    model = checked_request(flow, machine, generation)
    faults = [
        Fault(name, str(value), f"0..{end - 1}")
        for name, value, end in (("row", row, problem.rows), ("col", col, problem.max_context_len))
        if not 0 <= value < end
    ]
    if faults:
        raise InputError(faults)
    sequence, token = divmod(row, problem.next_n)
    if col > int(problem.context_lens[sequence]) - problem.next_n + token:
        return 0
    key, scale = _key_and_scale(problem, sequence, col)
    sums = {"s0x": 0, "s0y": 0, "s1x": 0, "s1y": 0}
    for head in range(problem.heads):
        query = list(problem.q[sequence, token, head].tobytes())
        dot = scalar.mma(key, query, machine=model, acc=flow.acc)
        positive = scalar.max_f32(dot, 0) if generation == "max" else scalar.add_f32(dot, scalar.abs_f32(dot))
        name = ("s0x", "s0y", "s1x", "s1y")[head % 4]
        weight = int.from_bytes(problem.weights[row, head].tobytes(), "little")
        sums[name] = scalar.fma_f32(positive, weight, sums[name])
    total = scalar.add_f32(scalar.add_f32(scalar.add_f32(sums["s0x"], sums["s0y"]), sums["s1x"]), sums["s1y"])
    if generation == "folded":
        total = scalar.mul_f32(total, _HALF)
    return scalar.mul_f32(total, scale)


def _key_and_scale(problem: Problem, sequence: int, col: int) -> tuple[list[int], int]:
    """The codes and the scale's bit pattern of the token at column ``col``, read from the bytes of its page."""
    page = problem.kv_fused[int(problem.block_table[sequence, col // problem.page])].tobytes()
    slot = col % problem.page
    key = page[slot * problem.head_dim : (slot + 1) * problem.head_dim]
    at = problem.page * problem.head_dim + 4 * slot
    return list(key), int.from_bytes(page[at : at + 4], "little")
