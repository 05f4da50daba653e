"""Problems made to find the largest errors: rounding ties, cancellation, sums that lose their small terms, the ends of
the exponents. An endless stream from a seed, the same everywhere: every number is mapped by hand from Philox words.

Each problem draws a kind for its queries, keys, weights and scales, and all kinds meet in time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mqa_ref.numerics import E4M3FN, FP32
from mqa_ref.numerics.samples import Source
from mqa_ref.problem import Problem

Codes = NDArray[np.uint8]
F32 = NDArray[np.float32]

CODE_KINDS = ("uniform", "unit", "small", "one large", "opposite", "sparse", "two powers")
"""uniform: all finite codes. unit: exponents about 0. small: exact on every machine. one large: one product of 448
among small ones of one sign, which a tensor core cuts. opposite: the second half is nearly the negative of the first.
sparse: one code in eight. two powers: 1 and a power of two, so that sums meet ties."""

FLOAT_KINDS = ("one", "half", "unit", "alternating", "ties", "wide", "fp16 range", "tiny", "huge")
"""one: all 1. half: about 1, exact in fp16. unit: about 1. alternating: so in sign, nearly equal. ties: halfway between
two numbers of fp16. wide: all exponents. fp16 range: the exponents of fp16 and some below. tiny: subnormals and the
smallest normals. huge: the largest numbers."""

PLAIN_FLOATS = ("one", "half")
"""Those that every format holds and with which nothing overflows or underflows."""

_SIZES = (
    *[(1, 8, 32), (2, 4, 32), (1, 8, 32), (2, 8, 32)] * 3,
    *[(2, 12, 64), (1, 16, 128), (1, 32, 32), (1, 64, 128)],
)
"""next_n, H, D. Small ones are most: they are cheap, and few roundings make it likely that all point one way."""
_BATCH, _TOKENS, _PAGE = 4, 512, 128


def attack_problems(seed: int, floats: Sequence[str] = FLOAT_KINDS) -> Iterator[Problem]:
    """An endless stream of problems of 2,000 to 4,100 logits, no input of which is inf or NaN.

    ``floats``: the kinds of weights and scales, of FLOAT_KINDS.
    """
    draw = _Draw(seed)
    while True:
        yield _problem(draw, floats)


class _Draw:
    """Choices and numbers from one stream of words."""

    def __init__(self, seed: int) -> None:
        self.source = Source(seed)

    def below(self, limit: int, count: int) -> NDArray[np.int64]:
        """``count`` integers in 0..limit-1."""
        return (self.source.words(count) % np.uint64(limit)).astype(np.int64)

    def pick(self, kinds: Sequence[str]) -> str:
        """One of ``kinds``."""
        return kinds[int(self.below(len(kinds), 1)[0])]

    def codes(self, kind: str, rows: int, dim: int) -> Codes:
        """Finite e4m3fn codes [rows, dim]."""
        size = rows * dim
        drawn: Codes = self.source.uniform(E4M3FN, size).astype(np.uint8)
        drawn = np.where(drawn & 0x7F == 0x7F, drawn ^ 1, drawn).astype(np.uint8)
        sign, magnitude = drawn & 0x80, drawn & 0x7F
        if kind in ("unit", "opposite"):
            drawn = (sign | (magnitude & 0x1F) + 0x28).astype(np.uint8)
        elif kind == "small":
            drawn = (sign | magnitude & 0x1F).astype(np.uint8)
        elif kind == "two powers":
            powers = np.array([0x38, self.below(15, 1)[0] << 3], np.uint8)
            drawn = (powers[self.below(2, size)] | (sign & 0x80 * self.below(2, 1)[0])).astype(np.uint8)
        elif kind == "sparse":
            drawn = np.where(self.below(8, size) == 0, drawn, 0).astype(np.uint8)
        elif kind == "one large":
            drawn = (magnitude & 0x07 | np.uint8(self.below(6, 1)[0] << 3)).astype(np.uint8)
        codes = drawn.reshape(rows, dim)
        if kind == "one large":
            codes[:, 0] = 0x7E
        if kind == "opposite":
            half = dim // 2
            off = self.below(16, rows * half).reshape(rows, half) == 0
            codes[:, half:] = codes[:, :half] ^ 0x80 ^ off
        return codes

    def floats(self, kind: str, count: int) -> F32:
        """Finite fp32 numbers."""
        bits = self.source.centred(FP32, count, 2)
        exponent, wide = 0x7F800000, self.source.uniform(FP32, count)
        if kind == "one":
            bits = np.full(count, 0x3F800000)
        elif kind == "half":
            bits = bits & 0xFFFFE000
        elif kind == "alternating":
            bits = (bits & 0x7F) | 0x3F800000 | (np.arange(count) & 1) << 31
        elif kind == "ties":
            bits = (bits & 0xFFFFE000) | 0x1000
        elif kind == "wide":
            bits = np.where(wide & exponent == exponent, wide ^ 0x40000000, wide)
        elif kind == "fp16 range":
            bits = (wide & 0x807FFFFF) | (self.below(46, count) + 127 - 29) << 23
        elif kind == "tiny":
            bits = wide & 0x83FFFFFF
        elif kind == "huge":
            bits = (wide & 0x80FFFFFF) | 0x7E000000
        return bits.astype(np.uint32).view(np.float32)


def _problem(draw: _Draw, floats: Sequence[str]) -> Problem:
    next_n, heads, dim = _SIZES[draw.below(len(_SIZES), 1)[0]]
    q = draw.codes(draw.pick(CODE_KINDS), _BATCH * next_n * heads, dim)
    pages = _BATCH * _TOKENS // _PAGE
    kv = np.empty((pages, _PAGE * (dim + 4)), np.uint8)
    kv[:, : _PAGE * dim] = draw.codes(draw.pick(CODE_KINDS), pages * _PAGE, dim).reshape(pages, -1)
    kv[:, _PAGE * dim :] = draw.floats(draw.pick(floats), pages * _PAGE).view(np.uint8).reshape(pages, -1)
    return Problem(
        q.reshape(_BATCH, next_n, heads, dim),
        kv,
        draw.floats(draw.pick(floats), _BATCH * next_n * heads).reshape(-1, heads),
        np.arange(pages, dtype=np.int32).reshape(_BATCH, -1),
        np.full(_BATCH, _TOKENS, np.int32),
        page=_PAGE,
        num_sms=1,
    )
