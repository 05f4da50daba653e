"""Shapes: heads, query tokens, head sizes, pages, batches and block tables, with drawn data."""

from __future__ import annotations

from mqa_ref.golden.model import LogitsCase
from mqa_ref.verification.problems import Recipe

# fmt: off
SHAPES: tuple[LogitsCase, ...] = (
    LogitsCase(Recipe("shape-heads-4-next-2", "the fewest heads there are", (130,), 2, heads=4, next_n=2, data="wide")),
    LogitsCase(Recipe("shape-heads-12-next-2", "heads that are no power of two", (100,), 2, heads=12, next_n=2,
                      data="bits")),
    LogitsCase(Recipe("shape-heads-20-next-2", "N = 40", (70,), 2, heads=20, next_n=2, data="amax")),
    LogitsCase(Recipe("shape-heads-36-next-2", "N = 72", (66,), 2, heads=36, next_n=2, data="wide", page=128)),
    LogitsCase(Recipe("shape-heads-44-next-4", "N = 176", (40, 129), 2, heads=44, next_n=4, data="rms")),
    LogitsCase(Recipe("shape-heads-40-next-6", "six query tokens, N = 240", (90,), 2, heads=40, next_n=6, data="bits")),
    LogitsCase(Recipe("shape-heads-64-next-4", "the largest N, four query tokens", (70,), 2, heads=64, next_n=4,
                      data="bits", page=128)),
    LogitsCase(Recipe("shape-heads-128-next-2", "the largest N, two query tokens", (65,), 2, heads=128, next_n=2,
                      data="amax")),
    LogitsCase(Recipe("shape-heads-256", "the largest N, one query token", (67,), 2, heads=256, data="wide")),
    LogitsCase(Recipe("shape-heads-32", "a production shape", (300, 129), 4, heads=32, data="amax")),
    LogitsCase(Recipe("shape-heads-64", "the production shape", (257, 64), 4, heads=64, data="amax")),
    LogitsCase(Recipe("shape-dim-64", "half the head size", (130,), 2, heads=16, data="wide"), dim=64),
    LogitsCase(Recipe("shape-dim-32", "one K = 32 step for each dot product", (130,), 2, heads=16, data="wide"),
               dim=32),
    LogitsCase(Recipe("shape-page-32", "four pages a tile", (161,), 2, heads=16, page=32, data="bits",
                      order="descending")),
    LogitsCase(Recipe("shape-page-128", "one page a tile", (161,), 2, heads=16, page=128, data="bits",
                      order="repeated")),
    LogitsCase(Recipe("shape-context-below-next-n", "rows without a valid column", (1, 2, 0, 3, 4, 5), 2, heads=8,
                      next_n=4, data="bits")),
    LogitsCase(Recipe("shape-many-rows", "48 short sequences",
                      tuple(11 * row % 35 for row in range(48)), 148, heads=8, data="wide", rest="garbage"),
               ctas=(1, 2, 148)),
    LogitsCase(Recipe("shape-reversed-schedule", "the last CTAs take the remainder", (600, 300), 4, heads=8,
                      data="wide", form="reversed"), ctas=(4,), tiles=(0, -1)),
    LogitsCase(Recipe("shape-zero-rows", "rows without tokens first, in the middle and last", (0, 130, 0, 0, 60, 0), 2,
                      heads=16, data="bits"), ctas=(1, 2, 148)),
    LogitsCase(Recipe("shape-garbage-entries", "table entries nobody needs are no page numbers", (129, 40), 2,
                      heads=16, page=32, data="bits", rest="garbage")),
)
# fmt: on
