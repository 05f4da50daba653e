"""Integer and predicate instructions.

Source: PTX ISA, "Integer Arithmetic Instructions", "Comparison and Selection Instructions", "Logic and Shift
Instructions". Shift amounts beyond the width are clamped to it. Standing: doc.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from mqa_ref.emulator.decode import WIDTH_TYPES, Decoder, Operation
from mqa_ref.emulator.opcodes.table import lanewise
from mqa_ref.emulator.ptx import Instruction, Reg
from mqa_ref.emulator.warp import Lanes, Warp

Function = Callable[..., Lanes]
_SIGNED: dict[int, type[Any]] = {16: np.int16, 32: np.int32, 64: np.int64}


def elementwise(
    result: str, sources: tuple[str, ...], function: Function
) -> Callable[[Decoder, Instruction], Operation]:
    """A builder for d = function(a, b, ...) on operands of these PTX types."""

    def build(decoder: Decoder, instruction: Instruction) -> Operation:
        if len(instruction.operands) != 1 + len(sources):
            raise decoder.fail(instruction, f"expected {1 + len(sources)} operands")
        d = decoder.dst(instruction, instruction.operands[0], result)
        slots = [
            decoder.src(instruction, o, t) for o, t in zip(instruction.operands[1:], sources, strict=True)
        ]
        flips = [isinstance(o, Reg) and o.negated for o in instruction.operands[1:]]
        if any(flips):
            return _with_flips(d, slots, flips, function, instruction)
        return _plain(d, slots, function, instruction)

    return build


def value(warp: Warp, slot: int, instruction: Instruction) -> Lanes:
    """A source register; one that was never written, or that is still being loaded, is a finding."""
    found = warp.regs[slot]
    if found is None or (warp.watched and slot in warp.watched):
        return warp.cta.watched_register(warp, slot, instruction)
    return found


def _plain(d: int, slots: list[int], function: Function, instruction: Instruction) -> Operation:
    if len(slots) == 1:
        (only,) = slots
        return lambda w: w.put(d, function(value(w, only, instruction)))
    if len(slots) == 2:
        first, second = slots
        return lambda w: w.put(d, function(value(w, first, instruction), value(w, second, instruction)))
    return lambda w: w.put(d, function(*[value(w, s, instruction) for s in slots]))


def _with_flips(
    d: int, slots: list[int], flips: list[bool], function: Function, instruction: Instruction
) -> Operation:
    def run(warp: Warp) -> None:
        values = [value(warp, s, instruction) for s in slots]
        warp.put(d, function(*[~v if flip else v for v, flip in zip(values, flips, strict=True)]))

    return run


def _signed(width: int, function: Function, *, to_bits: bool = True) -> Function:
    kind, bits = _SIGNED[width], WIDTH_TYPES[width]

    def run(*arguments: Lanes) -> Lanes:
        result = function(*[a.view(kind) for a in arguments])
        return result.view(bits) if to_bits else result

    return run


def _wide(width: int, signed: bool) -> Function:
    narrow = (_SIGNED if signed else WIDTH_TYPES)[width]
    wide = (_SIGNED if signed else WIDTH_TYPES)[width * 2]
    return lambda a, b: (a.view(narrow).astype(wide) * b.view(narrow).astype(wide)).view(
        WIDTH_TYPES[width * 2]
    )


def _mad(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    total: Lanes = a * b + c
    return total


def _select(a: Lanes, b: Lanes, p: Lanes) -> Lanes:
    return np.where(p, a, b)


def _mad_wide(width: int, signed: bool) -> Function:
    multiply = _wide(width, signed)

    def run(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        total: Lanes = multiply(a, b) + c
        return total

    return run


def _shl(width: int) -> Function:
    kind = WIDTH_TYPES[width]
    return lambda a, b: np.where(b < width, a << (b & (width - 1)).astype(kind), kind(0))


def _shr(width: int) -> Function:
    kind = WIDTH_TYPES[width]
    return lambda a, b: np.where(b < width, a >> (b & (width - 1)).astype(kind), kind(0))


def _sar(width: int) -> Function:
    kind = _SIGNED[width]
    return lambda a, b: (a.view(kind) >> np.minimum(b, width - 1).astype(kind)).view(WIDTH_TYPES[width])


Rows = list[tuple[str, str, tuple[str, ...], Function]]


def _typed_rows(width: int) -> Rows:
    rows: Rows = []
    for sign in "su":
        kind = f"{sign}{width}"
        two = (kind, kind)
        rows += [(f"add.{kind}", kind, two, np.add), (f"sub.{kind}", kind, two, np.subtract)]
        rows += [(f"mul.lo.{kind}", kind, two, np.multiply), (f"mad.lo.{kind}", kind, (kind,) * 3, _mad)]
        least, most = np.minimum, np.maximum
        signed = sign == "s"
        rows.append((f"min.{kind}", kind, two, _signed(width, least) if signed else least))
        rows.append((f"max.{kind}", kind, two, _signed(width, most) if signed else most))
        rows.append((f"shr.{kind}", kind, (kind, "u32"), _sar(width) if signed else _shr(width)))
        for name, compare in COMPARISONS.items():
            test = _signed(width, compare, to_bits=False) if signed else compare
            rows.append((f"setp.{name}.{kind}", "pred", two, test))
        if width < 64:
            wide = f"{sign}{2 * width}"
            rows.append((f"mul.wide.{kind}", wide, two, _wide(width, signed)))
            rows.append((f"mad.wide.{kind}", wide, (*two, wide), _mad_wide(width, signed)))
    kind = f"s{width}"
    rows.append((f"neg.{kind}", kind, (kind,), lambda a: (~a) + a.dtype.type(1)))
    rows.append((f"abs.{kind}", kind, (kind,), _signed(width, np.abs)))
    return rows


def _untyped_rows(width: int) -> Rows:
    kind = f"b{width}"
    two = (kind, kind)
    rows: Rows = [(f"and.{kind}", kind, two, np.bitwise_and), (f"or.{kind}", kind, two, np.bitwise_or)]
    rows += [(f"xor.{kind}", kind, two, np.bitwise_xor), (f"not.{kind}", kind, (kind,), np.invert)]
    rows += [
        (f"shl.{kind}", kind, (kind, "u32"), _shl(width)),
        (f"shr.{kind}", kind, (kind, "u32"), _shr(width)),
    ]
    rows += [(f"setp.{name}.{kind}", "pred", two, COMPARISONS[name]) for name in ("eq", "ne")]
    selected = [f"{letter}{width}" for letter in ("bsu" if width == 16 else "bsuf")]
    rows += [(f"selp.{each}", each, (each, each, "pred"), _select) for each in selected]
    return rows


def _register() -> None:
    rows = [row for width in (16, 32, 64) for row in (*_typed_rows(width), *_untyped_rows(width))]
    two = ("pred", "pred")
    rows.append(("and.pred", "pred", two, np.logical_and))
    rows += [("or.pred", "pred", two, np.logical_or), ("xor.pred", "pred", two, np.logical_xor)]
    rows.append(("not.pred", "pred", ("pred",), np.logical_not))
    lanewise(rows, section=_section, family=_family)


_SECTIONS = {
    "Comparison and Selection Instructions": ("setp", "selp"),
    "Logic and Shift Instructions": ("and", "or", "xor", "not", "shl", "shr"),
}


def _section(name: str) -> str:
    for section, bases in _SECTIONS.items():
        if name.split(".")[0] in bases:
            return section
    return "Integer Arithmetic Instructions"


def _family(name: str) -> str:
    base, *modifiers = name.split(".")
    if base == "setp":
        return "setp.cmp.type"
    kept = [modifier for modifier in modifiers if modifier in ("lo", "wide", "pred")]
    return ".".join([base, *kept] if "pred" in kept else [base, *kept, "type"])


COMPARISONS: dict[str, Function] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}

_register()
