"""Comparisons that combine with a predicate, that are written as unsigned, or that give a number; selections by sign;
and the modes of prmt.

Source: PTX ISA, "setp" (also of halves), "set", "slct", "prmt". Standing: doc, and hw where recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mqa_ref import numerics
from mqa_ref.emulator.decode import OPCODES, Decoder, Operation
from mqa_ref.emulator.opcodes.arith import COMPARISONS, Function, Rows, value
from mqa_ref.emulator.opcodes.bits import permute
from mqa_ref.emulator.opcodes.more import float_comparison, is_nan
from mqa_ref.emulator.opcodes.table import TABLE, lanewise
from mqa_ref.emulator.ptx import Instruction, Pair, Reg
from mqa_ref.emulator.warp import Lanes, Warp

_SECTION = "Comparison and Selection Instructions"
_SIGNED: dict[int, type[Any]] = {16: np.int16, 32: np.int32, 64: np.int64}
UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
"""Names that setp has for comparisons of unsigned integers alone."""
COMBINE: dict[str, Callable[[Lanes, Lanes], Lanes]] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}
PLACES: dict[str, tuple[int, ...]] = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}
"""Mode of prmt -> the selector that it stands for, by the lowest two bits of c (PTX ISA, "prmt", table)."""


def comparisons() -> dict[tuple[str, str], Function]:
    """(comparison, type) -> function of two operands."""
    found: dict[tuple[str, str], Function] = {}
    for width in (16, 32, 64):
        for name, compare in COMPARISONS.items():
            found[name, f"u{width}"] = compare
            found[name, f"s{width}"] = _as_signed(width, compare)
        for name in ("eq", "ne"):
            found[name, f"b{width}"] = COMPARISONS[name]
        for name, plain in UNSIGNED.items():
            found[name, f"u{width}"] = COMPARISONS[plain]
    for name in COMPARISONS:
        found[name, "f32"] = float_comparison(name, unordered=False)
        found[f"{name}u", "f32"] = float_comparison(name, unordered=True)
    found["num", "f32"] = lambda a, b: ~(is_nan(a) | is_nan(b))
    found["nan", "f32"] = lambda a, b: is_nan(a) | is_nan(b)
    # fp32 holds every fp16 number.
    return found | {(name, "f16"): _widened(one) for (name, kind), one in found.items() if kind == "f32"}


def _widened(compare: Function) -> Function:
    return lambda a, b: compare(numerics.cvt_f32_f16(a), numerics.cvt_f32_f16(b))


def _as_signed(width: int, compare: Function) -> Function:
    kind = _SIGNED[width]
    return lambda a, b: compare(a.view(kind), b.view(kind))


def _combined(compare: Function, combine: Callable[[Lanes, Lanes], Lanes]) -> Function:
    return lambda a, b, p: combine(compare(a, b), p)


def _as_number(compare: Function, one: int) -> Function:
    return lambda a, b: np.where(compare(a, b), np.uint32(one), np.uint32(0))


def _by_sign(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return np.where(c.view(np.int32) >= 0, a, b)


def _mode(selectors: tuple[int, ...]) -> Function:
    table = np.array(selectors, np.uint32)
    return lambda a, b, c: permute(a, b, table[c & np.uint32(3)])


def _accept_pair(name: str, opposite: Function) -> None:
    """Let the comparison of this name write p|q, where q is what ``opposite`` gives."""
    row, single = TABLE[name], OPCODES[name]

    def build(decoder: Decoder, instruction: Instruction) -> Operation:
        pair, *operands = instruction.operands
        if not isinstance(pair, Pair):
            return single(decoder, instruction)
        if len(operands) != len(row.sources):
            raise decoder.fail(instruction, f"expected {1 + len(row.sources)} operands")
        targets = [decoder.dst(instruction, d, "pred") for d in (pair.first, pair.second)]
        slots = [decoder.src(instruction, o, t) for o, t in zip(operands, row.sources, strict=True)]
        flips = [isinstance(o, Reg) and o.negated for o in operands]

        def run(warp: Warp) -> None:
            values = [value(warp, slot, instruction) for slot in slots]
            values = [~v if flip else v for v, flip in zip(values, flips, strict=True)]
            both = row.function(*values), opposite(*values)
            for target, found in zip(targets, both, strict=True):
                if target >= 0:
                    warp.put(target, found)

        return run

    OPCODES[name] = build


def _register() -> None:
    plain: Rows = []
    combined: Rows = []
    numbers: Rows = []
    for (name, kind), compare in comparisons().items():
        if name in UNSIGNED or kind == "f16":
            plain.append((f"setp.{name}.{kind}", "pred", (kind, kind), compare))
        for word, combine in COMBINE.items():
            function = _combined(compare, combine)
            combined.append((f"setp.{name}.{word}.{kind}", "pred", (kind, kind, "pred"), function))
        if kind == "f16":
            continue
        for result, one in (("u32", 0xFFFFFFFF), ("s32", 0xFFFFFFFF), ("f32", 0x3F800000)):
            numbers.append((f"set.{name}.{result}.{kind}", result, (kind, kind), _as_number(compare, one)))
    lanewise(plain, section=_SECTION, family=lambda name: "setp.cmp.type")
    lanewise(combined, section=_SECTION, family=lambda name: "setp.cmp.bool.type")
    for (name, kind), compare in comparisons().items():
        if kind == "f16":  # the ISA gives these one result
            continue
        _accept_pair(f"setp.{name}.{kind}", lambda a, b, compare=compare: ~compare(a, b))
        for word, combine in COMBINE.items():
            _accept_pair(
                f"setp.{name}.{word}.{kind}",
                lambda a, b, p, compare=compare, combine=combine: combine(~compare(a, b), p),
            )
    lanewise(numbers, section=_SECTION, family=lambda name: "set.cmp.type.type")
    kinds = [f"{letter}{width}" for width in (16, 32, 64) for letter in ("bsu" if width != 32 else "bsuf")]
    chosen: Rows = [(f"slct.{kind}.s32", kind, (kind, kind, "s32"), _by_sign) for kind in kinds]
    lanewise(chosen, section=_SECTION, family=lambda name: "slct.type.s32")
    modes: Rows = [
        (f"prmt.b32.{mode}", "b32", ("b32", "b32", "b32"), _mode(selectors))
        for mode, selectors in PLACES.items()
    ]
    moves = "Data Movement and Conversion Instructions: prmt"
    lanewise(modes, section=moves, family=lambda name: "prmt.b32.mode")


_register()
