"""Integer instructions beyond the common ones: high products, divisions of every width, differences, dot products of
bytes, packed halves, masks, and the search for the highest bit.

Source: PTX ISA, "Integer Arithmetic Instructions" and the section of each instruction. Standing: doc, and hw where
recorded. A division by zero gives all bits set (the ISA leaves it open; such a result is never relied on here).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mqa_ref.emulator.decode import WIDTH_TYPES
from mqa_ref.emulator.opcodes.arith import Function, Rows
from mqa_ref.emulator.opcodes.table import lanewise
from mqa_ref.emulator.warp import Lanes

_SIGNED: dict[int, type[Any]] = {16: np.int16, 32: np.int32, 64: np.int64}
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def _high_64(a: Lanes, b: Lanes) -> Lanes:
    """The upper 64 bits of a product of unsigned 64-bit numbers, from products of their halves."""
    low, high = (a & _LOW, b & _LOW), (a >> _HALF, b >> _HALF)
    first = (low[0] * low[1]) >> _HALF
    middle = high[0] * low[1] + first
    other = low[0] * high[1] + (middle & _LOW)
    upper: Lanes = high[0] * high[1] + (middle >> _HALF) + (other >> _HALF)
    return upper


def high(width: int, *, signed: bool) -> Function:
    """The upper half of a product."""
    kind: Any = _SIGNED[width] if signed else WIDTH_TYPES[width]
    if width < 64:
        wide = (_SIGNED if signed else WIDTH_TYPES)[2 * width]
        return lambda a, b: ((a.view(kind).astype(wide) * b.view(kind).astype(wide)) >> wide(width)).astype(
            WIDTH_TYPES[width]
        )
    if not signed:
        return _high_64

    def run(a: Lanes, b: Lanes) -> Lanes:
        zero = np.uint64(0)
        # A negative number counts 2^64 too much as an unsigned one.
        excess = np.where(a.view(np.int64) < 0, b, zero) + np.where(b.view(np.int64) < 0, a, zero)
        upper: Lanes = _high_64(a, b) - excess
        return upper

    return run


def divide(width: int, *, signed: bool, remainder: bool) -> Function:
    """Quotient toward zero, or the remainder with the sign of the dividend; of magnitudes, so that the most negative
    number has one."""
    bits: type[Any] = WIDTH_TYPES[width]
    ones = bits((1 << width) - 1)

    def magnitude(x: Lanes) -> tuple[Lanes, Lanes]:
        negative = x.view(_SIGNED[width]) < 0 if signed else np.zeros(x.shape, np.bool_)
        return negative, np.where(negative, ~x + bits(1), x)

    def run(a: Lanes, b: Lanes) -> Lanes:
        (a_negative, x), (b_negative, y) = magnitude(a), magnitude(b)
        zero = y == 0
        safe = np.where(zero, bits(1), y)
        found = x % safe if remainder else x // safe
        flip = a_negative if remainder else a_negative ^ b_negative
        return np.where(zero, ones, np.where(flip, ~found + bits(1), found))

    return run


def _difference(width: int, *, signed: bool) -> Function:
    """sad: c + |a - b|."""
    kind: Any = _SIGNED[width] if signed else WIDTH_TYPES[width]

    def run(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        total: Lanes = np.where(a.view(kind) < b.view(kind), b - a, a - b) + c
        return total

    return run


def _saturated(sign: int) -> Function:
    least, most = np.int64(-(1 << 31)), np.int64((1 << 31) - 1)

    def run(a: Lanes, b: Lanes) -> Lanes:
        total = a.view(np.int32).astype(np.int64) + sign * b.view(np.int32).astype(np.int64)
        clamped: Lanes = np.clip(total, least, most).astype(np.int32).view(np.uint32)
        return clamped

    return run


def _product_24(*, signed: bool, upper: bool) -> Function:
    """Of the lower 24 bits of each: the product's bits 0-31, or 16-47."""

    def cut(x: Lanes) -> Lanes:
        moved = x << np.uint32(8)
        part = moved.view(np.int32) >> np.int32(8) if signed else moved >> np.uint32(8)
        return part.astype(np.int64)

    return lambda a, b: (
        ((cut(a) * cut(b)) >> np.int64(16 if upper else 0)).astype(np.uint64).astype(np.uint32)
    )


