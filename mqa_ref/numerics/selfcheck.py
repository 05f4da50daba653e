"""The oracle against itself: the vectorised operations against their scalar twins, over the same operands.

Agreement of two programs written apart is what makes a verdict worth reading; a difference means that no verdict
is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mqa_ref.errors import Fault, InputError
from mqa_ref.numerics import conversions, ops16, ops32, samples, scalar, tensorcore
from mqa_ref.numerics.formats import FP16, FP32, Format
from mqa_ref.numerics.machines import ACCUMULATORS, MACHINES, MachineModel


class Count(NamedTuple):
    """How many results of an operation were compared and how many of them differed."""

    tried: int
    differing: int


class Operation(NamedTuple):
    """An elementwise operation: its operand format, how many operands it takes and its two implementations."""

    operands: Format
    arity: int
    vector: Callable[..., NDArray[Any]]
    scalar: Callable[..., int]


OPERATIONS: dict[str, Operation] = {
    "fma_f32": Operation(FP32, 3, ops32.fma_f32, scalar.fma_f32),
    "add_f32": Operation(FP32, 2, ops32.add_f32, scalar.add_f32),
    "mul_f32": Operation(FP32, 2, ops32.mul_f32, scalar.mul_f32),
    "abs_f32": Operation(FP32, 1, ops32.abs_f32, scalar.abs_f32),
    "max_f32": Operation(FP32, 2, ops32.max_f32, scalar.max_f32),
    "max_nan_f32": Operation(FP32, 2, ops32.max_nan_f32, scalar.max_nan_f32),
    "fma_f16": Operation(FP16, 3, ops16.fma_f16, scalar.fma_f16),
    "add_f16": Operation(FP16, 2, ops16.add_f16, scalar.add_f16),
    "mul_f16": Operation(FP16, 2, ops16.mul_f16, scalar.mul_f16),
    "max_f16": Operation(FP16, 2, ops16.max_f16, scalar.max_f16),
    "cvt_f16_f32": Operation(FP32, 1, conversions.cvt_f16_f32, scalar.cvt_f16_f32),
    "cvt_bf16_f32": Operation(FP32, 1, conversions.cvt_bf16_f32, scalar.cvt_bf16_f32),
    "cvt_f32_f16": Operation(FP16, 1, conversions.cvt_f32_f16, scalar.cvt_f32_f16),
}
"""The elementwise operations by name."""

_MMA_SHAPE = (4, 6, 64)


def run(*, seed: int = 0, count: int = 2000) -> dict[str, Count]:
    """Compares the twins and counts differing results per operation, bit for bit.

    Each elementwise operation gets every tuple of special codes (every 11th of the triples) and ``count`` seeded
    random operand tuples; each machine and accumulator format (named "mma/sm100/fp32" and so on) about ``count`` /
    20 output elements of K = 64, over four kinds of e4m3fn codes, with and without initial accumulators. Takes a
    few seconds at the default. InputError for a negative ``seed`` or a ``count`` below 1.
    """
    faults = [Fault("seed", str(seed), "an integer from 0 on")] if seed < 0 else []
    faults += [Fault("count", str(count), "an integer from 1 on")] if count < 1 else []
    if faults:
        raise InputError(faults)
    source = samples.Source(seed)
    counts = {name: check_operation(operation, source, count) for name, operation in OPERATIONS.items()}
    rounds = max(1, count // (20 * _MMA_SHAPE[0] * _MMA_SHAPE[1] * len(samples.E4M3_KINDS)))
    for machine in MACHINES.values():
        for acc in ACCUMULATORS:
            counts[f"mma/{machine.name}/{acc}"] = check_mma(machine, acc, source, rounds)
    return counts


def check_operation(operation: Operation, source: samples.Source, count: int) -> Count:
    """Counts the differing results of one elementwise operation over crossed specials and ``count`` random
    tuples."""
    crossed = samples.crossed(operation.operands, operation.arity)
    if operation.arity == 3:
        crossed = tuple(codes[::11] for codes in crossed)
    drawn = tuple(source.mixed(operation.operands, count) for _ in crossed)
    operands = tuple(np.concatenate(pair) for pair in zip(crossed, drawn, strict=True))
    fast = operation.vector(*operands)
    # One by one, too: a single element takes the fast way or the careful one by itself, not by its neighbours.
    alone = np.concatenate(
        [operation.vector(*(codes[i : i + 1] for codes in operands)) for i in range(fast.size)]
    )
    slow = [operation.scalar(*row) for row in zip(*(codes.tolist() for codes in operands), strict=True)]
    differing = np.count_nonzero((fast != np.array(slow)) | (alone != np.array(slow)))
    return Count(fast.size, int(differing))


def check_mma(machine: MachineModel, acc: str, source: samples.Source, rounds: int) -> Count:
    """Counts the differing output elements of one machine and accumulator format, ``rounds`` times over four kinds
    of codes."""
    m, n, k = _MMA_SHAPE
    fmt = ACCUMULATORS[acc]
    tried = differing = 0
    for number in range(rounds):
        for index, kind in enumerate(samples.E4M3_KINDS):
            a, b = samples.e4m3_codes(source, kind, m, k), samples.e4m3_codes(source, kind, n, k)
            c = source.mixed(fmt, m * n).reshape(m, n) if (number + index) % 2 else None
            fast = tensorcore.mma(a, b, machine=machine, acc="fp16" if acc == "fp16" else "fp32", c=c)
            for i, j in np.ndindex(m, n):
                start = 0 if c is None else int(c[i, j])
                slow = scalar.mma(a[i].tolist(), b[j].tolist(), start, machine=machine, acc=acc)
                tried += 1
                differing += int(fast[i, j]) != slow
    return Count(tried, differing)
