"""Dot products of a block by the rule of the tensor core itself.

A step finds the largest exponent E of its 33 terms. Each term times 2^(F-E) is converted to an integer, which cuts it;
16 of them are summed in int32, the three sums in float64, and the sum is rounded once.
"""

from __future__ import annotations

from mqa_ref.numerics.machines import STEP_K
from mqa_ref.reference.fused.block import HEADS, TOKENS, VECTORS, Block
from mqa_ref.reference.fused.code import F32, F64, I32, I64, LANES, number


def cut(block: Block) -> None:
    """``acc``: the dot products."""
    code = block.code
    known = code.load("i1", block.have_powers)
    with code.when(code.new(f"xor i1 {known}, true")):
        _powers_of_keys(block)
        code.store("i1", "true", block.have_powers)
    for accs in block.acc:
        for place in accs:
            code.store(F32, "zeroinitializer", place)
    with code.loop("%steps") as step:
        start = code.new(f"mul i64 {step}, {STEP_K}")
        for head in range(HEADS):
            for vector in range(VECTORS):
                acc = code.load(F32, block.acc[head][vector])
                code.store(F32, _power(block, acc), block.largest[head][vector])
        with code.loop(str(STEP_K)) as k:
            keys = block.keys(block.key_powers, start, k)
            for head in range(HEADS):
                query = block.head("%powers", head, start, k)
                for vector in range(VECTORS):
                    place = block.largest[head][vector]
                    power = code.binary("fmul", F32, query, keys[vector])
                    code.store(F32, code.larger(code.load(F32, place), power), place)
        for vector in range(VECTORS):
            _cut_vector(block, vector, start)


def _powers_of_keys(block: Block) -> None:
    """2 to the exponent of each key: its leading bit, at least 2^-6, and 0 for a zero."""
    code = block.code
    with code.loop(block.dim) as k:
        column = code.new(f"mul i64 {k}, {TOKENS}")
        for vector, value in enumerate(block.keys("%scratch", k)):
            power = code.larger(_leading(block, value), number("float", "1.5625e-2"))
            zero = code.new(f"fcmp oeq {F32} {value}, zeroinitializer")
            power = code.select(zero, F32, "zeroinitializer", power)
            code.store(F32, power, code.at(block.key_powers, "float", column, str(LANES * vector)))


def _leading(block: Block, value: str) -> str:
    code = block.code
    bits = code.cast("bitcast", F32, value, I32)
    bits = code.binary("and", I32, bits, number("i32", str(0x7F800000)))
    return code.cast("bitcast", I32, bits, F32)


def _power(block: Block, acc: str) -> str:
    """2 to the exponent of an accumulator; 2^-20, below every other, for a zero.

    A subnormal of fp16 counts with its own leading bit, not with -14 as the rule has it. That changes no bit: every
    product's exponent is at least -12, so that an accumulator is a multiple of 2^(-12-F), and where it alone is not
    zero, a cut at 2^(-14-F) takes nothing from it.
    """
    least = number("float", "0x3EB0000000000000")
    return block.code.larger(_leading(block, _finite(block, acc)), least)


def _finite(block: Block, acc: str) -> str:
    """An accumulator, 0 in place of inf, which stays what it is whatever is added."""
    if block.shape.acc != "fp16":
        return acc
    return block.code.select(_is_inf(block, acc), F32, "zeroinitializer", acc)


def _is_inf(block: Block, acc: str) -> str:
    size = block.code.call("fabs.v8f32", F32, acc)
    return block.code.new(f"fcmp oeq {F32} {size}, {number('float', '0x7FF0000000000000')}")


def _cut_vector(block: Block, vector: int, start: str) -> None:
    """One step of four heads and 8 tokens."""
    code = block.code
    biased = code.new(f"add i32 %fraction, {254 << 23}")
    above, fraction = code.splat("i32", biased), code.splat("i32", "%fraction")
    scales, units, accs = [], [], []
    for head in range(HEADS):
        power = code.cast("bitcast", F32, code.load(F32, block.largest[head][vector]), I32)
        scales.append(code.cast("bitcast", I32, code.binary("sub", I32, above, power), F32))
        units.append(code.cast("bitcast", I32, code.binary("sub", I32, power, fraction), F32))
        accs.append(code.load(F32, block.acc[head][vector]))
        term = code.binary("fmul", F32, _finite(block, accs[head]), scales[head])
        term = code.cast("fptosi", F32, term, I32)
        code.store(F64, code.cast("sitofp", I32, term, F64), block.totals[head])
    half = STEP_K // 2
    for part in range(2):
        for place in block.whole:
            code.store(I32, "zeroinitializer", place)
        with code.loop(str(half)) as k:
            key = block.keys("%scratch", start, k, str(half * part))[vector]
            for head in range(HEADS):
                query = block.head("%queries", head, start, k, str(half * part))
                term = code.binary("fmul", F32, code.binary("fmul", F32, query, key), scales[head])
                term = code.cast("fptosi", F32, term, I32)
                place = block.whole[head]
                code.store(I32, code.binary("add", I32, code.load(I32, place), term), place)
        for head in range(HEADS):
            whole = code.cast("sitofp", I32, code.load(I32, block.whole[head]), F64)
            total = code.binary("fadd", F64, code.load(F64, block.totals[head]), whole)
            code.store(F64, total, block.totals[head])
    for head in range(HEADS):
        unit = code.cast("fpext", F32, units[head], F64)
        total = code.binary("fmul", F64, code.load(F64, block.totals[head]), unit)
        result = _final(block, total)
        if block.shape.acc == "fp16":
            result = code.select(_is_inf(block, accs[head]), F32, accs[head], result)
        code.store(F32, result, block.acc[head][vector])


def _final(block: Block, total: str) -> str:
    """The one rounding of a step; to fp16 by way of fp32 rounded to odd."""
    code = block.code
    bits = code.cast("bitcast", F64, total, I64)
    if block.shape.acc != "fp16":
        kept = code.binary("and", I64, bits, code.splat("i64", "%kept"))
        return code.cast("fptrunc", F64, code.cast("bitcast", I64, kept, F64), F32)
    low = number("i64", str((1 << 29) - 1))
    lost = code.new(f"icmp ne {I64} {code.binary('and', I64, bits, low)}, zeroinitializer")
    kept = code.binary("and", I64, bits, number("i64", str(-(1 << 29))))
    odd = code.binary("or", I64, kept, number("i64", str(1 << 29)))
    odd = code.cast("bitcast", I64, code.select(lost, I64, odd, kept), F64)
    return block.half(code.cast("fptrunc", F64, odd, F32))