def _added(product: Function) -> Function:
    """mad: a product, and a third operand added to it."""

    def run(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        total: Lanes = product(a, b) + c
        return total

    return run


def _highest(width: int, *, signed: bool, distance: bool) -> Function:
    """bfind: the place of the highest bit that is not a copy of the sign, or its distance from the top; all ones where
    there is none."""
    bits: type[Any] = WIDTH_TYPES[width]

    def run(a: Lanes) -> Lanes:
        left = np.where(a.view(_SIGNED[width]) < 0, ~a, a) if signed else a.copy()
        found = np.full(a.shape, 0xFFFFFFFF, np.uint32)
        for place in range(width):
            found = np.where((left >> bits(place)) & bits(1), np.uint32(place), found)
        if not distance:
            return found
        return np.where(found == np.uint32(0xFFFFFFFF), found, np.uint32(width - 1) - found)

    return run


def _bits_from(start: Lanes) -> Lanes:
    """All bits from ``start`` on, which is at most 63; none from 32 on."""
    return (np.uint64(0xFFFFFFFF) << start.astype(np.uint64)).astype(np.uint32)


def _bit_mask(*, clamp: bool) -> Function:
    """bmsk: ones from bit a on, b of them."""

    def run(a: Lanes, b: Lanes) -> Lanes:
        start, length = a & np.uint32(31), b & np.uint32(31)
        from_start, behind = _bits_from(start), _bits_from(start + length)
        if clamp:
            from_start = np.where(a >= 32, np.uint32(0), from_start)
            behind = np.where((a >= 32) | (b >= 32), np.uint32(0), behind)
        mask: Lanes = from_start & ~behind
        return mask

    return run


def _extended(*, signed: bool, clamp: bool) -> Function:
    """szext: the lowest b bits of a, extended by their sign or by zeros."""

    def run(a: Lanes, b: Lanes) -> Lanes:
        length = b & np.uint32(31)
        behind = _bits_from(length)
        whole = (b >= 32) if clamp else np.zeros(a.shape, np.bool_)
        behind = np.where(whole, np.uint32(0), behind)
        if not signed:
            return a & ~behind
        top = (a >> ((length - np.uint32(1)) & np.uint32(31))) & np.uint32(1)
        negative = (length > 0) & ~whole & top.astype(np.bool_)
        return np.where(negative, a | behind, a & ~behind)

    return run


def _parts(x: Lanes, part: type[Any]) -> Lanes:
    """The bytes or halves of each lane, lowest first, [lanes, parts]."""
    split: Lanes = np.ascontiguousarray(x).view(part).reshape(len(x), -1)
    return split.astype(np.int64)


def _dot(a_part: type[Any], b_part: type[Any], chosen: slice) -> Function:
    """dp4a and dp2a: products of parts of a with the chosen bytes of b, added to c."""

    def run(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        total = (_parts(a, a_part) * _parts(b, b_part)[:, chosen]).sum(axis=1) + c.astype(np.int64)
        word: Lanes = total.astype(np.uint64).astype(np.uint32)
        return word

    return run


def _nth_set(mask: Lanes, base: Lanes, offset: Lanes) -> Lanes:
    """fns: the place of the set bit that is ``offset`` set bits from bit ``base`` on (counted from 1), downwards for a
    negative one; of offset 0 the base itself where it is set; all ones where there is none."""
    found = np.full(mask.shape, 0xFFFFFFFF, np.uint32)
    for lane in range(len(mask)):
        at, wanted = int(base[lane]), int(offset[lane : lane + 1].view(np.int32)[0])
        step = -1 if wanted < 0 else 1
        places = [place for place in range(at, 32 if step > 0 else -1, step) if int(mask[lane]) >> place & 1]
        if wanted == 0:
            found[lane] = at if places[:1] == [at] else found[lane]
        elif len(places) >= abs(wanted):
            found[lane] = places[abs(wanted) - 1]
    return found


def _halves(function: Any, kind: type[Any], *, relu: bool = False) -> Function:
    def run(a: Lanes, b: Lanes) -> Lanes:
        found = function(np.ascontiguousarray(a).view(kind), np.ascontiguousarray(b).view(kind))
        word: Lanes = (np.maximum(found, kind(0)) if relu else found).view(np.uint32)
        return word

    return run


def _of_width(width: int) -> Rows:
    rows: Rows = []
    for sign in "su":
        kind, signed = f"{sign}{width}", sign == "s"
        two, three = (kind, kind), (kind, kind, kind)
        rows.append((f"mul.hi.{kind}", kind, two, high(width, signed=signed)))
        rows.append((f"mad.hi.{kind}", kind, three, _added(high(width, signed=signed))))
        rows.append((f"div.{kind}", kind, two, divide(width, signed=signed, remainder=False)))
        rows.append((f"rem.{kind}", kind, two, divide(width, signed=signed, remainder=True)))
        rows.append((f"sad.{kind}", kind, three, _difference(width, signed=signed)))
        if width > 16:
            rows.append((f"bfind.{kind}", "u32", (kind,), _highest(width, signed=signed, distance=False)))
            far = _highest(width, signed=signed, distance=True)
            rows.append((f"bfind.shiftamt.{kind}", "u32", (kind,), far))
    kind = f"b{width}"
    rows.append((f"cnot.{kind}", kind, (kind,), lambda a: (a == 0).astype(a.dtype)))
    return rows


def _of_words() -> Rows:
    pair = ("s32", "s32")
    rows: Rows = [("add.sat.s32", "s32", pair, _saturated(1)), ("sub.sat.s32", "s32", pair, _saturated(-1))]
    for kind in ("s32", "u32"):
        signed = kind == "s32"
        for part in ("lo", "hi"):
            product = _product_24(signed=signed, upper=part == "hi")
            rows.append((f"mul24.{part}.{kind}", kind, (kind, kind), product))
            rows.append((f"mad24.{part}.{kind}", kind, (kind,) * 3, _added(product)))
        for mode in ("clamp", "wrap"):
            extended = _extended(signed=signed, clamp=mode == "clamp")
            rows.append((f"szext.{mode}.{kind}", kind, (kind, "u32"), extended))
    for mode in ("clamp", "wrap"):
        rows.append((f"bmsk.{mode}.b32", "b32", ("u32", "u32"), _bit_mask(clamp=mode == "clamp")))
    octets, pairs = {"s32": np.int8, "u32": np.uint8}, {"s32": np.int16, "u32": np.uint16}
    for a in ("s32", "u32"):
        for b in ("s32", "u32"):
            result = "u32" if a == b == "u32" else "s32"
            types = (a, b, result)
            rows.append((f"dp4a.{a}.{b}", result, types, _dot(octets[a], octets[b], slice(0, 4))))
            for part, chosen in (("lo", slice(0, 2)), ("hi", slice(2, 4))):
                rows.append((f"dp2a.{part}.{a}.{b}", result, types, _dot(pairs[a], octets[b], chosen)))
    for kind, half in (("s16x2", np.int16), ("u16x2", np.uint16)):
        for name, function in (("add", np.add), ("min", np.minimum), ("max", np.maximum)):
            rows.append((f"{name}.{kind}", "b32", ("b32", "b32"), _halves(function, half)))
    for name, function in (("min", np.minimum), ("max", np.maximum)):
        for halves, words in (
            (f"{name}.relu.s16x2", f"{name}.relu.s32"),
            (f"{name}.s16x2.relu", f"{name}.s32.relu"),
        ):
            rows.append((halves, "b32", ("b32", "b32"), _halves(function, np.int16, relu=True)))
            rows.append((words, "s32", pair, _halves(function, np.int32, relu=True)))
    rows.append(("fns.b32", "b32", ("b32", "b32", "s32"), _nth_set))
    return rows


def _family(name: str) -> str:
    base, *modifiers = name.split(".")
    if base in ("dp4a", "dp2a"):
        return {"dp4a": "dp4a.type.type", "dp2a": "dp2a.half.type.type"}[base]
    if base in ("szext", "bmsk", "mul24", "mad24"):
        return f"{base}.mode.{'b32' if base == 'bmsk' else 'type'}"
    if "relu" in modifiers:
        return f"{base}.relu.{'halves' if 's16x2' in modifiers else 'type'}"
    return ".".join([base, *modifiers[:-1], "halves" if modifiers[-1].endswith("x2") else "type"])


lanewise(
    [*(row for width in (16, 32, 64) for row in _of_width(width)), *_of_words()],
    section="Integer Arithmetic Instructions",
    family=_family,
)
