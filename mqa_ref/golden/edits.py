"""Crafted values: each edit turns drawn data into a launch whose logits can be worked out on paper.

All start from ``_bare``: one head with weight 1 whose query is (1, 0, 0, ...), keys (1, 0, 0, ...), scales 1,
everything else 0. A logit is then relu(1) * 1 * 1. What a case claims about its logits stands in the case
table. Source of the rules that the values attack: op.md ("Dtype flows") and numerics.md ("Tensor-core step").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from mqa_ref.golden.draft import Draft

ONE, MINUS_ONE, TWO_POW_MINUS_9, LARGEST, MINUS_LARGEST = 0x38, 0xB8, 0x01, 0x7E, 0xFE
"""Codes of 1, -1, 2^-9, 448 and -448 in e4m3fn."""
FLT_MAX = float(np.finfo(np.float32).max)


def _bare(draft: Draft) -> None:
    draft.q[...] = 0
    draft.q[:, :, 0, 0] = ONE
    draft.weights[...] = 0
    draft.weights[:, 0] = 1
    for sequence in range(len(draft.lengths)):
        page, slot = draft.places(sequence)
        draft.codes[page, slot] = 0
        draft.codes[page, slot, 0] = ONE
        draft.scales[page, slot] = 1


def _keys(draft: Draft, element: int, codes: list[int], first: int = 0) -> None:
    """One element of the keys of tokens ``first`` .. of sequence 0."""
    page, slot = draft.places(0)
    stop = first + len(codes)
    draft.codes[page[first:stop], slot[first:stop], element] = codes


def _scales(draft: Draft, values: list[float]) -> None:
    """The scales of the first tokens of sequence 0."""
    page, slot = draft.places(0)
    draft.scales[page[: len(values)], slot[: len(values)]] = values


def _queries(draft: Draft, head: int, codes: list[int]) -> None:
    """The first elements of one head's queries in every row."""
    draft.q[:, :, head, : len(codes)] = codes


def _relu_first(draft: Draft) -> None:
    """Scores 1 and -1, weights 1 and 1: 1 if the ReLU comes before the sum, 0 if after."""
    _bare(draft)
    _queries(draft, 1, [MINUS_ONE])
    draft.weights[:, 1] = 1


def _folded_half(draft: Draft) -> None:
    """Score 1, weight FLT_MAX, scale 1/2: (1 + 1) * FLT_MAX overflows before the final half."""
    _bare(draft)
    draft.weights[:, 0] = FLT_MAX
    page, slot = draft.places(0)
    draft.scales[page, slot] = 0.5


def _nan_key(draft: Draft) -> None:
    """The two NaN codes, each once, against a query that is 0 there."""
    _bare(draft)
    _keys(draft, 5, [0x7F, 0xFF], first=3)


def _nan_query(draft: Draft) -> None:
    """A NaN code in a head without weight of the first row only."""
    _bare(draft)
    draft.q[0, 0, 2, 9] = 0xFF


def _nan_scale(draft: Draft) -> None:
    """Scales NaN, inf, -inf, 0, -0 and -1 for tokens 0 to 5."""
    _bare(draft)
    _scales(draft, [float("nan"), float("inf"), float("-inf"), 0.0, -0.0, -1.0])


def _scale_counts(draft: Draft) -> None:
    """Token t has the scale t + 1, so its logit is t + 1."""
    _bare(draft)
    _scales(draft, [float(token + 1) for token in range(int(draft.lengths[0]))])


def _token_counts(draft: Draft) -> None:
    """Token t has the code 1 + t % 126 in its key, so neighbours differ and every slot of a page counts."""
    _bare(draft)
    _keys(draft, 0, [1 + token % 126 for token in range(int(draft.lengths[0]))])


def _minus_times_minus(draft: Draft) -> None:
    """-1 times -1: codes from 0x80 on in both operands; sign extension would make other numbers of them."""
    _bare(draft)
    _queries(draft, 0, [MINUS_ONE])
    _keys(draft, 0, [MINUS_ONE] * int(draft.lengths[0]))


def _every_code(draft: Draft) -> None:
    """Token t has the code t; head 0 takes its positive part, head 1 its negative part: the logit is |value of t|."""
    _relu_first(draft)
    _keys(draft, 0, list(range(256)))


