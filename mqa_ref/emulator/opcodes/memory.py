"""ld and st of the parameter, global and shared spaces, and of generic addresses.

Source: PTX ISA, "ld", "ld.global.nc", "st"; vector accesses must be aligned to their whole size. Hints to the
caches change no value. Standing: doc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mqa_ref.emulator.decode import (
    PARAM_BASE,
    SHARED_WINDOW,
    WIDTH_TYPES,
    Builder,
    Decoder,
    Operation,
    agrees,
    width_of,
)
from mqa_ref.emulator.opcodes.arith import value
from mqa_ref.emulator.opcodes.table import Row, add
from mqa_ref.emulator.ptx import Addr, Instruction, Operand, Reg, Symbol
from mqa_ref.emulator.warp import LANES, Lanes, Warp
from mqa_ref.errors import EmulatorError

Access = tuple[int, int]  # (elements, bits of one element)
Maker = Callable[[Decoder, Instruction, Access, str], Operation]
_WINDOW_BYTES = 1 << 32


def address_operand(
    decoder: Decoder, instruction: Instruction, operand: Operand, width: int
) -> tuple[int, int]:
    """Register-file index of the base address and the constant offset of a [base + offset] operand."""
    if not isinstance(operand, Addr) or operand.coordinates is not None:
        raise decoder.fail(instruction, "expected an address [base + offset]")
    if width == 32 and isinstance(operand.base, Reg) and width_of(operand.base.type) == 64:
        width = 64  # a shared address in a 64-bit register, as nvcc passes it to inline asm
    return decoder.src(instruction, operand.base, width), operand.offset


def _targets(decoder: Decoder, instruction: Instruction, access: Access, kind: str) -> list[tuple[int, int]]:
    """(index, register bits) of the destinations; a register may be wider than the element that is loaded."""
    count, bits = access
    targets: list[tuple[int, int]] = []
    for item in decoder.items(instruction, instruction.operands[0], count):
        if isinstance(item, Symbol) and item.name == "_":
            targets.append((-1, bits))
        elif isinstance(item, Reg) and width_of(item.type) >= bits:
            if width_of(item.type) == bits and not agrees(item.type, kind):
                raise decoder.fail(instruction, f"{item.name} is {item.type}, no {kind} register")
            targets.append((item.index, width_of(item.type)))
        else:
            raise decoder.fail(instruction, f"a destination does not hold {bits} bits")
    return targets


def _deliver(warp: Warp, targets: list[tuple[int, int]], loaded: Lanes, signed: bool) -> None:
    """``loaded`` is [32, elements] of unsigned integers."""
    for number, (index, width) in enumerate(targets):
        if index < 0:
            continue
        column = loaded[:, number]
        if column.dtype.itemsize * 8 != width:
            if signed:
                column = column.view(np.dtype(f"i{column.dtype.itemsize}")).astype(np.dtype(f"i{width // 8}"))
                column = column.view(WIDTH_TYPES[width])
            else:
                column = column.astype(WIDTH_TYPES[width])
        warp.put(index, column)


def _ld_param(decoder: Decoder, instruction: Instruction, access: Access, kind: str) -> Operation:
    count, bits = access
    targets = _targets(decoder, instruction, access, kind)
    operand = instruction.operands[1]
    if not isinstance(operand, Addr) or not isinstance(operand.base, Symbol):
        raise decoder.fail(instruction, "only [parameter + offset] is modelled")
    start = decoder.address_of(instruction, operand.base.name) - PARAM_BASE + operand.offset
    size = count * bits // 8

    def run(warp: Warp) -> None:
        raw = np.frombuffer(warp.cta.parameters[start : start + size], WIDTH_TYPES[bits])
        _deliver(warp, targets, np.broadcast_to(raw, (LANES, count)), kind[0] == "s")

    return run


Load = Callable[[Warp, Lanes, int, Instruction], Lanes]
Store = Callable[[Warp, Lanes, Lanes, Instruction], None]


def _generic(warp: Warp, addresses: Lanes, instruction: Instruction) -> tuple[str, Lanes]:
    """The space that the generic addresses of the active lanes lie in, and the addresses within it."""
    active = addresses[warp.mask]
    shared = (active >= SHARED_WINDOW) & (active < SHARED_WINDOW + _WINDOW_BYTES)
    if shared.all():
        return "shared", addresses - SHARED_WINDOW
    if shared.any() or ((active >= PARAM_BASE) & (active < PARAM_BASE + _WINDOW_BYTES)).any():
        raise EmulatorError(
            f"PTX line {instruction.line}: generic addresses of several spaces, or of parameters"
        )
    return "global", addresses


def _load_from(space: str) -> Load:
    def run(warp: Warp, addresses: Lanes, size: int, instruction: Instruction) -> Lanes:
        where = space
        if where == "generic":
            where, addresses = _generic(warp, addresses, instruction)
        load = warp.cta.load_shared if where == "shared" else warp.cta.load_global
        return load(warp, addresses, size, instruction)

    return run


def _store_to(space: str) -> Store:
    def run(warp: Warp, addresses: Lanes, raw: Lanes, instruction: Instruction) -> None:
        where = space
        if where == "generic":
            where, addresses = _generic(warp, addresses, instruction)
        store = warp.cta.store_shared if where == "shared" else warp.cta.store_global
        store(warp, addresses, raw, instruction)

    return run


def _ld(space: str, hinted: bool) -> Maker:
    load = _load_from(space)

    def build(decoder: Decoder, instruction: Instruction, access: Access, kind: str) -> Operation:
        count, bits = access
        if len(instruction.operands) != (3 if hinted else 2):
            raise decoder.fail(instruction, "another number of operands is expected")
        targets = _targets(decoder, instruction, access, kind)
        base, offset = address_operand(
            decoder, instruction, instruction.operands[1], 32 if space == "shared" else 64
        )
        size = count * bits // 8
        element = WIDTH_TYPES[bits]

        def run(warp: Warp) -> None:
            addresses = value(warp, base, instruction).astype(np.int64) + offset
            raw = load(warp, addresses, size, instruction)
            _deliver(warp, targets, raw.view(element), kind[0] == "s")

        return run

    return build


def _st(space: str, hinted: bool) -> Maker:
    store = _store_to(space)

    def build(decoder: Decoder, instruction: Instruction, access: Access, kind: str) -> Operation:
        count, bits = access
        if len(instruction.operands) != (3 if hinted else 2):
            raise decoder.fail(instruction, "another number of operands is expected")
        base, offset = address_operand(
            decoder, instruction, instruction.operands[0], 32 if space == "shared" else 64
        )
        slots = []
        for item in decoder.items(instruction, instruction.operands[1], count):
            if isinstance(item, Reg) and width_of(item.type) == bits and not agrees(item.type, kind):
                raise decoder.fail(instruction, f"{item.name} is {item.type}, expected {kind}")
            width = width_of(item.type) if isinstance(item, Reg) else bits
            slots.append(decoder.src(instruction, item, max(width, bits)))
        size = count * bits // 8
        element: type[Any] = WIDTH_TYPES[bits]

        def run(warp: Warp) -> None:
            addresses = value(warp, base, instruction).astype(np.int64) + offset
            raw = np.empty((LANES, count), element)
            for number, slot in enumerate(slots):
                raw[:, number] = value(warp, slot, instruction).astype(element)
            store(warp, addresses, raw.view(np.uint8).reshape(LANES, size), instruction)

        return run

    return build


_L1 = ("", ".L1::no_allocate", ".L1::evict_first", ".L1::evict_last")
_L2 = ("", ".L2::64B", ".L2::128B", ".L2::256B")
_HINTS = tuple(first + second for first in _L1 for second in _L2)
_HINT_WORDS = "[.L1::eviction][.L2::size][.L2::cache_hint]"


def _rows(stem: str, hint: str, maker: Maker, family: str, *, load: bool) -> None:
    for vector, count in (("", 1), (".v2", 2), (".v4", 4)):
        for bits in (8, 16, 32, 64):
            for letter in "busf":
                if (letter == "f" and bits < 32) or count * bits > 128:
                    continue
                kind = f"{letter}{bits}"
                data = kind if count == 1 else f"{{{kind}, ...}}"
                extra = ("b64",) if "cache_hint" in hint else ()
                sources = ("address", *extra) if load else ("address", data, *extra)
                add(
                    Row(
                        f"{stem}{hint}{vector}.{kind}",
                        data if load else "",
                        sources,
                        maker,
                        _SECTION,
                        "doc",
                        family,
                    ),
                    _bind(maker, (count, bits), kind),
                )


def _bind(make: Maker, access: Access, kind: str) -> Builder:
    return lambda decoder, instruction: make(decoder, instruction, access, kind)


_SECTION = "Data Movement and Conversion Instructions: ld, st"


def _register() -> None:
    _rows("ld.param", "", _ld_param, "ld.param[.vec].type", load=True)
    for space in ("shared", "shared::cta"):
        _rows(f"ld.{space}", "", _ld("shared", hinted=False), "ld.shared[::cta][.vec].type", load=True)
        _rows(f"st.{space}", "", _st("shared", hinted=False), "st.shared[::cta][.vec].type", load=False)
    for space in ("global", "shared", "shared::cta"):
        plain = space.removesuffix("::cta")
        _rows(
            f"ld.volatile.{space}", "", _ld(plain, hinted=False), f"ld.volatile.{plain}[.vec].type", load=True
        )
        _rows(
            f"st.volatile.{space}",
            "",
            _st(plain, hinted=False),
            f"st.volatile.{plain}[.vec].type",
            load=False,
        )
    _rows("ld", "", _ld("generic", hinted=False), "ld[.vec].type (generic)", load=True)
    _rows("st", "", _st("generic", hinted=False), "st[.vec].type (generic)", load=False)
    _rows("ld.const", "", _ld("global", hinted=False), "ld.const[.vec].type", load=True)
    for stem in ("ld.global", "ld.global.nc"):
        family = f"ld.global[.nc]{_HINT_WORDS}[.vec].type"
        for hint in _HINTS:
            _rows(stem, hint, _ld("global", hinted=False), family, load=True)
        _rows(stem, ".L2::cache_hint", _ld("global", hinted=True), family, load=True)
    for hint in _L1:
        _rows(
            "st.global",
            hint,
            _st("global", hinted=False),
            "st.global[.L1::eviction][.L2::cache_hint][.vec].type",
            load=False,
        )
    _rows(
        *("st.global", ".L2::cache_hint", _st("global", hinted=True)),
        "st.global[.L1::eviction][.L2::cache_hint][.vec].type",
        load=False,
    )


_register()
