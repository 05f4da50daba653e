"""One step of the tensor core of SM100 in machine code, with the bits of ``numerics.mma``.

The rule is that of ``numerics.tensorcore``: where the largest exponent is at most F - 18 and the accumulator is a
multiple of 2**-18 nothing is cut, and float64 adds the products exactly in any order; elsewhere each term is scaled,
cut to an integer and added, which float64 does exactly, too. Which of the two is decided for 16 elements at a time.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from llvmlite import ir

from mqa_ref.emulator.compiled import native
from mqa_ref.emulator.compiled.shadows import address_of
from mqa_ref.emulator.compiled.vectors import (
    BYTE,
    FLOATS,
    LONG,
    POINTER,
    WORD,
    Value,
    call_intrinsic,
    each,
    floats,
    integers,
    repeat,
    scratch,
    splat,
    vector,
)
from mqa_ref.numerics import E4M3_EXPONENT, E4M3_VALUE, MACHINES, MachineModel
from mqa_ref.numerics.machines import ACCUMULATORS, STEP_K, Accumulator

WIDE = 16
"""Elements of one row of the result that are computed at once."""
MOST_COLUMNS = 256
_GRID_BITS = 18
_DOUBLE, _SHORT = FLOATS[64], ir.IntType(16)
_DOUBLES = ir.VectorType(_DOUBLE, WIDE)
_BIAS, _FRACTION = 1023, 52
_KEPT = {"fp32": 23, "fp16": 10}


def served(machine: MachineModel | str, acc: Accumulator, columns: int) -> int | None:
    """The F of a machine whose step this module computes, or None."""
    model = machine if isinstance(machine, MachineModel) else MACHINES.get(machine)
    if model is None or model.fraction_bits is None or not 20 <= model.fraction_bits <= 40:
        return None
    rule = model.final(acc)
    usual = rule.rounding == ("rz" if acc == "fp32" else "rne") and rule.fraction_bits == _KEPT[acc]
    return model.fraction_bits if usual and columns % WIDE == 0 and 0 < columns <= MOST_COLUMNS else None


def step(
    addresses: tuple[int, int, int, int],
    sizes: tuple[int, int, int],
    fraction_bits: int,
    acc: Accumulator,
    *,
    accumulate: bool,
) -> None:
    """``numerics.mma`` for K = 32. ``addresses``: of bytes, of the offsets among them [M, 32] and [N, 32] (int64) at
    which the codes of the operands lie, and of the accumulators [M, N] in 32-bit words. ``sizes``: words from one row
    of accumulators to the next, M and N.
    """
    tables = _table_addresses()
    _function(acc)(*addresses, *sizes, fraction_bits, accumulate, *tables)


@cache
def _table_addresses() -> tuple[int, int]:
    return address_of(E4M3_VALUE), address_of(E4M3_EXPONENT)


class _Tables:
    """Where a step keeps its decoded operands: numbers and exponents of B by [k][n], of one row of A by [k], and the
    largest exponent of B by [k]."""

    def __init__(self, b: ir.IRBuilder) -> None:
        self.numbers = scratch(b, ir.ArrayType(_DOUBLE, STEP_K * MOST_COLUMNS))
        self.powers = scratch(b, ir.ArrayType(_SHORT, STEP_K * MOST_COLUMNS))
        self.left = scratch(b, ir.ArrayType(_DOUBLE, STEP_K))
        self.left_powers = scratch(b, vector(16, STEP_K))
        self.most = scratch(b, vector(16, STEP_K))


@cache
def _function(acc: Accumulator) -> Any:
    """void step(data, a, b, block, stride, rows, columns, F, accumulate, values, exponents)."""
    module = ir.Module(f"step-{acc}")
    arguments = [POINTER] * 4 + [LONG] * 5 + [POINTER] * 2
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), arguments), "step")
    data, a, b_places, block, stride, rows, columns, fraction, accumulate, values, exponents = function.args
    b = ir.IRBuilder(function.append_basic_block())
    tables = _Tables(b)

    def decode(places: Value, at: Value) -> tuple[Value, Value]:
        place = b.load(b.gep(places, [at], source_etype=LONG), typ=LONG)
        code = b.zext(b.load(b.gep(data, [place], source_etype=BYTE), typ=BYTE), LONG)
        value = b.load(b.gep(values, [code], source_etype=_DOUBLE), typ=_DOUBLE)
        return value, b.load(b.gep(exponents, [code], source_etype=_SHORT), typ=_SHORT)

    b.store(splat(-(1 << 14), 16, STEP_K), tables.most)
    with each(b, columns) as n, each(b, LONG(STEP_K)) as k:
        value, power = decode(b_places, b.add(b.mul(n, LONG(STEP_K)), k))
        at = b.add(b.mul(k, columns), n)
        b.store(value, b.gep(tables.numbers, [at], source_etype=_DOUBLE))
        b.store(power, b.gep(tables.powers, [at], source_etype=_SHORT))
        best = b.gep(tables.most, [k], source_etype=_SHORT)
        most = b.load(best, typ=_SHORT)
        b.store(b.select(b.icmp_signed(">", power, most), power, most), best)
    adds = b.icmp_signed("!=", accumulate, LONG(0))
    with each(b, rows) as m:
        with each(b, LONG(STEP_K)) as k:
            value, power = decode(a, b.add(b.mul(m, LONG(STEP_K)), k))
            b.store(value, b.gep(tables.left, [k], source_etype=_DOUBLE))
            b.store(power, b.gep(tables.left_powers, [k], source_etype=_SHORT))
        whole = vector(16, STEP_K)
        bound = b.add(b.load(tables.left_powers, typ=whole), b.load(tables.most, typ=whole))
        limit = b.sub(fraction, LONG(_GRID_BITS))
        row_cut = _some(b, b.icmp_signed(">", bound, repeat(b, b.trunc(limit, _SHORT), STEP_K)))
        with each(b, b.udiv(columns, LONG(WIDE))) as group:
            n = b.mul(group, LONG(WIDE))
            place = b.gep(block, [b.add(b.mul(m, stride), n)], source_etype=WORD)
            start = b.load(place, typ=vector(32, WIDE), align=4)
            start = b.select(adds, start, splat(0, 32, WIDE))
            if acc == "fp16":
                start = b.trunc(start, vector(16, WIDE))
            addend = _widen(b, floats(b, start))
            total = _sum(b, tables, columns, n, addend, fraction, row_cut, acc)
            bits = _final(b, total, acc)
            b.store(bits if acc == "fp32" else b.zext(bits, vector(32, WIDE)), place, align=4)
    b.ret_void()
    engine = native.link(str(module))
    kinds = [ctypes.c_void_p] * 4 + [ctypes.c_int64] * 5 + [ctypes.c_void_p] * 2
    return ctypes.CFUNCTYPE(None, *kinds)(engine.get_function_address("step"))


def _some(b: ir.IRBuilder, truths: Value) -> Value:
    """Is one of the truth values true?"""
    bits = ir.IntType(truths.type.count)
    return b.icmp_unsigned("!=", b.bitcast(truths, bits), bits(0))


def _widen(b: ir.IRBuilder, numbers: Value) -> Value:
    if numbers.type.element == FLOATS[16]:
        numbers = b.fpext(numbers, ir.VectorType(FLOATS[32], WIDE))
    return b.fpext(numbers, _DOUBLES)


def _own_exponent(b: ir.IRBuilder, addend: Value, acc: Accumulator) -> Value:
    """The exponents of accumulators, as 64-bit integers; see ``numerics.tensorcore._accumulator_exponent``."""
    fmt = ACCUMULATORS[acc]
    own = b.and_(b.lshr(integers(b, addend), splat(_FRACTION, 64, WIDE)), splat(0x7FF, 64, WIDE))
    own = b.sub(own, splat(_BIAS, 64, WIDE))
    least, most = splat(fmt.min_exponent, 64, WIDE), splat(fmt.bias + 1, 64, WIDE)
    own = b.select(b.icmp_signed("<", own, most), own, most)
    return b.select(b.icmp_signed(">", own, least), own, least)


def _largest(b: ir.IRBuilder, tables: _Tables, columns: Value, n: Value, own: Value) -> Value:
    """The largest exponent of each element's 33 terms, as 64-bit integers."""
    kind = vector(16, WIDE)
    found = scratch(b, kind)
    b.store(b.trunc(own, kind), found)
    with each(b, LONG(STEP_K)) as k:
        mine = repeat(b, b.load(b.gep(tables.left_powers, [k], source_etype=_SHORT), typ=_SHORT), WIDE)
        at = b.gep(tables.powers, [b.add(b.mul(k, columns), n)], source_etype=_SHORT)
        power = b.add(mine, b.load(at, typ=kind, align=2))
        best = b.load(found, typ=kind)
        b.store(b.select(b.icmp_signed(">", power, best), power, best), found)
    return b.sext(b.load(found, typ=kind), vector(64, WIDE))


