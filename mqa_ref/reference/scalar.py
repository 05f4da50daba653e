"""The slow and obvious twin of ``logits`` and ``exact``: one logit at a time, plain ints and Fractions, its own page
look-up and order of loops.

It shares no computation with the vectorised reference: arithmetic comes from ``numerics.scalar``, bytes straight from
the page.
"""

from __future__ import annotations

import math
from fractions import Fraction

from mqa_ref.errors import Fault, InputError
from mqa_ref.flow import Flow
from mqa_ref.numerics import E4M3FN, FORMATS, FP32, MachineModel, scalar
from mqa_ref.problem import Problem
from mqa_ref.reference.epilogue import Generation, checked_request
from mqa_ref.reference.orders import SumOrder, checked_order
from mqa_ref.reference.orders_scalar import sm90_logit, sm100_logit

_HALF = 0x3F000000


def scalar_logit(
    problem: Problem,
    flow: Flow,
    machine: str | MachineModel,
    row: int,
    col: int,
    generation: Generation = "folded",
    order: SumOrder = "four_chains",
) -> int:
    """The bit pattern of logit (``row``, ``col``), 0 where the column is not valid for the row.

    ``row`` in 0..rows-1, ``col`` in 0..max_context_len-1. Raises InputError for a place outside, and otherwise as
    ``reference_logits`` does. Standing as there.
    """
    model = checked_request(machine, generation)
    checked_order(order, flow)
    sequence, token = _sequence_and_token(problem, row, col)
    if col > int(problem.context_lens[sequence]) - problem.next_n + token:
        return 0
    key, scale = key_and_scale(problem, sequence, col)
    dots = []
    for head in range(problem.heads):
        query = list(problem.q[sequence, token, head].tobytes())
        dots.append(scalar.mma(key, query, machine=model, acc=flow.acc))
    weights = [int.from_bytes(weight.tobytes(), "little") for weight in problem.weights[row]]
    if flow.epi == "fp32":
        if order == "four_chains":
            logit = _fp32_logit(dots, weights, scale, generation)
        else:
            add = sm90_logit if order == "deepgemm_sm90" else sm100_logit
            positive = [_relu(dot, generation) for dot in dots]
            logit = add(positive, weights, scale, generation == "folded")
        if flow.out == "fp32":
            return logit
        return scalar.cvt_f16_f32(logit) if flow.out == "fp16" else scalar.cvt_bf16_f32(logit)
    if flow.acc == "fp32":
        dots = [scalar.cvt_f16_f32(dot) for dot in dots]
    logit = _fp16_logit(dots, weights, scale)
    if flow.out == "fp16":
        return logit
    logit = scalar.cvt_f32_f16(logit)
    return logit if flow.out == "fp32" else scalar.cvt_bf16_f32(logit)


def scalar_exact_logit(problem: Problem, row: int, col: int, out: str = "fp32") -> int:
    """The bit pattern of the true logit (``row``, ``col``) rounded once to ``out``, as ``exact.exact_logits`` defines
    it; 0 where the column is not valid. Raises InputError for a place outside. Standing: proof."""
    sequence, token = _sequence_and_token(problem, row, col)
    if col > int(problem.context_lens[sequence]) - problem.next_n + token:
        return 0
    key, scale = key_and_scale(problem, sequence, col)
    fmt = FORMATS[out]
    total: Fraction | float = Fraction(0)
    for head in range(problem.heads):
        query = problem.q[sequence, token, head].tolist()
        weight = FP32.decode(int.from_bytes(problem.weights[row, head].tobytes(), "little"))
        if any(E4M3FN.is_nan(code) for code in (*query, *key)):
            return fmt.canonical_nan
        dot = sum((E4M3FN.value(x) * E4M3FN.value(y) for x, y in zip(query, key, strict=True)), Fraction(0))
        total = _sum(total, _product(max(dot, Fraction(0)), weight))
    product = _product(total, FP32.decode(scale))
    if isinstance(product, float):
        return fmt.canonical_nan if math.isnan(product) else fmt.inf(1 if product < 0 else 0)
    if product == 0:
        return fmt.zero(FP32.sign(scale) ^ (1 if total < 0 else 0))
    return fmt.encode(product)


