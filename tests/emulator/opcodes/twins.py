"""Scalar twins: what each instruction on numbers does to one lane, on Python's integers, after the pseudocode and prose
of the PTX ISA. Arguments and results are bit patterns of the operands' own widths; a predicate is 0 or 1.

``twin(name)`` is the function of an instruction by its full name; one that has none is a KeyError.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor, trunc

from mqa_ref.numerics.formats import FP16, FP32, RNE
from tests.emulator.opcodes.twins_bits import BITS
from tests.emulator.opcodes.twins_floats import FLOATS

Twin = Callable[..., int]
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "lo": operator.lt,
    "ls": operator.le,
    "hi": operator.gt,
    "hs": operator.ge,
}
_COMBINE: dict[str, Callable[[bool, bool], bool]] = {
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "xor": lambda a, b: a != b,
}


def number(bits: int, kind: str) -> int:
    """The integer that a pattern stands for in a type such as "s16"."""
    width = int(kind[1:])
    bits &= (1 << width) - 1
    return bits - (1 << width) if kind[0] == "s" and bits >> (width - 1) else bits


def pattern(value: int, width: int) -> int:
    """The lowest bits of an integer."""
    return value & ((1 << width) - 1)


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _plain(kind: str) -> dict[str, Callable[..., int]]:
    """Integer arithmetic: on the integers of the type, the result taken modulo its width."""
    width = int(kind[1:])
    return {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul.lo": lambda a, b: a * b,
        "mul.hi": lambda a, b: a * b >> width,
        "mad.lo": lambda a, b, c: a * b + c,
        "mad.hi": lambda a, b, c: (a * b >> width) + c,
        "min": min,
        "max": max,
        "min.relu": lambda a, b: max(min(a, b), 0),
        "max.relu": lambda a, b: max(a, b, 0),
        "neg": lambda a: -a,
        "abs": abs,
        "div": lambda a, b: _quotient(a, b) if b else -1,
        "rem": lambda a, b: a - _quotient(a, b) * b if b else -1,
        "sad": lambda a, b, c: c + abs(a - b),
        "add.sat": lambda a, b: max(-(1 << 31), min((1 << 31) - 1, a + b)),
        "sub.sat": lambda a, b: max(-(1 << 31), min((1 << 31) - 1, a - b)),
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
        "not": lambda a: ~a,
        "cnot": lambda a: int(a == 0),
        "mov": lambda a: a,
    }


def _integer(stem: str, kind: str) -> Twin:
    function, width = _plain(kind)[stem], int(kind[1:])
    return lambda *given: pattern(function(*[number(each, kind) for each in given]), width)


def _wide(stem: str, kind: str) -> Twin:
    """The whole product, to which mad adds a number of twice the width."""
    width = 2 * int(kind[1:])
    if stem == "mul.wide":
        return lambda a, b: pattern(number(a, kind) * number(b, kind), width)
    return lambda a, b, c: pattern(number(a, kind) * number(b, kind) + c, width)


def _of_24(stem: str, kind: str) -> Twin:
    short = f"{kind[0]}24"
    by = 16 if stem.endswith("hi") else 0
    product: Callable[[int, int], int] = lambda a, b: number(a, short) * number(b, short) >> by  # noqa: E731
    if stem.startswith("mul"):
        return lambda a, b: pattern(product(a, b), 32)
    return lambda a, b, c: pattern(product(a, b) + c, 32)


def _halves(stem: str, kind: str) -> Twin:
    one = _integer(stem, kind.removesuffix("x2"))
    return lambda *given: one(*[each & 0xFFFF for each in given]) | one(*[each >> 16 for each in given]) << 16


def _dot(name: str) -> Twin:
    base, *rest = name.split(".")
    a_kind, b_kind = rest[-2:]
    size, first = (8, 0) if base == "dp4a" else (16, 2 if rest[0] == "hi" else 0)

    def run(a: int, b: int, c: int) -> int:
        total = c
        for place in range(32 // size):
            left = number(a >> (size * place), f"{a_kind[0]}{size}")
            total += left * number(b >> (8 * (first + place)), f"{b_kind[0]}8")
        return pattern(total, 32)

    return run


def compares(comparison: str, kind: str) -> Callable[[int, int], bool]:
    """Does a comparison of setp or set hold?"""
    if kind not in ("f16", "f32"):
        typed = kind.replace("b", "u")
        return lambda a, b: _COMPARE[comparison](number(a, typed), number(b, typed))
    unordered = comparison.endswith("u") and comparison[:-1] in _COMPARE

    form = FP32 if kind == "f32" else FP16

    def run(a: int, b: int) -> bool:
        if form.is_nan(a) or form.is_nan(b):
            return unordered or comparison == "nan"
        if comparison in ("num", "nan"):
            return comparison == "num"
        ranks = _rank(a, int(kind[1:])), _rank(b, int(kind[1:]))
        return _COMPARE[comparison.removesuffix("u") if unordered else comparison](*ranks)

    return run


def _rank(bits: int, width: int) -> int:
    """Orders patterns as their numbers: magnitudes are ordered as integers."""
    sign = 1 << (width - 1)
    return -(bits & (sign - 1)) if bits & sign else bits


def both(name: str) -> Callable[..., tuple[int, int]]:
    """What setp p|q gives."""
    _, comparison, *rest = name.split(".")
    holds = compares(comparison, rest[-1])
    if len(rest) == 1:
        return lambda a, b: (int(holds(a, b)), int(not holds(a, b)))
    combine = _COMBINE[rest[0]]
    return lambda a, b, c: (int(combine(holds(a, b), bool(c))), int(combine(not holds(a, b), bool(c))))


def _set(name: str) -> Twin:
    _, comparison, result, kind = name.split(".")
    holds, yes = compares(comparison, kind), 0x3F800000 if result == "f32" else 0xFFFFFFFF
    return lambda a, b: yes if holds(a, b) else 0


def _convert(name: str) -> Twin:
    _, *rounding, result, source = name.split(".")
    width = int(result[1:])
    if source == "f32":
        return _round(rounding[0], result)
    if result == "f32":
        return lambda a: _to_f32(number(a, source))
    least, most = (-(1 << width) // 2, (1 << width) // 2 - 1) if result[0] == "s" else (0, (1 << width) - 1)
    if rounding:
        return lambda a: pattern(max(least, min(most, number(a, source))), width)
    return lambda a: pattern(number(a, source), width)


def _to_f32(value: int) -> int:
    return FP32.encode(Fraction(value), RNE) if value else 0


def _round(rounding: str, result: str) -> Twin:
    """To an integer, then the nearest one that the type has; NaN gives 0, or of 64 bits the highest bit (hw)."""

    def whole(bits: int) -> int:
        value = FP32.value(bits)
        return {"rni": round(value), "rzi": trunc(value), "rmi": floor(value), "rpi": ceil(value)}[rounding]

    if result == "f32":

        def to_float(bits: int) -> int:
            if FP32.is_nan(bits):
                return FP32.canonical_nan
            if FP32.is_inf(bits):
                return bits
            return _to_f32(whole(bits)) or bits & 0x80000000

        return to_float
    width, signed = int(result[1:]), result[0] == "s"
    least, most = (-(1 << width) // 2, (1 << width) // 2 - 1) if signed else (0, (1 << width) - 1)

    def to_integer(bits: int) -> int:
        if FP32.is_nan(bits):
            return 1 << 63 if width == 64 else 0
        if FP32.is_inf(bits):
            return pattern(least if FP32.sign(bits) else most, width)
        return pattern(max(least, min(most, whole(bits))), width)

    return to_integer


def twin(name: str) -> Twin:
    """The scalar twin of an instruction. Raises KeyError for one that has none."""
    if name in FLOATS:
        return FLOATS[name]
    base, *rest = name.split(".")
    if name in BITS:
        return BITS[name]
    if base == "setp":
        return lambda *given: both(name)(*given)[0]
    if base == "set":
        return _set(name)
    if base in ("selp", "slct"):
        return lambda a, b, c: a if (c if base == "selp" else not c >> 31) else b
    if base == "cvt":
        return _convert(name)
    if base in ("dp4a", "dp2a"):
        return _dot(name)
    if rest[-1] == "relu":
        rest = [rest[-1], *rest[:-1]]
    kind, stem = rest[-1], ".".join([base, *rest[:-1]])
    if kind == "pred":
        function = {"and": _COMBINE["and"], "or": _COMBINE["or"], "xor": _COMBINE["xor"]}.get(base)
        if function is None:
            return {"not": lambda a: 1 - a, "mov": lambda a: a}[base]
        return lambda a, b: int(function(bool(a), bool(b)))
    if stem.endswith("wide"):
        return _wide(stem, kind)
    if base in ("mul24", "mad24"):
        return _of_24(stem, kind)
    if kind.endswith("x2"):
        return _halves(stem, kind)
    return _integer(stem, "u" + kind[1:] if kind[0] in "bf" else kind)