def _fp16_overflow(draft: Draft) -> None:
    """448 * 448 = 200704 is above 65504; the scale 2^-10 brings 196 back where nothing overflowed."""
    _bare(draft)
    _queries(draft, 0, [LARGEST])
    _keys(draft, 0, [LARGEST, ONE, MINUS_LARGEST])
    page, slot = draft.places(0)
    draft.scales[page, slot] = 2.0**-10


def _fp16_chain(draft: Draft) -> None:
    """448 * 448 in the first K = 32 step and -448 * 448 in the second: the sum is 0, the fp16 accumulator is inf by
    then."""
    _bare(draft)
    draft.q[:, :, 0, 32] = LARGEST
    _queries(draft, 0, [LARGEST])
    _keys(draft, 0, [LARGEST, LARGEST])
    _keys(draft, 32, [MINUS_LARGEST, 0])


def _small_scales(draft: Draft) -> None:
    """Scales that fp16 makes 0, rounds as subnormals, or makes inf."""
    _bare(draft)
    _scales(draft, [2.0**-26, 2.0**-24, 1.5 * 2.0**-24, 2.0**-15, 65519.0, 65520.0, 1 + 2.0**-12])


def _odd_weights(draft: Draft) -> None:
    """One kind of weight a row: inf on a score of 0, inf, -inf and NaN on 1, 65520 (inf in fp16), 2^-26 (0 there)."""
    _bare(draft)
    draft.q[0, :, 0, 0] = 0
    inf = float("inf")
    draft.weights[:, 0] = [inf, inf, -inf, float("nan"), 65520.0, 2.0**-26]


def _cut_terms(draft: Draft) -> None:
    """448 * 448 + x - 448 * 448 in one step, x = 2^-18, 2^-9, 8: what is below the machine's fraction bits is cut.

    The largest exponent is 16 (two significands of 1.75 are not normalised), so sm100 keeps multiples of 2^-9, sm90
    multiples of 2^3, and an exact sum keeps 2^-18."""
    _bare(draft)
    _queries(draft, 0, [LARGEST, TWO_POW_MINUS_9, LARGEST, ONE])
    _keys(draft, 0, [LARGEST] * 3)
    _keys(draft, 2, [MINUS_LARGEST] * 3)
    _keys(draft, 1, [TWO_POW_MINUS_9, ONE, 0])
    _keys(draft, 3, [0, 0, 0x50])


def _subnormal_sums(draft: Draft) -> None:
    """Score 1/2 and weight 2^-149 in heads 0 and 4, which share a partial sum: each product 2^-150 rounds to 0 alone,
    doubled it does not."""
    _bare(draft)
    for head in (0, 4):
        _queries(draft, head, [0x30])
        draft.weights[:, head] = 2.0**-149


def _order_fp32(draft: Draft) -> None:
    """Partial sums 2^24, 1, 1, -2^24: ((s0x + s0y) + s1x) + s1y is 0, any order that adds the ones first gives 2."""
    _four_sums(draft, [2.0**24, 1.0, 1.0, -(2.0**24)])


def _order_fp16(draft: Draft) -> None:
    """Partial sums 2048, 1, -2048, 1: (s0x + s1x) + (s0y + s1y) is 2 in fp16, one after the other gives 1."""
    _four_sums(draft, [2048.0, 1.0, -2048.0, 1.0])


def _four_sums(draft: Draft, weights: list[float]) -> None:
    _bare(draft)
    draft.q[:, :, :4, 0] = ONE
    draft.weights[:, :4] = weights


EDITS: Mapping[str, Callable[[Draft], None]] = {
    "bare": _bare,
    "cut_terms": _cut_terms,
    "every_code": _every_code,
    "folded_half": _folded_half,
    "fp16_chain": _fp16_chain,
    "fp16_overflow": _fp16_overflow,
    "minus_times_minus": _minus_times_minus,
    "nan_key": _nan_key,
    "nan_query": _nan_query,
    "nan_scale": _nan_scale,
    "odd_weights": _odd_weights,
    "order_fp16": _order_fp16,
    "order_fp32": _order_fp32,
    "relu_first": _relu_first,
    "scale_counts": _scale_counts,
    "small_scales": _small_scales,
    "subnormal_sums": _subnormal_sums,
    "token_counts": _token_counts,
}
"""The edits by name."""
