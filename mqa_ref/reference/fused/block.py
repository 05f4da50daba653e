"""A block of 16 tokens and 4 heads: where its numbers lie while the program works on it.

Lanes are tokens, two vectors of them. Of each 4 heads the four partial sums of the epilogue take one each.
"""

from __future__ import annotations

from dataclasses import dataclass

from mqa_ref.numerics.machines import STEP_K
from mqa_ref.reference.fused.code import F16, F32, F64, I32, LANES, Code

TOKENS = 16
"""Tokens of a block: two vectors."""
VECTORS = TOKENS // LANES
HEADS = 4
"""Heads of a block."""
MAX_DIM = 128


@dataclass(frozen=True)
class Shape:
    """What the program depends on. ``acc``, ``epi``: the flow's. ``relu``: a key of ``tail.RELUS``."""

    acc: str
    epi: str
    relu: str


class Block:
    """Names of values and storage; ``acc``, ``sums`` and ``largest`` are vectors [head of 4][vector of 2]."""

    group: str
    """Which 4 heads of all query tokens."""
    row: str
    """The first of them."""

    def __init__(self, code: Code, shape: Shape) -> None:
        self.code, self.shape = code, shape
        self.acc, self.sums, self.largest = (
            [[code.variable(F32) for _ in range(VECTORS)] for _ in range(HEADS)] for _ in range(3)
        )
        self.totals = [code.variable(F64) for _ in range(HEADS)]
        self.whole = [code.variable(I32) for _ in range(HEADS)]
        self.ok, self.have_powers = code.variable("i1"), code.variable("i1")
        self.dim = code.new(f"mul i64 %steps, {STEP_K}")
        self.width = code.new(f"mul i64 %blocks, {TOKENS}")
        self.key_powers = code.at("%scratch", "float", str(MAX_DIM * TOKENS))
        self.key_norms = code.at("%scratch", "float", str(2 * MAX_DIM * TOKENS))

    @property
    def places(self) -> list[tuple[int, int]]:
        """Every head with every vector."""
        return [(head, vector) for head in range(HEADS) for vector in range(VECTORS)]

    def keys(self, base: str, *index: str) -> list[str]:
        """The two vectors of one k."""
        code = self.code
        total = index[0]
        for more in index[1:]:
            total = code.new(f"add i64 {total}, {more}")
        column = code.new(f"mul i64 {total}, {TOKENS}")
        return [code.load(F32, code.at(base, "float", column, str(LANES * v))) for v in range(VECTORS)]

    def head(self, base: str, head: int, *index: str) -> str:
        """One number of a row of the queries in all lanes."""
        code = self.code
        row = code.new(f"add i64 {self.row}, {head}")
        line = code.new(f"mul i64 {row}, {self.dim}")
        return code.splat("float", code.load("float", code.at(base, "float", line, *index)))

    def half(self, value: str) -> str:
        """fp32 rounded to fp16, as fp32."""
        return self.code.cast("fpext", F16, self.code.cast("fptrunc", F32, value, F16), F32)