def _power_of_two(b: ir.IRBuilder, exponent: Value) -> Value:
    return floats(b, b.shl(b.add(exponent, splat(_BIAS, 64, WIDE)), splat(_FRACTION, 64, WIDE)))


def _sum(
    b: ir.IRBuilder,
    tables: _Tables,
    columns: Value,
    n: Value,
    addend: Value,
    fraction: Value,
    row_cut: Value,
    acc: Accumulator,
) -> Value:
    """The exact sum of the cut terms. ``row_cut``: some product of the row may be cut."""
    total = scratch(b, _DOUBLES)
    steps = ir.Constant(_DOUBLES, [float(1 << _GRID_BITS)] * WIDE)
    on_grid = b.fmul(addend, steps)
    off_grid = b.fcmp_unordered("!=", call_intrinsic(b, "trunc", (on_grid,)), on_grid)
    bits = repeat(b, fraction, WIDE)
    own = _own_exponent(b, addend, acc)
    own_cut = b.icmp_signed(">", own, b.sub(bits, splat(_GRID_BITS, 64, WIDE)))
    some = b.or_(row_cut, _some(b, b.or_(off_grid, own_cut)))

    def factors(k: Value) -> tuple[Value, Value]:
        mine = repeat(b, b.load(b.gep(tables.left, [k], source_etype=_DOUBLE), typ=_DOUBLE), WIDE)
        at = b.gep(tables.numbers, [b.add(b.mul(k, columns), n)], source_etype=_DOUBLE)
        return mine, b.load(at, typ=_DOUBLES, align=8)

    with b.if_else(some) as (then, otherwise):
        with then:
            largest = _largest(b, tables, columns, n, own)
            scale = _power_of_two(b, b.sub(bits, largest))
            b.store(call_intrinsic(b, "trunc", (b.fmul(addend, scale),)), total)
            with each(b, LONG(STEP_K)) as k:
                term = b.fmul(b.fmul(*factors(k)), scale)
                cut = call_intrinsic(b, "trunc", (term,))
                b.store(b.fadd(b.load(total, typ=_DOUBLES), cut), total)
            back = _power_of_two(b, b.sub(largest, bits))
            b.store(b.fmul(b.load(total, typ=_DOUBLES), back), total)
        with otherwise:
            b.store(addend, total)
            with each(b, LONG(STEP_K)) as k:
                b.store(call_intrinsic(b, "fma", (*factors(k), b.load(total, typ=_DOUBLES))), total)
    return b.load(total, typ=_DOUBLES)


def _final(b: ir.IRBuilder, total: Value, acc: Accumulator) -> Value:
    """The one rounding; see ``numerics.tensorcore._final``. To fp16 it goes through fp32 rounded to odd."""
    from mqa_ref.emulator.compiled import real

    total = b.fadd(total, ir.Constant(_DOUBLES, [0.0] * WIDE))
    if acc == "fp16":
        return real.narrowed_to_f16(b, total)
    kept = b.and_(integers(b, total), splat(-(1 << (_FRACTION - 23)), 64, WIDE))
    return real.canonical(b, b.fptrunc(floats(b, kept), ir.VectorType(FLOATS[32], WIDE)))
