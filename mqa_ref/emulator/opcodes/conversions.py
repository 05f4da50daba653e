"""cvt between integers of 8 to 64 bits, with saturation, and between integers and fp32.

Source: PTX ISA, "cvt"; "Operand Size Exceeding Instruction-Type Size": a register may be wider than the type, what
is read is its lower part and what is written is extended by the sign of the result's type. Standing: doc, and hw where
recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mqa_ref.emulator.decode import WIDTH_TYPES, Builder, Decoder, Operation, width_of
from mqa_ref.emulator.opcodes.arith import value
from mqa_ref.emulator.opcodes.more import is_nan
from mqa_ref.emulator.opcodes.table import Row, add, lanewise
from mqa_ref.emulator.ptx import Instruction, Operand, Reg
from mqa_ref.emulator.warp import Lanes, Warp

_SECTION = "Data Movement and Conversion Instructions: cvt"
_SIGNED: dict[int, type[Any]] = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
_WIDTHS = (8, 16, 32, 64)
_NAN = np.uint32(0x7FFFFFFF)
Function = Callable[[Lanes], Lanes]


def _kind(name: str) -> Any:
    return (_SIGNED if name[0] == "s" else WIDTH_TYPES)[int(name[1:])]


def _register_width(decoder: Decoder, instruction: Instruction, operand: Operand, bits: int) -> int:
    """Width of the register that holds an operand of ``bits``; of a constant the operand's own."""
    if not isinstance(operand, Reg):
        return max(bits, 16)
    if width_of(operand.type) < bits or operand.type[0] not in "bsu":
        raise decoder.fail(
            instruction, f"{operand.name} is {operand.type}, which holds no integer of {bits} bits"
        )
    return width_of(operand.type)


def _wide(result: str, source: str, function: Function) -> Builder:
    """The builder of a conversion; ``function`` takes and gives integers of exactly the two types."""
    source_bits, result_bits = int(source[1:]), int(result[1:])
    narrow, given = WIDTH_TYPES[source_bits], _kind(source)

    def build(decoder: Decoder, instruction: Instruction) -> Operation:
        d, a = instruction.operands
        width = _register_width(decoder, instruction, d, result_bits)
        target = decoder.dst(instruction, d, width)
        slot = decoder.src(instruction, a, _register_width(decoder, instruction, a, source_bits))
        extended = (_SIGNED if result[0] == "s" else WIDTH_TYPES)[width]

        def run(warp: Warp) -> None:
            read = value(warp, slot, instruction).astype(narrow).view(given)
            warp.put(target, function(read).astype(extended).view(WIDTH_TYPES[width]))

        return run

    return build


def _cut(result: str) -> Function:
    kind = _kind(result)
    return lambda a: a.astype(kind)


def _clamped(result: str) -> Function:
    """To the nearest number that the result's type has."""
    kind = _kind(result)
    limits = np.iinfo(kind)

    def run(a: Lanes) -> Lanes:
        # Comparisons of Python's numbers with arrays are exact; a limit outside the source's type never applies.
        have = np.iinfo(a.dtype)
        least, most = max(int(limits.min), int(have.min)), min(int(limits.max), int(have.max))
        return np.clip(a, a.dtype.type(least), a.dtype.type(most)).astype(kind)

    return run


def _can_overflow(result: str, source: str) -> bool:
    """Has the source's type numbers that the result's has not? Only then may .sat be written."""
    have, found = np.iinfo(_kind(source)), np.iinfo(_kind(result))
    return int(have.min) < int(found.min) or int(have.max) > int(found.max)


def _to_float(source: str) -> Callable[[Lanes], Lanes]:
    kind = _kind(source)
    return lambda a: a.view(kind).astype(np.float32).view(np.uint32)


def _narrow_to_float(source: str) -> Builder:
    """Of 8 bits, which no register has by itself."""
    kind = _kind(source)

    def build(decoder: Decoder, instruction: Instruction) -> Operation:
        d, a = instruction.operands
        target = decoder.dst(instruction, d, "f32")
        slot = decoder.src(instruction, a, _register_width(decoder, instruction, a, 8))

        def run(warp: Warp) -> None:
            read = value(warp, slot, instruction).astype(np.uint8).view(kind)
            warp.put(target, read.astype(np.float32).view(np.uint32))

        return run

    return build


ROUND: dict[str, Callable[[Any], Any]] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def _to_integer(rounding: str, result: str) -> Callable[[Lanes], Lanes]:
    """Rounded to an integer, then clamped to the result's type; NaN gives 0, of 64 bits the highest bit (hw)."""
    kind, bits = _kind(result), WIDTH_TYPES[int(result[1:])]
    limits = np.iinfo(kind)

    def run(a: Lanes) -> Lanes:
        nan = is_nan(a)
        whole = ROUND[rounding](np.where(nan, np.uint32(0), a).view(np.float32).astype(np.float64))
        low, high = whole <= float(limits.min), whole >= float(limits.max)
        inside = np.where(low | high, 0.0, whole).astype(kind)
        found = np.where(low, kind(limits.min), np.where(high, kind(limits.max), inside))
        missing = bits(1 << 63) if bits is np.uint64 else bits(0)
        result_bits: Lanes = np.where(nan, missing, found.astype(kind).view(bits))
        return result_bits

    return run


def _to_whole(rounding: str) -> Callable[[Lanes], Lanes]:
    def run(a: Lanes) -> Lanes:
        nan = is_nan(a)
        whole: Lanes = ROUND[rounding](np.where(nan, np.uint32(0), a).view(np.float32)).view(np.uint32)
        return np.where(nan, _NAN, whole)

    return run


def _register() -> None:
    integers = [f"{sign}{width}" for width in _WIDTHS for sign in "su"]
    for result in integers:
        for source in integers:
            for saturate in ("", "sat.") if _can_overflow(result, source) else ("",):
                name, function = f"cvt.{saturate}{result}.{source}", (_clamped if saturate else _cut)(result)
                family = f"cvt.{saturate}integer.integer"
                add(
                    Row(name, result, (source,), function, _SECTION, "doc", family),
                    _wide(result, source, function),
                )
    for source in integers:
        name, family = f"cvt.rn.f32.{source}", "cvt.rn.f32.integer"
        if source[1:] == "8":
            row = Row(name, "f32", (source,), _to_float(source), _SECTION, "doc", family)
            add(row, _narrow_to_float(source))
        else:
            rows = [(name, "f32", (source,), _to_float(source))]
            lanewise(rows, section=_SECTION, family=lambda name: "cvt.rn.f32.integer")
    for rounding in ROUND:
        whole = [(f"cvt.{rounding}.f32.f32", "f32", ("f32",), _to_whole(rounding))]
        lanewise(whole, section=_SECTION, family=lambda name: "cvt.toward.f32.f32")
        for result in (f"{sign}{width}" for width in (16, 32, 64) for sign in "su"):
            rows = [(f"cvt.{rounding}.{result}.f32", result, ("f32",), _to_integer(rounding, result))]
            lanewise(rows, section=_SECTION, family=lambda name: "cvt.toward.integer.f32")


_register()
