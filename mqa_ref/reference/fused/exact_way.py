"""Dot products of a block where nothing is cut or rounded: fp32 fma, and a check that no accumulator grew too large.

In every K = 32 step the block's bound, the largest norm of its heads times the largest of its tokens, must be below 64:
then fp32 adds a step's products, multiples of 2^-18, without rounding. Afterwards every accumulator must have stayed
below 64, so that joining the steps rounded nothing either. docs/numerics.md has the proof.
"""

from __future__ import annotations

from mqa_ref.numerics.machines import STEP_K
from mqa_ref.reference.fused.block import HEADS, VECTORS, Block
from mqa_ref.reference.fused.code import F32, number

LIMIT = 64.0
"""Below it the multiples of 2^-18 have at most 24 bits."""

_SQUARE = "4.095e3"
"""Less than 64^2 by more than the rounding errors of two sums of 32 squares and of their product."""
_UNROLL = 4


def check_bounds(block: Block) -> None:
    """Clears ``ok`` where the bound of a step is not below the limit."""
    code = block.code
    with code.loop("%steps") as step:
        line = code.new(f"mul i64 {block.group}, %steps")
        heads = code.load("float", code.at("%norms", "float", line, step))
        tokens = code.load("float", code.at(block.key_norms, "float", step))
        bound = code.new(f"fmul float {heads}, {tokens}")
        below = code.new(f"fcmp olt float {bound}, {_SQUARE}")
        code.store("i1", code.new(f"and i1 {below}, {code.load('i1', block.ok)}"), block.ok)


def exact(block: Block) -> None:
    """``acc``: the dot products; clears ``ok`` where an accumulator reached the limit."""
    code = block.code
    parts = [[code.variable(F32) for _ in range(VECTORS)] for _ in range(HEADS)]
    for head, vector in block.places:
        code.store(F32, "zeroinitializer", block.acc[head][vector])
        code.store(F32, "zeroinitializer", block.largest[head][vector])
    with code.loop("%steps") as step:
        start = code.new(f"mul i64 {step}, {STEP_K}")
        for head, vector in block.places:
            code.store(F32, "zeroinitializer", parts[head][vector])
        with code.loop(str(STEP_K // _UNROLL)) as quarter:
            k = code.new(f"mul i64 {quarter}, {_UNROLL}")
            for more in range(_UNROLL):
                keys = block.keys("%scratch", start, k, str(more))
                for head in range(HEADS):
                    query = block.head("%queries", head, start, k, str(more))
                    for vector in range(VECTORS):
                        place = parts[head][vector]
                        term = code.call("fma.v8f32", F32, query, keys[vector], code.load(F32, place))
                        code.store(F32, term, place)
        for head, vector in block.places:
            place, most = block.acc[head][vector], block.largest[head][vector]
            total = code.binary("fadd", F32, code.load(F32, place), code.load(F32, parts[head][vector]))
            size = code.call("fabs.v8f32", F32, total)
            code.store(F32, code.larger(size, code.load(F32, most)), most)
            code.store(F32, block.half(total) if block.shape.acc == "fp16" else total, place)
    most = code.load(F32, block.largest[0][0])
    for head, vector in block.places[1:]:
        most = code.larger(most, code.load(F32, block.largest[head][vector]))
    over = code.new(f"fcmp oge {F32} {most}, {number('float', f'{LIMIT:e}')}")
    over = code.new(f"call i1 @llvm.vector.reduce.or.v8i1(<8 x i1> {over})")
    code.store("i1", code.new(f"xor i1 {over}, true"), block.ok)
