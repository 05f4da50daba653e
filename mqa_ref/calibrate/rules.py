"""The questions a calibration answers, each with the answers that can be told apart and the one that is published.

Source of the published answers: ``mqa_ref.numerics.machines``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from mqa_ref.calibrate.arithmetic import Arithmetic
from mqa_ref.numerics.machines import ACCUMULATORS, MAX_FRACTION_BITS, STEP_K

Change = Callable[[Arithmetic], Arithmetic]


@dataclass(frozen=True)
class Rule:
    """One question. ``name``: of the rule and its vectors. ``text``: what it says. ``answers``: text -> what it makes
    of a machine's rules. ``accumulators``: the accumulator formats that it is asked for. ``refines``: a rule that it
    goes on with, where that one leaves several answers."""

    name: str
    text: str
    answers: Mapping[str, Change]
    accumulators: tuple[str, ...] = tuple(ACCUMULATORS)
    refines: str = ""


def _set(**fields: object) -> Change:
    return lambda rules: replace(rules, **fields)  # type: ignore[arg-type]  # the table below names real fields


EXACT = "all bits"
"""The answer for a sum that is not cut, as far as the vectors reach."""


def _fraction_bits() -> Mapping[str, Change]:
    told = {str(bits): _set(fraction_bits=bits) for bits in range(1, MAX_FRACTION_BITS + 1)}
    return told | {EXACT: _set(fraction_bits=None)}


def _final32() -> Mapping[str, Change]:
    """Widths from 23 down: of those that cannot be told apart the first counts."""
    names = {"rz": "toward zero", "rne": "to nearest even", "down": "down", "up": "up"}
    told: dict[str, Change] = {}
    for bits in (23, 13, *range(22, 13, -1), *range(12, 9, -1)):
        for direction, text in names.items():
            told[f"{text} to {bits} bits"] = _set(final_bits=bits, final=direction, through=None)
    return told


_FINAL16: Mapping[str, Change] = {
    "to nearest even": _set(final_bits=10, final="rne", through=None),
    "toward zero": _set(final_bits=10, final="rz", through=None),
    "down": _set(final_bits=10, final="down", through=None),
    "up": _set(final_bits=10, final="up", through=None),
    "toward zero to 23 bits, then to nearest even": _set(final_bits=10, final="rne", through=23),
    "toward zero to 13 bits, then to nearest even": _set(final_bits=10, final="rne", through=13),
}

RULES: tuple[Rule, ...] = (
    Rule("fraction_bits", "F, the bits kept below the largest exponent of a step", _fraction_bits()),
    Rule(
        "fraction_bits_deep",
        "F, where products reach no further",
        _fraction_bits(),
        refines="fraction_bits",
    ),
    Rule(
        "subnormal_operands",
        "subnormal factors",
        {"kept": _set(operands_flushed=False), "taken for zero": _set(operands_flushed=True)},
    ),
    Rule(
        "subnormal_accumulators",
        "subnormal accumulators and results",
        {"kept": _set(accumulators_flushed=False), "taken for zero": _set(accumulators_flushed=True)},
    ),
    Rule(
        "cut",
        "how the bits below are dropped",
        {"toward zero": _set(cut="zero"), "down": _set(cut="down"), "to nearest even": _set(cut="nearest")},
    ),
    Rule(
        "group",
        "how many products are added at once",
        {str(size): _set(group=size) for size in (STEP_K, 16, 8, 4, 2)},
    ),
    Rule(
        "accumulator",
        "how the accumulator comes in",
        {
            "as a term, cut with the products": _set(accumulator_is_term=True),
            "added to their sum": _set(accumulator_is_term=False),
        },
    ),
    Rule(
        "product_exponent",
        "the exponent of a product",
        {
            "the sum of its factors'": _set(normalised=False),
            "that of its value": _set(normalised=True),
        },
    ),
    Rule(
        "subnormal_exponent",
        "the exponent of a subnormal factor",
        {"-6": _set(operands_normalised=False), "that of its value": _set(operands_normalised=True)},
    ),
    Rule(
        "zero_terms",
        "whether a product that is zero has an exponent",
        {"no": _set(zeros_count=False), "yes": _set(zeros_count=True)},
    ),
    Rule("final", "the rounding of the sum", _final32(), ("fp32",)),
    Rule("final", "the rounding of the sum", _FINAL16, ("fp16",)),
    Rule(
        "zero_sign",
        "the sign of a sum that is zero",
        {
            "always plus": _set(zero="plus"),
            "minus when all terms are -0": _set(zero="ieee"),
            "minus on cancellation": _set(zero="minus on cancellation"),
        },
    ),
    Rule(
        "nan",
        "the NaN that comes out",
        {
            "0x7fffffff, in fp16 0x7fff": _set(nan="canonical"),
            "0x7fc00000, in fp16 0x7e00": _set(nan="quiet"),
            "the accumulator's own, else 0x7fffffff": _set(nan="accumulator's"),
        },
    ),
    Rule(
        "infinity",
        "an infinite accumulator",
        {"stays": _set(infinity_stays=True), "becomes NaN": _set(infinity_stays=False)},
    ),
    Rule(
        "overflow",
        "a sum past the largest number",
        {"inf": _set(overflow_saturates=False), "the largest number": _set(overflow_saturates=True)},
        ("fp16",),
    ),
)
"""In the order in which they are decided: each takes the answers of those before it."""