def _product(x: Fraction | float, y: Fraction | float) -> Fraction | float:
    """Exact, or by the rules of floats where one is inf or NaN (0 * inf is NaN)."""
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return x * y
    signs = [(x > 0) - (x < 0), (y > 0) - (y < 0)]  # 0 for a NaN, too
    if 0 in signs:
        return math.nan
    return math.inf * signs[0] * signs[1]


def _sum(x: Fraction | float, y: Fraction | float) -> Fraction | float:
    """Exact, or by the rules of floats where one is inf or NaN; a finite number does not matter there."""
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return x + y
    return (x if isinstance(x, float) else 0.0) + (y if isinstance(y, float) else 0.0)


def _fp32_logit(dots: list[int], weights: list[int], scale: int, generation: Generation) -> int:
    s0x = s0y = s1x = s1y = 0
    for h in range(0, len(dots), 4):
        x = [_relu(dot, generation) for dot in dots[h : h + 4]]
        s0x = scalar.fma_f32(x[0], weights[h], s0x)
        s0y = scalar.fma_f32(x[1], weights[h + 1], s0y)
        s1x = scalar.fma_f32(x[2], weights[h + 2], s1x)
        s1y = scalar.fma_f32(x[3], weights[h + 3], s1y)
    total = scalar.add_f32(scalar.add_f32(scalar.add_f32(s0x, s0y), s1x), s1y)
    if generation == "folded":
        total = scalar.mul_f32(total, _HALF)
    return scalar.mul_f32(total, scale)


def _relu(dot: int, generation: Generation) -> int:
    if generation == "folded":
        return scalar.add_f32(dot, scalar.abs_f32(dot))
    return scalar.max_nan_f32(dot, 0) if generation == "max_nan" else scalar.max_f32(dot, 0)


def _fp16_logit(dots: list[int], weights: list[int], scale: int) -> int:
    """From fp16 dots, fp32 weights and scale."""
    x = [scalar.max_f16(dot, 0) for dot in dots]
    w = [scalar.cvt_f16_f32(weight) for weight in weights]
    ps0, ps1 = (0, 0), (0, 0)  # packed pairs: low and high half
    for h in range(0, len(dots), 4):
        ps0 = scalar.fma_f16(x[h], w[h], ps0[0]), scalar.fma_f16(x[h + 1], w[h + 1], ps0[1])
        ps1 = scalar.fma_f16(x[h + 2], w[h + 2], ps1[0]), scalar.fma_f16(x[h + 3], w[h + 3], ps1[1])
    low, high = scalar.add_f16(ps0[0], ps1[0]), scalar.add_f16(ps0[1], ps1[1])
    return scalar.mul_f16(scalar.add_f16(low, high), scalar.cvt_f16_f32(scale))


def _sequence_and_token(problem: Problem, row: int, col: int) -> tuple[int, int]:
    faults = [
        Fault(name, str(value), f"0..{end - 1}")
        for name, value, end in (("row", row, problem.rows), ("col", col, problem.max_context_len))
        if not 0 <= value < end
    ]
    if faults:
        raise InputError(faults)
    return divmod(row, problem.next_n)


def key_and_scale(problem: Problem, sequence: int, col: int) -> tuple[list[int], int]:
    """The codes and the scale's bit pattern of the token at column ``col``, read from the bytes of its page."""
    page = problem.kv_fused[int(problem.block_table[sequence, col // problem.page])].tobytes()
    slot = col % problem.page
    key = page[slot * problem.head_dim : (slot + 1) * problem.head_dim]
    at = problem.page * problem.head_dim + 4 * slot
    return list(key), int.from_bytes(page[at : at + 4], "little")
