"""The tensor core on arrays: dot products of e4m3fn codes as chains of K = 32 steps, bit for bit as a machine gives
them.

The rules are in ``machines``; ``scalar.mma`` is the slow twin. Three ways lead to the same bits:

*Nothing is cut* (proof; the fast path). A product of two e4m3fn numbers is a multiple of 2**-18, so a step cuts
nothing when the largest exponent E is at most F - 18 and the accumulator is a multiple of 2**-18 too. A product of
two normal numbers has |p| >= 2**E', one with a subnormal factor has E' <= -6 + 8 = 2, and an accumulator has |c| >=
2**E' or E' <= -14. So for F >= 20 the bound S = |c| + sum |a*b| < 2**(F-17) is enough. Then the step is round(c +
dot), and float64 holds the dot product and every partial sum of it exactly, in any order and with or without FMA:
all are multiples of 2**-18 below 2**23. (S itself is exact for the same reason while it is under the limit, and
rounding cannot carry a larger S below it.) If moreover S over all K is below 2**(p-18), p the bits of the
accumulator format, each intermediate result is a multiple of 2**-18 with at most p bits, so it is not rounded
either and the chain is one dot product over all K.

*Something may be cut* (``_cut_step``). Scaled by 2**(F-E), a term is below 2**(F+2) in magnitude and is cut to an
integer, so 33 of them sum to less than 2**(F+8) <= 2**48: float64 adds them exactly.

*The machine "exact"*: float64 BLAS over all K, exact because partial sums are multiples of 2**-18 below
K * 448**2 < 2**35 for K <= 131,072; the accumulator is added to odd, then everything is rounded once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.errors import Fault, InputError
from mqa_ref.numerics.arrays import F64, U16, U32, shape_faults
from mqa_ref.numerics.formats import FP16, FP32
from mqa_ref.numerics.machines import ACCUMULATORS, MACHINES, STEP_K, Accumulator, MachineModel
from mqa_ref.numerics.rounding import odd_sum
from mqa_ref.numerics.tables import E4M3_EXPONENT, E4M3_VALUE

Codes = NDArray[np.uint8]
Exponents = NDArray[np.int16]

MAX_EXACT_K = 131_072
"""The longest dot product the machine "exact" takes."""

_BLOCK = 65_536  # output elements in work at once: bounds the memory of temporaries to a few MiB
_GATHER_BELOW = (
    0.25  # share of cut elements below which they are picked out instead of computing the whole block
)
_UNIT = 2.0**18  # products of e4m3fn numbers are multiples of 1 / _UNIT
_FAST_MIN_FRACTION_BITS = 20


def mma(
    a: Codes, b: Codes, *, machine: str | MachineModel, acc: Accumulator, c: U32 | U16 | None = None
) -> U32 | U16:
    """The products ``a @ b.T`` as the tensor core of ``machine`` gives them, as bit patterns.

    ``a``: uint8 [M, K] e4m3fn codes; ``b``: uint8 [N, K]; K a positive multiple of 32 (at most 131,072 for
    "exact"). ``machine``: a name in MACHINES or a MachineModel. ``acc``: accumulator format "fp32" or "fp16".
    ``c``: initial accumulators [M, N], uint32 fp32 or uint16 fp16 codes, or None for no accumulator (the same as
    zeros). Returns uint32 or uint16 codes [M, N], a new array. Each K = 32 step feeds the next; "exact" rounds once
    over all K. NaN is canonical, a zero is +0. Raises InputError listing every bad argument. Standing: that of the
    machine (``MachineModel.standing``); the fast path: proof, see the module.
    """
    model = _checked(a, b, machine, acc, c)
    rows, columns = a.shape[0], b.shape[0]
    out: NDArray[Any] = np.empty((rows, columns), np.uint16 if acc == "fp16" else np.uint32)
    step = max(1, _BLOCK // max(1, columns))
    right = E4M3_VALUE.take(b)
    with np.errstate(all="ignore"):
        for start in range(0, rows, step):
            stop = min(start + step, rows)
            left = E4M3_VALUE.take(a[start:stop])
            initial = None if c is None else c[start:stop]
            if model.fraction_bits is None:
                out[start:stop] = _exact(left, right, initial, model, acc)
            else:
                out[start:stop] = _chain(
                    (a[start:stop], left), (b, right), initial, model, model.fraction_bits, acc
                )
    return out


def _exact(
    left: F64, right: F64, c: NDArray[Any] | None, model: MachineModel, acc: Accumulator
) -> NDArray[Any]:
    dot = left @ right.T
    if c is None:
        return _final(dot, model, acc)
    addend = _float64(c, acc)
    return _final(odd_sum(dot, addend, dot + addend), model, acc)


def _chain(
    a: tuple[Codes, F64],
    b: tuple[Codes, F64],
    c: NDArray[Any] | None,
    model: MachineModel,
    fraction_bits: int,
    acc: Accumulator,
) -> NDArray[Any]:
    """All K = 32 steps of one block; ``a`` and ``b`` hold the codes and their float64 values."""
    (a_codes, left), (b_codes, right) = a, b
    depth = left.shape[1]
    addend = np.zeros((left.shape[0], right.shape[0])) if c is None else _float64(c, acc)
    on_grid = None if c is None else np.trunc(addend * _UNIT) == addend * _UNIT
    step_limit = 2.0 ** (fraction_bits - 17) if fraction_bits >= _FAST_MIN_FRACTION_BITS else 0.0
    chain_limit = min(step_limit, 2.0 ** (model.final(acc).fraction_bits + 1 - 18))
    if depth > STEP_K and step_limit:
        certain = np.abs(addend) + np.abs(left) @ np.abs(right).T < chain_limit
        if certain.all() and (on_grid is None or on_grid.all()):
            return _final(addend + left @ right.T, model, acc)
    for start in range(0, depth, STEP_K):
        part = slice(start, start + STEP_K)
        x, y = left[:, part], right[:, part]
        if step_limit:
            uncut = np.abs(addend) + np.abs(x) @ np.abs(y).T < step_limit
            # An element once on the grid of 2**-18 stays on it: cuts and roundings only reach coarser grids.
            if on_grid is not None:
                uncut &= on_grid
            total = addend + x @ y.T
        else:
            uncut = np.zeros(addend.shape, np.bool_)
            total = np.zeros(addend.shape)
        if not uncut.all():
            _cut(total, ~uncut, (a_codes[:, part], x), (b_codes[:, part], y), addend, fraction_bits, acc)
        bits = _final(total, model, acc)
        addend = _float64(bits, acc)
    return bits


def _cut(
    total: F64,
    where: NDArray[np.bool_],
    a: tuple[Codes, F64],
    b: tuple[Codes, F64],
    addend: F64,
    fraction_bits: int,
    acc: Accumulator,
) -> None:
    """Overwrites the elements of ``total`` that ``where`` marks with their cut sums of one step."""
    left, a_exp = np.ascontiguousarray(a[1].T), E4M3_EXPONENT.take(a[0].T)
    right, b_exp = np.ascontiguousarray(b[1].T), E4M3_EXPONENT.take(b[0].T)
    if np.count_nonzero(where) < _GATHER_BELOW * where.size:
        m, n = np.nonzero(where)
        total[m, n] = _cut_step(
            left[:, m], a_exp[:, m], right[:, n], b_exp[:, n], addend[m, n], fraction_bits, acc
        )
    else:
        whole = _cut_step(
            left[:, :, None],
            a_exp[:, :, None],
            right[:, None, :],
            b_exp[:, None, :],
            addend,
            fraction_bits,
            acc,
        )
        np.copyto(total, whole, where=where)


def _cut_step(
    left: F64,
    a_exp: Exponents,
    right: F64,
    b_exp: Exponents,
    addend: F64,
    fraction_bits: int,
    acc: Accumulator,
) -> F64:
    """The exact sum of the 33 cut terms, before the final rounding.

    ``left``, ``right`` [32, ...] are the factors' values and ``a_exp``, ``b_exp`` their exponents, k first,
    broadcasting against each other to the shape of ``addend``. NaN and inf pass through: nothing but the sum sees
    them.
    """
    largest = _accumulator_exponent(addend, acc)
    scratch = np.empty_like(largest)
    for k in range(STEP_K):
        np.maximum(largest, np.add(a_exp[k], b_exp[k], out=scratch), out=largest)
    scale = _power_of_two(fraction_bits - largest.astype(np.int64))
    total = np.trunc(addend * scale)
    term = np.empty_like(total)
    for k in range(STEP_K):
        np.multiply(left[k], right[k], out=term)
        np.multiply(term, scale, out=term)
        np.trunc(term, out=term)
        np.add(total, term, out=total)
    return total * _power_of_two(largest.astype(np.int64) - fraction_bits)


def _accumulator_exponent(addend: F64, acc: Accumulator) -> Exponents:
    """The exponent the accumulator is written with.

    A zero gets the format's smallest instead of none: no product's exponent is below -12, so it is the largest only
    where all terms are zero. inf and NaN get one above the largest: the sum is inf or NaN whatever is cut.
    """
    fmt = ACCUMULATORS[acc]
    exponent = ((addend.view(np.int64) >> 52) & 0x7FF) - 1023
    np.maximum(exponent, fmt.min_exponent, out=exponent)
    np.minimum(exponent, fmt.bias + 1, out=exponent)
    return exponent.astype(np.int16)


def _power_of_two(exponent: NDArray[np.int64]) -> F64:
    """2.0**exponent for -1022 <= exponent <= 1023."""
    return ((exponent + 1023) << 52).view(np.float64)


def _final(total: F64, model: MachineModel, acc: Accumulator) -> NDArray[Any]:
    """The one rounding of exact sums into the accumulator's codes.

    RZ to fp32 clears fraction bits of float64 below the last kept one, and the cast is then exact. That is right
    for results below 2**-126 as well, where fp32 has fewer bits: no product is that small and sums with one are
    multiples of 2**-52, so the total is then the accumulator itself, already cut; only "rz13" must still cut it to
    multiples of 2**-139. No sum overflows by RZ: products cannot reach the last place of a number near 2**128.
    """
    rule = model.final(acc)
    total = total + 0.0  # -0 becomes +0
    if rule.stored is FP16:
        return _canonical(total.astype(np.float16), np.uint16, FP16.canonical_nan)
    if rule.rounding == "rz":
        kept = total.view(np.int64) & np.int64(-(1 << (52 - rule.fraction_bits)))
        total = kept.view(np.float64)
        if rule.fraction_bits < FP32.fraction_bits:
            tiny = np.abs(total) < 2.0**FP32.min_exponent
            unit = 2.0 ** (FP32.min_exponent - rule.fraction_bits)
            total[tiny] = np.trunc(total[tiny] / unit) * unit + 0.0
    return _canonical(total.astype(np.float32), np.uint32, FP32.canonical_nan)


def _canonical(result: NDArray[Any], codes: type[np.unsignedinteger[Any]], nan: int) -> NDArray[Any]:
    bits: NDArray[Any] = result.view(codes)
    unequal = result != result
    if np.count_nonzero(unequal):
        bits[unequal] = nan
    return bits


def _float64(bits: NDArray[Any], acc: Accumulator) -> F64:
    values: F64 = bits.view(np.float16 if acc == "fp16" else np.float32).astype(np.float64)
    return values


def _checked(a: object, b: object, machine: object, acc: object, c: object) -> MachineModel:
    """The machine model, or an InputError with every fault of the arguments of ``mma``."""
    faults: list[Fault] = []
    for name, value, dtype in (("a", a, np.uint8), ("b", b, np.uint8), ("c", c, _code_type(acc))):
        if name == "c" and value is None:
            continue
        if not isinstance(value, np.ndarray):
            faults.append(Fault(name, type(value).__name__, "a NumPy array"))
        else:
            if dtype is not None and value.dtype != dtype:
                faults.append(Fault(name, f"dtype {value.dtype}", f"dtype {np.dtype(dtype).name}"))
            if value.ndim != 2:
                faults += shape_faults([(name, value.shape, (None, None))])
    model = machine if isinstance(machine, MachineModel) else MACHINES.get(str(machine))
    if model is None:
        faults.append(Fault("machine", repr(machine), f"a MachineModel or one of {', '.join(MACHINES)}"))
    if _code_type(acc) is None:
        faults.append(Fault("acc", repr(acc), " or ".join(repr(name) for name in ACCUMULATORS)))
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.ndim == 2 and b.ndim == 2:
        depth = a.shape[1]
        if depth == 0 or depth % STEP_K:
            faults.append(Fault("a", f"K = {depth}", f"a positive multiple of {STEP_K}"))
        if model is not None and model.fraction_bits is None and depth > MAX_EXACT_K:
            faults.append(Fault("a", f"K = {depth}", f"at most {MAX_EXACT_K} for the machine {model.name!r}"))
        faults += shape_faults([("b", b.shape, (None, depth))])
        if isinstance(c, np.ndarray) and c.ndim == 2:
            faults += shape_faults([("c", c.shape, (a.shape[0], b.shape[0]))])
    if faults or model is None:
        raise InputError(faults)
    return model


def _code_type(acc: object) -> type[np.unsignedinteger[Any]] | None:
    types: dict[object, type[np.unsignedinteger[Any]]] = {"fp32": np.uint32, "fp16": np.uint16}
    return types.get(acc) if isinstance(acc, str) else None
