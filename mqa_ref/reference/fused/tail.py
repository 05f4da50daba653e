"""The epilogue of a block: ReLU, and one fused multiply-add into each of the four partial sums, heads ascending."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mqa_ref.reference.fused.block import HEADS, VECTORS, Block
from mqa_ref.reference.fused.code import F32, I32, LANES, Code, number


def _twice(code: Code, x: str) -> str:
    return code.binary("fadd", F32, x, code.call("fabs.v8f32", F32, x))


def _larger(code: Code, x: str) -> str:
    return code.larger(x, "zeroinitializer")


def _larger_or_nan(code: Code, x: str) -> str:
    not_above = code.new(f"fcmp ole {F32} {x}, zeroinitializer")
    return code.select(not_above, F32, "zeroinitializer", x)


RELUS: Mapping[str, Callable[[Code, str], str]] = {
    "folded": _twice,
    "max": _larger,
    "max_nan": _larger_or_nan,
}
"""By the name of the generation. Of a NaN, "max" makes 0; -0 gives +0 in all of them but "folded", which has none."""


def add_heads(block: Block, first: str) -> None:
    """The dot products of ``acc`` go into ``sums``."""
    code, half = block.code, block.shape.epi == "fp16"
    nans = [code.load(F32, code.at("%key_nan", "float", first, str(LANES * v))) for v in range(VECTORS)]
    for head in range(HEADS):
        row = code.new(f"add i64 {block.row}, {head}")
        weight = code.splat("float", code.load("float", code.at("%weights", "float", row)))
        nan = code.splat("float", code.load("float", code.at("%query_nan", "float", row)))
        for vector in range(VECTORS):
            acc = code.load(F32, block.acc[head][vector])
            acc = code.binary("fadd", F32, acc, code.binary("fadd", F32, nan, nans[vector]))
            if half and block.shape.acc == "fp32":
                acc = block.half(acc)
            positive = RELUS[block.shape.relu](code, acc)
            place = block.sums[head][vector]
            before = code.load(F32, place)
            after = (
                _half_fma(block, positive, weight, before)
                if half
                else code.call("fma.v8f32", F32, positive, weight, before)
            )
            code.store(F32, after, place)


def _half_fma(block: Block, x: str, weight: str, addend: str) -> str:
    """fma of fp16 numbers: the product is exact in fp32, the sum is rounded to odd there and then to fp16."""
    code = block.code
    product = code.binary("fmul", F32, x, weight)
    total = code.binary("fadd", F32, product, addend)
    part = code.binary("fsub", F32, total, product)
    error = code.binary(
        "fadd",
        F32,
        code.binary("fsub", F32, product, code.binary("fsub", F32, total, part)),
        code.binary("fsub", F32, addend, part),
    )
    bits, other = (code.cast("bitcast", F32, value, I32) for value in (total, error))
    sign = code.binary("ashr", I32, code.binary("xor", I32, bits, other), number("i32", "31"))
    odd = code.binary("or", I32, code.binary("add", I32, bits, sign), number("i32", "1"))
    inexact = code.new(f"fcmp one {F32} {error}, zeroinitializer")
    return block.half(code.cast("bitcast", I32, code.select(inexact, I32, odd, bits), F32))


def total(block: Block, vector: int) -> str:
    """The partial sums joined in the kernel's order."""
    code = block.code
    sums = [code.load(F32, places[vector]) for places in block.sums]
    if block.shape.epi == "fp32":
        total = sums[0]
        for more in sums[1:]:
            total = code.binary("fadd", F32, total, more)
        return total
    low, high = (block.half(code.binary("fadd", F32, sums[i], sums[i + 2])) for i in range(2))
    return block.half(code.binary("fadd", F32, low, high))
