"""The boundary contexts: one sequence of each length at which a page, a tile, a split or the prefetched part of
the block table begins or ends, each with schedules for 1, 2 and 148 CTAs."""

from __future__ import annotations

from mqa_ref.golden.model import LogitsCase
from mqa_ref.verification.pages import Order, Rest
from mqa_ref.verification.problems import Recipe

CTAS = (1, 2, 148)
# fmt: off
LENGTHS = (0, 1, 63, 64, 65, 127, 128, 129, 255, 256, 257, 383, 384, 511, 512, 513, 1024, 1025, 8191, 8192, 8193)
# fmt: on
LARGE = 4096
"""From this length on only some tiles are stored: the first two, those at token 4096, the last two."""

_DATA = ("bits", "wide", "amax", "rms")
_ORDERS: tuple[Order, ...] = ("shuffled", "descending", "repeated")
_RESTS: tuple[Rest, ...] = ("tight", "garbage", "zeros", "garbage", "tight")
_SHAPES = ((64, 8), (128, 16), (32, 8), (64, 32), (128, 8), (64, 64), (32, 16))


def _context(index: int, length: int) -> LogitsCase:
    """Shapes, values and tables take turns, with cycles that share no factor, so that all of them meet."""
    page, heads = _SHAPES[index % len(_SHAPES)]
    recipe = Recipe(
        f"context-{length}",
        f"one sequence of {length} tokens",
        (length,),
        CTAS[0],
        page=page,
        heads=heads if length < LARGE else 8,
        data=_DATA[index % len(_DATA)],
        order=_ORDERS[index % len(_ORDERS)],
        rest=_RESTS[index % len(_RESTS)],
    )
    return LogitsCase(recipe, ctas=CTAS, tiles=(0, 1, 31, 32, -2, -1) if length >= LARGE else ())


CONTEXTS: tuple[LogitsCase, ...] = tuple(_context(index, length) for index, length in enumerate(LENGTHS))
