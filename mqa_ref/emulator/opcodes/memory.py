"""ld and st of the parameter, global and shared spaces.

Source: PTX ISA, "ld", "ld.global.nc", "st"; vector accesses must be aligned to their whole size. Standing: doc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mqa_ref.emulator.decode import OPCODES, PARAM_BASE, WIDTH_TYPES, Decoder, Operation, width_of
from mqa_ref.emulator.opcodes.arith import value
from mqa_ref.emulator.ptx import Addr, Instruction, Operand, Reg, Symbol
from mqa_ref.emulator.warp import LANES, Lanes, Warp

Access = tuple[int, int]  # (elements, bits of one element)


def address_operand(
    decoder: Decoder, instruction: Instruction, operand: Operand, width: int
) -> tuple[int, int]:
    """Register-file index of the base address and the constant offset of a [base + offset] operand."""
    if not isinstance(operand, Addr) or operand.coordinates is not None:
        raise decoder.fail(instruction, "expected an address [base + offset]")
    return decoder.src(instruction, operand.base, width), operand.offset


def _targets(decoder: Decoder, instruction: Instruction, access: Access) -> list[tuple[int, int]]:
    """(index, register bits) of the destinations; a register may be wider than the element that is loaded."""
    count, bits = access
    targets: list[tuple[int, int]] = []
    for item in decoder.items(instruction, instruction.operands[0], count):
        if isinstance(item, Symbol) and item.name == "_":
            targets.append((-1, bits))
        elif isinstance(item, Reg) and width_of(item.type) >= bits:
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


def _ld_param(decoder: Decoder, instruction: Instruction, access: Access, signed: bool) -> Operation:
    count, bits = access
    targets = _targets(decoder, instruction, access)
    operand = instruction.operands[1]
    if not isinstance(operand, Addr) or not isinstance(operand.base, Symbol):
        raise decoder.fail(instruction, "only [parameter + offset] is modelled")
    start = decoder.address_of(instruction, operand.base.name) - PARAM_BASE + operand.offset
    size = count * bits // 8

    def run(warp: Warp) -> None:
        raw = np.frombuffer(warp.cta.parameters[start : start + size], WIDTH_TYPES[bits])
        _deliver(warp, targets, np.broadcast_to(raw, (LANES, count)), signed)

    return run


def _ld(space: str) -> Callable[[Decoder, Instruction, Access, bool], Operation]:
    def build(decoder: Decoder, instruction: Instruction, access: Access, signed: bool) -> Operation:
        count, bits = access
        targets = _targets(decoder, instruction, access)
        base, offset = address_operand(
            decoder, instruction, instruction.operands[1], 32 if space == "shared" else 64
        )
        size = count * bits // 8
        kind = WIDTH_TYPES[bits]

        def run(warp: Warp) -> None:
            addresses = value(warp, base, instruction).astype(np.int64) + offset
            load = warp.cta.load_shared if space == "shared" else warp.cta.load_global
            raw = load(warp, addresses, size, instruction)
            _deliver(warp, targets, raw.view(kind), signed)

        return run

    return build


def _st(space: str) -> Callable[[Decoder, Instruction, Access, bool], Operation]:
    def build(decoder: Decoder, instruction: Instruction, access: Access, signed: bool) -> Operation:
        count, bits = access
        base, offset = address_operand(
            decoder, instruction, instruction.operands[0], 32 if space == "shared" else 64
        )
        slots = []
        for item in decoder.items(instruction, instruction.operands[1], count):
            width = width_of(item.type) if isinstance(item, Reg) else bits
            slots.append(decoder.src(instruction, item, max(width, bits)))
        size = count * bits // 8
        kind: type[Any] = WIDTH_TYPES[bits]

        def run(warp: Warp) -> None:
            addresses = value(warp, base, instruction).astype(np.int64) + offset
            raw = np.empty((LANES, count), kind)
            for number, slot in enumerate(slots):
                raw[:, number] = value(warp, slot, instruction).astype(kind)
            store = warp.cta.store_shared if space == "shared" else warp.cta.store_global
            store(warp, addresses, raw.view(np.uint8).reshape(LANES, size), instruction)

        return run

    return build


_LOADS = {
    "ld.param": _ld_param,
    "ld.global": _ld("global"),
    "ld.global.nc": _ld("global"),
    "ld.shared": _ld("shared"),
    "ld.shared::cta": _ld("shared"),
}
_STORES = {"st.global": _st("global"), "st.shared": _st("shared"), "st.shared::cta": _st("shared")}


def _register() -> None:
    for table in (_LOADS, _STORES):
        for stem, make in table.items():
            for vector, count in (("", 1), (".v2", 2), (".v4", 4)):
                for bits in (8, 16, 32, 64):
                    for kind in "busf":
                        if (kind == "f" and bits < 32) or count * bits > 128:
                            continue
                        OPCODES[f"{stem}{vector}.{kind}{bits}"] = _bind(make, (count, bits), kind == "s")


def _bind(
    make: Callable[[Decoder, Instruction, Access, bool], Operation], access: Access, signed: bool
) -> Callable[[Decoder, Instruction], Operation]:
    return lambda decoder, instruction: make(decoder, instruction, access, signed)


_register()
