"""Special values: what the formats, the machines and the order of the epilogue do at their limits."""

from __future__ import annotations

from mqa_ref.golden.model import Claim, LogitsCase
from mqa_ref.verification.problems import Recipe

NAN, INF = float("nan"), float("inf")


def _small(name: str, why: str, tokens: int, rows: int = 1) -> Recipe:
    return Recipe(name, why, (tokens,) * rows, 1, heads=8)


# fmt: off
VALUES: tuple[LogitsCase, ...] = (
    LogitsCase(_small("value-every-code", "every e4m3fn code once: the logit is the code's magnitude", 256),
               edit="every_code",
               claims=(Claim(0, 0x00, 0.0), Claim(0, 0x01, 2.0**-9), Claim(0, 0x08, 2.0**-6), Claim(0, 0x38, 1.0),
                       Claim(0, 0x7E, 448.0), Claim(0, 0x80, 0.0), Claim(0, 0x81, 2.0**-9), Claim(0, 0xFE, 448.0),
                       *(Claim(0, code, NAN, "*-fp32-*.folded") for code in (0x7F, 0xFF)),
                       *(Claim(0, code, 0.0, "*-fp32-*.max") for code in (0x7F, 0xFF)),
                       *(Claim(0, code, 0.0, "*-fp16-*") for code in (0x7F, 0xFF)))),
    LogitsCase(_small("value-fp16-overflow", "448 * 448 is beyond fp16", 4), edit="fp16_overflow",
               claims=(Claim(0, 0, 196.0, "*-fp32-*"), Claim(0, 0, INF, "*-fp16-*"), Claim(0, 1, 0.4375),
                       Claim(0, 2, 0.0))),
    LogitsCase(_small("value-fp16-chain", "an fp16 accumulator overflows on the way to 0", 2), edit="fp16_chain",
               claims=(Claim(0, 0, 0.0, "fp32-*"), Claim(0, 0, INF, "fp16-*.sm*"), Claim(0, 0, 0.0, "fp16-*.exact"),
                       Claim(0, 1, 200704.0, "*-fp32-*"), Claim(0, 1, INF, "*-fp16-*"))),
    LogitsCase(_small("value-fp16-scales", "scales that fp16 cannot hold", 8), edit="small_scales",
               claims=(*(Claim(0, i, value, "*-fp32-*") for i, value in enumerate(
                           (2.0**-26, 2.0**-24, 1.5 * 2.0**-24, 2.0**-15, 65519.0, 65520.0, 1 + 2.0**-12, 1.0))),
                       *(Claim(0, i, value, "*-fp16-*") for i, value in enumerate(
                           (0.0, 2.0**-24, 2.0**-23, 2.0**-15, 65504.0, INF, 1.0, 1.0))))),
    LogitsCase(_small("value-weights", "weights inf, -inf, NaN, beyond fp16, below fp16", 2, rows=6),
               edit="odd_weights",
               claims=(*(Claim(row, 0, value) for row, value in enumerate((NAN, INF, -INF, NAN))),
                       Claim(4, 0, 65520.0, "*-fp32-*"), Claim(4, 0, INF, "*-fp16-*"),
                       Claim(5, 0, 2.0**-26, "*-fp32-*"), Claim(5, 0, 0.0, "*-fp16-*"))),
    LogitsCase(_small("value-cut-terms", "what a machine cuts below its fraction bits", 3), edit="cut_terms",
               claims=(Claim(0, 0, 0.0, "*.sm*"), Claim(0, 0, 2.0**-18, "*.exact*"),
                       Claim(0, 1, 0.0, "*.sm90*"), Claim(0, 1, 2.0**-9, "*.sm100*"), Claim(0, 1, 2.0**-9, "*.exact*"),
                       Claim(0, 2, 8.0))),
    LogitsCase(_small("value-subnormal-sums", "fp32-subnormal products: the generations differ", 2),
               edit="subnormal_sums",
               claims=(Claim(0, 0, 2.0**-149, "*-fp32-*.folded"), Claim(0, 0, 0.0, "*-fp32-*.max"),
                       Claim(0, 0, 0.0, "*-fp16-*"))),
    LogitsCase(_small("value-order-fp32", "the order of the four partial sums in fp32", 2), edit="order_fp32",
               claims=(Claim(0, 0, 0.0, "*-fp32-*"), Claim(0, 0, NAN, "*-fp16-*"))),
    LogitsCase(_small("value-order-fp16", "the order of the four partial sums in fp16", 2), edit="order_fp16",
               claims=(Claim(0, 0, 2.0),)),
    LogitsCase(_small("value-one", "one head, one weight, ones: the simplest logit there is", 2), edit="bare",
               claims=(Claim(0, 0, 1.0), Claim(0, 1, 1.0))),
    LogitsCase(Recipe("value-nan-keys", "one NaN code in every seventh key", (150, 80), 2, heads=16, data="nan_keys")),
    LogitsCase(Recipe("value-nan-query", "one NaN code in one row's queries", (90, 70), 2, heads=16, next_n=2,
                      data="nan_query")),
    LogitsCase(Recipe("value-special-scales", "NaN, infinite, zero, subnormal, extreme scales", (120,), 2, heads=16,
                      data="special_scales")),
    LogitsCase(Recipe("value-plain-scales", "finite scales of all sizes and signs", (130,), 2, heads=16,
                      data="plain_scales")),
    LogitsCase(Recipe("value-fma-ties", "one rounding against two at every token", (70,), 2, heads=16, next_n=2,
                      data="fma_ties")),
    LogitsCase(Recipe("value-weights-overflow", "weights up to FLT_MAX, scores of either sign", (100, 30), 2, heads=16,
                      next_n=2, data="overflow")),
)
# fmt: on
