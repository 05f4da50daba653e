"""The crafted vectors: 32 pairs of e4m3fn codes and an accumulator each, in families, one for each rule.

The pattern behind most of them: two large products that cancel, so that the result is what the cut has left of a small
third term, exactly. Where the answer depends on the number F of kept bits, a family has a member for every F that can
be; those that decide at the F of the machine at hand are picked afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from mqa_ref.numerics import E4M3FN
from mqa_ref.numerics.formats import FP32, RZ
from mqa_ref.numerics.machines import ACCUMULATORS, STEP_K

ONE, TOP, NAN = 0x38, 0x7E, 0x7F
"""e4m3fn codes: 1, the largest number 448, NaN."""
MINUS = 0x80
LEAST, LEAST_PRODUCT = -12, -18
"""Exponents of the least product of normal powers of two, and of any."""
LARGE = 16
"""Exponent of the largest product of powers of two."""
DEEPEST = 46
"""How far below the large terms the accumulators of the families go."""

Pair = tuple[int, int]


@dataclass(frozen=True)
class Vector:
    """One vector. ``rule`` names its family; ``a`` and ``b`` hold 32 codes each, ``c`` is a code of the accumulator."""

    rule: str
    name: str
    a: tuple[int, ...]
    b: tuple[int, ...]
    c: int


def _code(exponent: int) -> int:
    """2**exponent as a code, -9..8."""
    return E4M3FN.encode(Fraction(2) ** exponent)


def power(exponent: int, sign: int = 1) -> Pair:
    """A pair of codes whose product is ``sign`` * 2**exponent, -18..16; its factors are normal from -12 on."""
    first = max(-9, min(8, exponent - exponent // 2)) if exponent >= LEAST else -9
    second = exponent - first
    return _code(first) | (MINUS if sign < 0 else 0), _code(second)


def _vector(rule: str, name: str, pairs: dict[int, Pair] | list[Pair], c: int = 0) -> Vector:
    """Pairs by position in k; the others are zeros."""
    placed = dict(enumerate(pairs)) if isinstance(pairs, list) else pairs
    a = tuple(placed.get(k, (0, 0))[0] for k in range(STEP_K))
    b = tuple(placed.get(k, (0, 0))[1] for k in range(STEP_K))
    return Vector(rule, name, a, b, c)


def _number(value: Fraction, acc: str) -> int | None:
    """The accumulator code of an exactly representable number, None for another."""
    fmt = ACCUMULATORS[acc]
    code = fmt.encode(value, RZ)
    return code if fmt.value(code) == value else None


_TWO = Fraction(2)
_CANCEL = [power(LARGE), power(LARGE, -1)]


def _fraction_bits(acc: str) -> Iterator[Vector]:
    """A small term k bits below two large ones that cancel: it is there when k <= F. By products as far as they reach
    (k <= 34); beyond by the accumulator, a family of its own, since that may not be a term."""
    for k in range(1, DEEPEST + 1):
        name = f"a term {k} bits below the largest"
        if LARGE - k >= LEAST_PRODUCT:
            yield _vector("fraction_bits", name, [*_CANCEL, power(LARGE - k)])
        elif (c := _number(_TWO ** (LARGE - k), acc)) is not None:
            yield _vector("fraction_bits_deep", f"{name}, the accumulator", _CANCEL, c)


def _cut(acc: str) -> Iterator[Vector]:  # noqa: ARG001 - the same for both
    """1.5 units of the last kept place, of either sign: toward zero it becomes 1, down 1 or -2, to nearest 2."""
    for k in range(4, LARGE - LEAST + 1):
        for sign in (1, -1):
            name = f"{'-' if sign < 0 else ''}1.5 times 2^-{k} of the largest"
            first, second = power(LARGE - k, sign)
            yield _vector("cut", name, [*_CANCEL, (first + 4, second)])  # a fraction field of 4 is 1.5


def _group(acc: str) -> Iterator[Vector]:  # noqa: ARG001 - the same for both
    """Two large products at the first places, the least product at a later one: it is cut only when one sum holds all
    three."""
    for place in (2, 3, 4, 7, 8, 15, 16, 23, 24, 31):
        name = f"large products at 0 and 1, the least at {place}"
        yield _vector("group", name, {0: _CANCEL[0], 1: _CANCEL[1], place: power(LEAST_PRODUCT)})
    for first, second in ((0, 16), (7, 8), (15, 16), (15, 31)):
        name = f"large products at {first} and {second}, the least at {second - 1 or 1}"
        place = second - 1 if second - 1 != first else second + 1
        yield _vector("group", name, {first: _CANCEL[0], second: _CANCEL[1], place: power(LEAST_PRODUCT)})


def _accumulator(acc: str) -> Iterator[Vector]:
    """A small accumulator beside large products, and a large one beside small products."""
    for k in range(8, DEEPEST + 1):
        if (c := _number(_TWO ** (LARGE - k), acc)) is not None:
            yield _vector("accumulator", f"an accumulator {k} bits below the products", _CANCEL, c)
    top = 15
    c = ACCUMULATORS[acc].encode(-(_TWO**top))
    for k in range(8, top + 1 - LEAST_PRODUCT):
        name = f"a product {k} bits below the accumulator and the other product"
        yield _vector("accumulator", name, [power(top), power(top - k)], c)


def _scaled(rule: str, name: str, pairs: list[Pair], exponent: int, acc: str) -> Iterator[Vector]:
    """``pairs``, which cancel, and a power of two k bits below ``exponent``, as the accumulator."""
    for k in range(6, DEEPEST + 1):
        if (c := _number(_TWO ** (exponent - k), acc)) is not None:
            yield _vector(rule, f"{name}, the accumulator {k} bits below", pairs, c)


def _product_exponent(acc: str) -> Iterator[Vector]:
    """Products of 416 = 1.625 * 2^8 by itself, 2.640625 * 2^16: written with the exponent 16, or normalised with 17."""
    pairs = [(0x7D, 0x7D), (0x7D | MINUS, 0x7D)]
    for k in range(6, LARGE - LEAST_PRODUCT + 1):
        name = f"products of 2.64 * 2^16 that cancel, a term at 2^{LARGE - k}"
        yield _vector("product_exponent", name, [*pairs, power(LARGE - k)])
    yield from _scaled("product_exponent", "products of 2.64 * 2^16 that cancel", pairs, LARGE, acc)


def _subnormal_exponent(acc: str) -> Iterator[Vector]:
    """Products of the least subnormal 2^-9 and 2^8: the exponent is -6 + 8 when subnormals keep theirs, -1 when not."""
    pairs = [(0x01, _code(8)), (0x01 | MINUS, _code(8))]
    yield from _scaled("subnormal_exponent", "subnormal products that cancel", pairs, 2, acc)


def _zero_terms(acc: str) -> Iterator[Vector]:
    """A zero times 448: whether its exponent, -6 + 8, makes the accumulator be cut."""
    yield from _scaled("zero_terms", "zero times 448", [(0, TOP)], 2, acc)


def _final(acc: str) -> Iterator[Vector]:
    """Thirty products of 1 and a term or two far below: their sum has more bits than any of them, so that its last
    ones show the rounding."""
    many = [(ONE, ONE)] * 30
    for k in range(3, 31):
        for sign in (1, -1):
            flip = MINUS if sign < 0 else 0
            base = [(x | flip, y) for x, y in many]
            word = "-" if sign < 0 else ""
            if -k - 1 >= LEAST_PRODUCT:
                yield _vector("final", f"{word}(30 + 2^-{k})", [*base, power(-k, sign)])
                name = f"{word}(30 + 2^-{k} + 2^-{k + 1})"
                yield _vector("final", name, [*base, power(-k, sign), power(-k - 1, sign)])
            if acc == "fp16" and k > 7 and (c := _number(sign * _TWO**-k, acc)) is not None:
                name = f"{word}(30 + 2^-7 + 2^-{k}), the last one the accumulator"
                yield _vector("final", name, [*base, power(-7, sign)], c)
            for high in (k - 1, 7):
                c = _number(sign * (_TWO**-high + _TWO**-k), acc) if high < k else None
                if c is not None:
                    yield _vector("final", f"{word}(30 + 2^-{high} + 2^-{k}), the accumulator", base, c)


def _subnormals(acc: str) -> Iterator[Vector]:
    """Subnormal factors, and accumulators and results that are subnormal in their format."""
    fmt = ACCUMULATORS[acc]
    for code in (0x01, 0x03, 0x07, 0x81):
        yield _vector("subnormal_operands", f"{code:#04x} times 1", [(code, ONE)])
    yield _vector("subnormal_operands", "the least product, 2^-18", [(0x01, 0x01)])
    # With few fraction bits, so that no final rounding touches them; in fp16, where all are to nearest, the least too.
    top = 1 << (fmt.fraction_bits - 1)
    for code in (top, top | top >> 1, fmt.sign_mask | top >> 1, *((0x01,) if acc == "fp16" else ())):
        yield _vector("subnormal_accumulators", f"the accumulator {code:#x} alone", [], code)
    if acc == "fp16":
        yield _vector("subnormal_accumulators", "a product of 2^-18 as an fp16 result", [(0x01, 0x01)])


def _zero_sign(acc: str) -> Iterator[Vector]:
    minus = ACCUMULATORS[acc].sign_mask
    yield _vector("zero_sign", "nothing but +0", [])
    yield _vector("zero_sign", "products of +0, the accumulator -0", [], minus)
    negative = [(MINUS, ONE)] * STEP_K
    yield _vector("zero_sign", "products of -0, the accumulator +0", negative)
    yield _vector("zero_sign", "products of -0, the accumulator -0", negative, minus)
    yield _vector("zero_sign", "1 - 1", [(ONE, ONE), (ONE | MINUS, ONE)])
    yield _vector("zero_sign", "1 - 1 as an accumulator of -1", [(ONE, ONE)], ACCUMULATORS[acc].encode(-1))


def _nan(acc: str) -> Iterator[Vector]:
    fmt = ACCUMULATORS[acc]
    for x, y, name in (
        (NAN, ONE, "NaN times 1"),
        (NAN | MINUS, ONE, "-NaN times 1"),
        (ONE, NAN, "1 times NaN"),
    ):
        yield _vector("nan", name, {17: (x, y)})
    yield _vector("nan", "NaN times 0", {31: (NAN, 0)})
    quiet = fmt.exponent_mask | 1 << (fmt.fraction_bits - 1)
    for code in (quiet, quiet | 1, quiet | fmt.sign_mask, fmt.exponent_mask | 1, fmt.canonical_nan):
        yield _vector("nan", f"the accumulator {code:#x}", [(ONE, ONE)], code)
    yield _vector("nan", "NaN times 1, the accumulator inf", [(NAN, ONE)], fmt.inf(0))


def _infinity(acc: str) -> Iterator[Vector]:
    fmt = ACCUMULATORS[acc]
    for sign in (0, 1):
        yield _vector(
            "infinity", f"the accumulator {'-' if sign else ''}inf", [(TOP, TOP)] * 4, fmt.inf(sign)
        )
    yield _vector(
        "infinity", "inf against 32 products of -448 * 448", [(TOP | MINUS, TOP)] * STEP_K, fmt.inf(0)
    )
    if acc == "fp16":
        rest = {65519: -1, 65520: 0, 65536: 16}
        for value, over in rest.items():
            # 65520 = 32768 + 32752, the second an fp16 number; the product of powers and the least terms do the rest.
            pairs = [power(15)] + ([power(4)] if over == 16 else [])
            c = fmt.encode(32752)
            if over == -1:
                pairs.append(power(0, -1))
            yield _vector("overflow", f"a sum of {value}", pairs, c)
            yield _vector(
                "overflow", f"a sum of -{value}", [(x ^ MINUS, y) for x, y in pairs], c | fmt.sign_mask
            )
    else:
        yield _vector(
            "infinity", "the largest fp32 number and products", [(TOP, TOP)] * STEP_K, FP32.max_finite_code
        )


_FAMILIES = (
    *(_fraction_bits, _cut, _group, _accumulator, _product_exponent, _subnormal_exponent, _zero_terms),
    *(_final, _subnormals, _zero_sign, _nan, _infinity),
)


@cache
def vectors(acc: str) -> tuple[Vector, ...]:
    """All vectors for the accumulator format "fp32" or "fp16"."""
    return tuple(vector for family in _FAMILIES for vector in family(acc))
