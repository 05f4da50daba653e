"""A broken kernel parts from the reference where it was broken, and nowhere before."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from mqa_ref.report.schema import faults_of_json

Edit = Callable[[str], str]
NEXT_N = 2
"""Of the problem "wide"."""


def unfuse(text: str) -> str:
    body = r"{ .reg .b64 T; mul.rn.f32x2 T, \2, \3; add.rn.f32x2 \1, T, \4; }"
    changed, count = re.subn(r"fma\.rn\.f32x2\s+(%rd\d+), (%rd\d+), (%rd\d+), (%rd\d+);", body, text)
    assert count == 32
    return changed


def swap_sum(text: str) -> str:
    """(s0x + s1x) + s0y in place of (s0x + s0y) + s1x, for every query token."""
    adds = list(re.finditer(r"add\.rn\.f32 (%r\d+), (%r\d+), (%r\d+);", text))
    assert len(adds) == 3 * NEXT_N
    for number in range(len(adds) - 3, -1, -3):
        first, second = (list(one.groups()) for one in adds[number : number + 2])
        first[2], second[2] = second[2], first[2]
        # The register of s1x is unpacked later: the two additions move down together.
        both = "\n".join(f"add.rn.f32 {d}, {a}, {b};" for d, a, b in (first, second))
        text = text[: adds[number + 1].start()] + both + text[adds[number + 1].end() :]
        text = text[: adds[number].start()] + text[adds[number].end() :]
    return text


def shift_scale(text: str) -> str:
    (load,) = re.finditer(r"ld\.shared\.b32\s+%r\d+, \[%r\d+\+(\d+)\];", text)
    return text[: load.start(1)] + str(int(load[1]) + 4) + text[load.end(1) :]


def swap_weights(text: str) -> str:
    pattern = r"ld\.shared\.v2\.b64(\s+)\{(%rd\d+), (%rd\d+)\}"
    return re.sub(pattern, r"ld.shared.v2.b64\1{\3, \2}", text, count=1)


def drop_half(text: str) -> str:
    return re.sub(r"\b1056964608\b|0f3F000000", "0f3F800000", text, count=1)


def first_product_twice(text: str) -> str:
    """The second K step adds nothing: its accumulate flag is off, so the first is lost."""
    return text.replace("mov.pred \t%p18, -1;", "mov.pred \t%p18, 0;")


BROKEN: dict[str, tuple[str, Edit, str, str, str]] = {
    # recipe, edit, the step, where in the kernel's source, what is said of it
    "unfused": (
        *("ties", unfuse, r"fma: head \d+ and head", r"epilogue\.py:\d+"),
        r"the reference does fma_f32\(.*\), the kernel mul\.rn\.f32x2\(.*\), then add\.rn\.f32x2\(.*\)",
    ),
    "another order": (
        *("wide", swap_sum, r"add: heads 0, 4 \.\.\. 60 and heads 1, 5", ""),
        r"another order: the reference has add: heads 0, 4 .* and heads 1, 5 .*, the kernel add: heads 0, 4 .* 2, 6",
    ),
    "scale": (
        *("wide", shift_scale, r"heads 0, 1 \.\.\. 63: mul", r"epilogue\.py:\d+"),
        r"takes 0x[0-9a-f]+ \(the scale of column 8\) instead of 0x[0-9a-f]+ \(the scale of column 7\)",
    ),
    "weights": (
        *("wide", swap_weights, r"head [01]: fma", r"epilogue\.py:\d+"),
        r"takes 0x[0-9a-f]+ \(the weight of head [23]\) instead of 0x[0-9a-f]+ \(the weight of head [01]\)",
    ),
    "half": (
        *("wide", drop_half, r"heads 0, 1 \.\.\. 63: mul", r"epilogue\.py:\d+"),
        "takes 0x3f800000 instead of 0x3f000000",
    ),
    "relu": (
        *("wide", lambda text: text.replace("abs.f32", "mov.b32"), r"head \d+: add", r"epilogue\.py:\d+"),
        r"the reference does abs_f32\(.*\), then add_f32\(.*\), the kernel add\.rn\.f32x2\(",
    ),
    "accumulate": (
        *("wide", first_product_twice, r"head 0: dot product, K step \d of 4", ""),
        "the accumulator before it is another|one side has no such step|the key's codes are others",
    ),
}


@pytest.mark.parametrize("name", list(BROKEN))
def test_a_broken_kernel_parts_where_it_was_broken(explained: Any, of: Any, name: str) -> None:
    recipe, edit, step, source, words = BROKEN[name]
    told = explained(recipe, edit=edit, row=0, column=None if name == "another order" else 7)
    found = of(told)
    assert (told.status, told.exit_code) == ("fail", 1)
    assert found.parts_at is not None
    assert all(row.agrees for row in found.rows[: found.parts_at] if row.both)
    assert re.search(rf"they part at {step}", found.verdict), found.verdict
    assert re.search(source, found.verdict), found.verdict
    assert re.search(words, found.verdict), found.verdict
    assert found.expected != found.actual
    assert faults_of_json(json.loads(told.to_json())) == ()


def test_another_order_that_ends_in_the_same_bits(explained: Any, of: Any) -> None:
    told = explained("wide", edit=swap_sum, row=0, column=3)
    assert (told.status, of(told).parts_at) == ("pass", None)
    assert "the stored logit is right" in of(told).verdict
    assert "1 steps of the reference the kernel does not have, 1 it has besides" in of(told).verdict


def test_by_default_the_first_wrong_logit(explained: Any, of: Any) -> None:
    told = explained("ties", edit=unfuse)
    assert told.chosen.startswith("the first wrong logit (value), one of ")
    assert not of(told).agrees
    assert explained("ties", row=0).chosen == "the first valid logit of row 0: none is wrong"


def test_nothing_was_stored(explained: Any, of: Any) -> None:
    def silent(text: str) -> str:
        return re.sub(r"st\.global\.b32[^;]*;", "", text)

    told = explained("ties", edit=silent)
    found = of(told)
    assert (told.status, found.actual, found.agrees) == ("fail", None, False)
    assert found.verdict == "CTA 0 stores nothing at row 0 column 0"
