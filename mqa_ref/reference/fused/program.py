"""The fused reference as LLVM IR: the sums over the heads of all tokens of a run, block by block.

A block goes the exact way where its bounds allow, else, and where that way finds an accumulator too large, the cut way.
Dot products never leave the block: the epilogue takes them at once.
"""

from __future__ import annotations

from mqa_ref.numerics.machines import STEP_K
from mqa_ref.reference.fused.block import HEADS, TOKENS, VECTORS, Block, Shape
from mqa_ref.reference.fused.code import F32, LANES, Code, signature
from mqa_ref.reference.fused.cut_way import cut
from mqa_ref.reference.fused.exact_way import check_bounds, exact
from mqa_ref.reference.fused.tail import add_heads, total

NAME = "fused"

ARGUMENTS = (
    ("ptr", "keys"),  # uint8 [blocks * 16, D]: e4m3fn codes
    ("ptr", "key_nan"),  # float [blocks * 16]: NaN for a token with a NaN code, else 0
    ("i64", "blocks"),
    ("i64", "steps"),  # D / 32
    ("ptr", "queries"),  # float [next_n * H, D]: values, 0 for NaN
    ("ptr", "powers"),  # float [next_n * H, D]: 2 to the exponent of each code, 0 for zeros
    ("ptr", "norms"),  # float [next_n * H / 4, steps]: the largest sum of squares of the group's four heads
    ("ptr", "query_nan"),  # float [next_n * H]
    ("ptr", "weights"),  # float [next_n * H], rounded to fp16 where the epilogue is fp16
    ("i64", "next_n"),
    ("i64", "groups"),  # H / 4
    ("ptr", "values"),  # float [256]: the value of each code, 0 for NaN
    ("i32", "fraction"),  # F << 23
    ("i64", "kept"),  # mask of the float64 bits that the final rounding toward zero keeps
    ("i1", "try_exact"),
    ("ptr", "scratch"),  # float [2 * 128 * 16 + 4]
    ("ptr", "out"),  # float [next_n, blocks * 16]: the sums over the heads
    ("ptr", "cut"),  # int64 [1]: how many blocks went the second way is added to it
)
"""The arguments of the function, in order."""


def program(shape: Shape) -> str:
    """The module with the function ``fused``."""
    code = Code(signature(NAME, ARGUMENTS))
    _write(Block(code, shape))
    return code.text()


def _write(block: Block) -> None:
    code = block.code
    with code.loop("%blocks") as number:
        first = code.new(f"mul i64 {number}, {TOKENS}")
        _unpack(block, first)
        code.store("i1", "false", block.have_powers)
        with code.loop("%next_n") as token:
            for sums in block.sums:
                for place in sums:
                    code.store(F32, "zeroinitializer", place)
            with code.loop("%groups") as group:
                base = code.new(f"mul i64 {token}, %groups")
                block.group = code.new(f"add i64 {base}, {group}")
                block.row = code.new(f"mul i64 {block.group}, {HEADS}")
                _dots(block)
                add_heads(block, first)
            row = code.new(f"mul i64 {token}, {block.width}")
            for vector in range(VECTORS):
                place = code.at("%out", "float", row, first, str(LANES * vector))
                code.store(F32, total(block, vector), place)


def _unpack(block: Block, first: str) -> None:
    """The block's keys as values [D][16] and the largest sum of squares of each step."""
    code = block.code
    with code.loop(str(TOKENS)) as token:
        line = code.new(f"add i64 {first}, {token}")
        line = code.new(f"mul i64 {line}, {block.dim}")
        with code.loop(block.dim) as k:
            byte = code.new(f"load i8, ptr {code.at('%keys', 'i8', line, k)}")
            index = code.cast("zext", "i8", byte, "i64")
            value = code.load("float", code.at("%values", "float", index))
            column = code.new(f"mul i64 {k}, {TOKENS}")
            code.store("float", value, code.at("%scratch", "float", column, token))
    with code.loop("%steps") as step:
        squares = [code.variable(F32) for _ in range(VECTORS)]
        for place in squares:
            code.store(F32, "zeroinitializer", place)
        start = code.new(f"mul i64 {step}, {STEP_K}")
        with code.loop(str(STEP_K)) as k:
            for value, place in zip(block.keys("%scratch", start, k), squares, strict=True):
                code.store(F32, code.call("fma.v8f32", F32, value, value, code.load(F32, place)), place)
        most = code.larger(*(code.load(F32, place) for place in squares))
        most = code.new(f"call float @llvm.vector.reduce.fmax.v8f32({F32} {most})")
        code.store("float", most, code.at(block.key_norms, "float", step))


def _dots(block: Block) -> None:
    """``acc``: the dot products of four heads and 16 tokens."""
    code = block.code
    code.store("i1", "%try_exact", block.ok)
    with code.when("%try_exact"):
        check_bounds(block)
        with code.when(code.load("i1", block.ok)):
            exact(block)
    failed = code.new(f"xor i1 {code.load('i1', block.ok)}, true")
    with code.when(failed):
        count = code.new("load i64, ptr %cut")
        code.do(f"store i64 {code.new(f'add i64 {count}, 1')}, ptr %cut")
        cut(block)
