"""One tensor-core step with every rule as a choice: what a vector must give under each thinkable machine.

``mqa_ref.numerics.machines`` knows the machines there are; this knows the machines there could be. It works on exact
integers, multiples of 2**-_SCALE, one output element at a time; with the published choices it is
``numerics.scalar.mma_step`` (held against it in the tests).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from mqa_ref.numerics import E4M3FN
from mqa_ref.numerics.formats import FP32, RZ, Format
from mqa_ref.numerics.machines import ACCUMULATORS, STEP_K, FinalRounding, MachineModel

Cut = Literal["zero", "down", "nearest"]
Direction = Literal["rz", "rne", "down", "up"]
Nan = Literal["canonical", "quiet", "accumulator's"]
Zero = Literal["plus", "ieee", "minus on cancellation"]

_QUIET = {"fp32": 0x7FC00000, "fp16": 0x7E00}
_SCALE = 192
"""An fp32 number is a multiple of 2**-149, and the last kept bit of a sum is at least 2**(-126 - 40)."""


@dataclass(frozen=True)
class Arithmetic:
    """The rules of one step. The defaults, but for ``fraction_bits`` and ``final_bits``, are the published ones.

    ``fraction_bits``: bits kept below the largest exponent, None for all. ``cut``: how the others go. ``group``: how
    many products, neighbours in k, are added at once; the sums are chained. ``accumulator_is_term``: it is cut with
    the products, else added after them. ``normalised``: a product's exponent is that of its value, not the sum of
    its factors'. ``operands_normalised``: so is a subnormal factor's. ``zeros_count``: a zero factor's exponent takes
    part. ``final_bits`` and ``final``: the rounding of the sum. ``through``: fraction bits that a sum is cut to, toward
    zero, before it is rounded; None for no such step. ``overflow_saturates``: instead of inf. ``infinity_stays``: an
    infinite accumulator comes out, else NaN. ``operands_flushed``,
    ``accumulators_flushed``: subnormals count as zero. ``zero``: the sign of a zero sum. ``nan``: which NaN comes out.
    """

    fraction_bits: int | None
    final_bits: int
    final: Direction = "rz"
    cut: Cut = "zero"
    group: int = STEP_K
    accumulator_is_term: bool = True
    normalised: bool = False
    operands_normalised: bool = False
    zeros_count: bool = False
    through: int | None = None
    overflow_saturates: bool = False
    operands_flushed: bool = False
    accumulators_flushed: bool = False
    infinity_stays: bool = True
    zero: Zero = "plus"
    nan: Nan = "canonical"


def of_model(model: MachineModel, acc: str) -> Arithmetic:
    """The rules of a machine model."""
    rule = model.final(acc)
    return Arithmetic(model.fraction_bits, rule.fraction_bits, "rz" if rule.rounding == RZ else "rne")


@dataclass(frozen=True)
class _Term:
    """``value``: in units of 2**-_SCALE."""

    value: int
    exponent: int
    negative: bool


def step(rules: Arithmetic, a: Sequence[int], b: Sequence[int], c: int, acc: str) -> int:
    """The code that 32 pairs of e4m3fn codes and the accumulator code ``c`` of format ``acc`` give."""
    fmt = ACCUMULATORS[acc]
    if fmt.is_nan(c) or any(code & 0x7F == 0x7F for code in (*a, *b)):
        if rules.nan == "accumulator's" and fmt.is_nan(c):
            return c
        return _QUIET[acc] if rules.nan == "quiet" else fmt.canonical_nan
    if fmt.is_inf(c):
        return c if rules.infinity_stays else fmt.canonical_nan
    how = (rules.normalised, rules.operands_normalised, rules.operands_flushed)
    products = [_product(x, y, *how) for x, y in zip(a, b, strict=True)]
    for start in range(0, len(products), rules.group):
        c = _add(rules, products[start : start + rules.group], _accumulator(rules, c, fmt), acc)
        if fmt.is_inf(c):
            return c
    return c


@lru_cache(maxsize=4096)
def _product(x: int, y: int, normalised: bool, operands_normalised: bool, flushed: bool) -> _Term:
    (first, e), (second, f) = (_factor(code, operands_normalised, flushed) for code in (x, y))
    value = first * second
    exponent = _exponent(value) if normalised and value else e + f
    return _Term(_scaled(value), exponent, bool((x ^ y) & 0x80))


def _factor(code: int, normalised: bool, flushed: bool) -> tuple[Fraction, int]:
    subnormal = code & E4M3FN.exponent_mask == 0
    value = Fraction(0) if subnormal and flushed else E4M3FN.value(code)
    return value, _exponent(value) if subnormal and value and normalised else E4M3FN.exponent(code)


def _accumulator(rules: Arithmetic, code: int, fmt: Format) -> _Term:
    flushed = rules.accumulators_flushed and code & fmt.exponent_mask == 0
    value = 0 if flushed else _scaled(fmt.value(code))
    return _Term(value, fmt.exponent(code), bool(fmt.sign(code)))


def _add(rules: Arithmetic, products: Sequence[_Term], accumulator: _Term, acc: str) -> int:
    terms = [*products, accumulator] if rules.accumulator_is_term else list(products)
    total = _cut_sum(rules, terms)
    if not rules.accumulator_is_term:
        total += accumulator.value
    if total == 0:
        negative = all(term.negative for term in (*products, accumulator))
        cancelled = any(term.value for term in (*products, accumulator))
        minus = negative if rules.zero == "ieee" else cancelled and rules.zero == "minus on cancellation"
        return ACCUMULATORS[acc].zero(1 if minus else 0)
    flags = (rules.overflow_saturates, rules.accumulators_flushed)
    code = _round(total, rules.final_bits, rules.final, rules.through, *flags, acc)
    return 0 if rules.zero == "plus" and ACCUMULATORS[acc].is_zero(code) else code


def _cut_sum(rules: Arithmetic, terms: Sequence[_Term]) -> int:
    if rules.fraction_bits is None:
        return sum(term.value for term in terms)
    # An accumulator that is zero has the least exponent, so it changes nothing where zeros count.
    largest = max((term.exponent for term in terms if term.value or rules.zeros_count), default=0)
    dropped = largest - rules.fraction_bits + _SCALE
    cut = _CUTS[rules.cut]
    return sum(cut(term.value, dropped) for term in terms if term.value) << dropped


def _toward_zero(value: int, bits: int) -> int:
    return value >> bits if value >= 0 else -(-value >> bits)


def _nearest(value: int, bits: int) -> int:
    return round(Fraction(value, 1 << bits))  # ties to even


_CUTS: Mapping[Cut, Callable[[int, int], int]] = {
    "zero": _toward_zero,
    "down": lambda value, bits: value >> bits,
    "nearest": _nearest,
}


@lru_cache(maxsize=65_536)
def _round(
    total: int, bits: int, final: Direction, through: int | None, saturates: bool, flushed: bool, acc: str
) -> int:
    fmt, number = ACCUMULATORS[acc], Fraction(total, 1 << _SCALE)
    if through is not None:
        number = FP32.value(FinalRounding(FP32, through, RZ).encode(number))
    code = FinalRounding(fmt, bits, "rne" if final == "rne" else "rz").encode(number)
    if final in ("down", "up") and fmt.value(code) != number and (number < 0) == (final == "down"):
        code += 1 << (fmt.fraction_bits - bits)
    if fmt.is_inf(code) and saturates:
        code -= 1
    return fmt.zero(0) if flushed and code & fmt.exponent_mask == 0 else code


def _scaled(value: Fraction) -> int:
    scaled = value * (1 << _SCALE)
    assert scaled.denominator == 1, "every number of a step is a multiple of the unit"
    return scaled.numerator


def _exponent(value: Fraction) -> int:
    """floor(log2 |value|) of a nonzero number that _scaled takes."""
    return abs(_scaled(value)).bit_length() - 1 - _SCALE
