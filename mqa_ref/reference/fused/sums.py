"""Runs of tokens through the fused program: from codes to the sums over the heads, as bit patterns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.flow import Flow
from mqa_ref.numerics import E4M3_EXPONENT, E4M3_VALUE, E4M3FN, MachineModel, cvt_f16_f32, is_nan, is_zero
from mqa_ref.numerics.machines import STEP_K
from mqa_ref.reference.epilogue import Generation
from mqa_ref.reference.fused import machine_code
from mqa_ref.reference.fused.block import HEADS, MAX_DIM, TOKENS, Shape
from mqa_ref.reference.runs import Run

F32 = NDArray[np.float32]

_MAX_FRACTION_BITS = 25
"""Up to it 16 cut terms, each below 2^(F+2) * 0.88, fit in int32."""
_MIN_EXACT_FRACTION_BITS = 24
_CODES = np.arange(256, dtype=np.uint8)
_NAN = is_nan(_CODES, E4M3FN)
_VALUES = np.where(_NAN, 0.0, E4M3_VALUE).astype(np.float32)
_POWERS = np.where(_NAN | is_zero(_CODES, E4M3FN), 0.0, 2.0 ** np.where(_NAN, 0, E4M3_EXPONENT)).astype(
    np.float32
)
_NANS = np.where(_NAN, np.nan, 0.0).astype(np.float32)


def serves(model: MachineModel) -> bool:
    """Whether the fused program can follow a machine on this computer."""
    bits = model.fraction_bits
    return (
        bits is not None
        and bits <= _MAX_FRACTION_BITS
        and model.final("fp32").rounding == "rz"
        and machine_code.supported()
    )


@dataclass(frozen=True)
class Queries:
    """What the runs of one sequence share: the program's arguments of that name, and the numbers of its shape."""

    values: F32
    powers: F32
    norms: F32
    nans: F32
    weights: F32
    next_n: int


def prepare(run: Run, flow: Flow) -> Queries:
    """The queries and weights of the sequence that ``run`` belongs to."""
    values = _VALUES.take(run.queries)
    rows, dim = values.shape
    squares = np.square(values, dtype=np.float64).reshape(rows, dim // STEP_K, STEP_K).sum(axis=2)
    norms = squares.reshape(rows // HEADS, HEADS, -1).max(axis=1).astype(np.float32)
    weights = run.weights.view(np.float32)
    if flow.epi == "fp16":
        weights = cvt_f16_f32(run.weights).view(np.float16).astype(np.float32)
    nans = np.where(_NAN.take(run.queries).any(axis=1), np.nan, 0.0).astype(np.float32)
    weights = np.ascontiguousarray(weights.reshape(-1))
    return Queries(values, _POWERS.take(run.queries), norms, nans, weights, len(run.weights))


def sums(
    run: Run, queries: Queries, flow: Flow, model: MachineModel, generation: Generation
) -> tuple[NDArray[Any], int]:
    """The sums over the heads, codes of the epilogue's format [next_n, tokens], and how many blocks of 4 heads and 16
    tokens had to be cut term by term. NaN is not canonical."""
    assert model.fraction_bits is not None
    tokens, dim = run.keys.shape
    blocks = -(-tokens // TOKENS)
    keys, nans = run.keys, np.zeros(blocks * TOKENS, np.float32)
    nans[:tokens][_NAN.take(keys).any(axis=1)] = np.nan
    if tokens % TOKENS or not keys.flags.c_contiguous:
        keys = np.zeros((blocks * TOKENS, dim), np.uint8)
        keys[:tokens] = run.keys
    out = np.empty((queries.next_n, blocks * TOKENS), np.float32)
    scratch, cut = np.empty(2 * MAX_DIM * TOKENS + 4, np.float32), np.zeros(1, np.int64)
    shape = Shape(flow.acc, flow.epi, generation if flow.epi == "fp32" else "max")
    groups = len(queries.values) // queries.next_n // HEADS
    machine_code.function(shape)(
        keys.ctypes.data,
        nans.ctypes.data,
        blocks,
        dim // STEP_K,
        queries.values.ctypes.data,
        queries.powers.ctypes.data,
        queries.norms.ctypes.data,
        queries.nans.ctypes.data,
        queries.weights.ctypes.data,
        queries.next_n,
        groups,
        _VALUES.ctypes.data,
        model.fraction_bits << 23,
        -(1 << (52 - model.final(flow.acc).fraction_bits)),
        model.fraction_bits >= _MIN_EXACT_FRACTION_BITS and (flow.acc == "fp16" or model.final32 == "rz"),
        scratch.ctypes.data,
        out.ctypes.data,
        cut.ctypes.data,
    )
    total = out[:, :tokens]
    if flow.epi == "fp16":
        return np.ascontiguousarray(total.astype(np.float16)).view(np.uint16), int(cut[0])
    return np.ascontiguousarray(total).view(np.uint32), int(cut[0])
