"""Integer and predicate instructions.

Source: PTX ISA, "Integer Arithmetic Instructions", "Comparison and Selection Instructions", "Logic and Shift
Instructions". Shift amounts beyond the width are clamped to it. Standing: doc.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from mqa_ref.emulator.decode import OPCODES, WIDTH_TYPES, Decoder, Operation
from mqa_ref.emulator.ptx import Instruction, Reg
from mqa_ref.emulator.warp import Lanes, Warp

Function = Callable[..., Lanes]
_SIGNED: dict[int, type[Any]] = {16: np.int16, 32: np.int32, 64: np.int64}


def elementwise(
    result: int, widths: tuple[int, ...], function: Function
) -> Callable[[Decoder, Instruction], Operation]:
    """A builder for d = function(a, b, ...): ``result`` and ``widths`` are bits; 1 stands for a predicate."""

    def build(decoder: Decoder, instruction: Instruction) -> Operation:
        if len(instruction.operands) != 1 + len(widths):
            raise decoder.fail(instruction, f"expected {1 + len(widths)} operands")
        d = decoder.dst(instruction, instruction.operands[0], result)
        slots = [
            decoder.src(instruction, o, w) for o, w in zip(instruction.operands[1:], widths, strict=True)
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


def _register() -> None:
    rows: dict[str, tuple[int, tuple[int, ...], Function]] = {}
    for width in (16, 32, 64):
        pair = (width, width)
        for sign in "su":
            rows[f"add.{sign}{width}"] = (width, pair, np.add)
            rows[f"sub.{sign}{width}"] = (width, pair, np.subtract)
            rows[f"mul.lo.{sign}{width}"] = (width, pair, np.multiply)
            rows[f"mad.lo.{sign}{width}"] = (width, (width,) * 3, _mad)
        rows[f"min.u{width}"] = (width, pair, np.minimum)
        rows[f"max.u{width}"] = (width, pair, np.maximum)
        rows[f"min.s{width}"] = (width, pair, _signed(width, np.minimum))
        rows[f"max.s{width}"] = (width, pair, _signed(width, np.maximum))
        rows[f"neg.s{width}"] = (width, (width,), lambda a: (~a) + a.dtype.type(1))
        rows[f"abs.s{width}"] = (width, (width,), _signed(width, np.abs))
        rows[f"and.b{width}"] = (width, pair, np.bitwise_and)
        rows[f"or.b{width}"] = (width, pair, np.bitwise_or)
        rows[f"xor.b{width}"] = (width, pair, np.bitwise_xor)
        rows[f"not.b{width}"] = (width, (width,), np.invert)
        rows[f"shl.b{width}"] = (width, (width, 32), _shl(width))
        rows[f"shr.u{width}"] = rows[f"shr.b{width}"] = (width, (width, 32), _shr(width))
        rows[f"shr.s{width}"] = (width, (width, 32), _sar(width))
        for kind in "bsuf":
            rows[f"selp.{kind}{width}"] = (width, (width, width, 1), _select)
        for name, compare in COMPARISONS.items():
            rows[f"setp.{name}.u{width}"] = (1, pair, compare)
            rows[f"setp.{name}.s{width}"] = (1, pair, _signed(width, compare, to_bits=False))
        for name in ("eq", "ne"):
            rows[f"setp.{name}.b{width}"] = (1, pair, COMPARISONS[name])
    for width in (16, 32):
        for sign in "su":
            rows[f"mul.wide.{sign}{width}"] = (width * 2, (width, width), _wide(width, sign == "s"))
            rows[f"mad.wide.{sign}{width}"] = (
                width * 2,
                (width, width, width * 2),
                _mad_wide(width, sign == "s"),
            )
    rows["and.pred"] = (1, (1, 1), np.logical_and)
    rows["or.pred"] = (1, (1, 1), np.logical_or)
    rows["xor.pred"] = (1, (1, 1), np.logical_xor)
    rows["not.pred"] = (1, (1,), np.logical_not)
    for target in (16, 32, 64):
        for source in (16, 32, 64):
            for sign in "su":
                for kind in "su":
                    name = f"cvt.{kind}{target}.{sign}{source}"
                    rows[name] = (target, (source,), _convert(source, target, sign == "s"))
    for name, row in rows.items():
        OPCODES[name] = elementwise(*row)


def _convert(source: int, target: int, signed: bool) -> Function:
    read = (_SIGNED if signed else WIDTH_TYPES)[source]
    write = (_SIGNED if signed else WIDTH_TYPES)[target]
    return lambda a: a.view(read).astype(write).view(WIDTH_TYPES[target])


COMPARISONS: dict[str, Function] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}

_register()
