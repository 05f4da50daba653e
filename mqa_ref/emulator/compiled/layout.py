"""Where each register lies in the flat register file of a warp, and the files that warps are lent.

A file holds the program's registers, then special registers and constants, then a place that is read in place of a
missing source and one that is written in place of a missing destination, then the kernel's parameters.
Registers of one width that follow each other in the program follow each other in memory.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from mqa_ref.emulator.compiled import native
from mqa_ref.emulator.compiled.vectors import ALIGNMENT, BYTE, LANES, LONG, POINTER, each, splat
from mqa_ref.emulator.decode import WIDTH_TYPES, width_of
from mqa_ref.emulator.warp import Lanes

NEVER_WRITTEN = (1 << LANES) - 1
IN_FLIGHT = NEVER_WRITTEN << LANES


class Layout:
    """Places of registers. ``widths`` are bits by register number; ``constants`` the values of those that have one."""

    def __init__(
        self, registers: tuple[str, ...], template: list[Lanes | None], parameter_bytes: int
    ) -> None:
        self.program_registers = len(registers)
        self.template = template
        self.widths = [width_of(kind) for kind in registers]
        for array in template[len(registers) :]:
            self.widths.append(32 if array is None else _bits(array))
        self.source, self.sink = len(self.widths), len(self.widths) + 1
        self.widths += [64, 64]
        self.offsets, self.size = [], 0
        for width in self.widths:
            self.offsets.append(self.size)
            self.size += -(-LANES * max(width // 8, 1) // ALIGNMENT) * ALIGNMENT
        self.parameters = self.size
        self.size += parameter_bytes
        self.size = -(-self.size // ALIGNMENT) * ALIGNMENT

    def view(self, file: NDArray[np.uint8], register: int) -> Lanes:
        """One register of a file as an array of 32 elements."""
        offset, width = self.offsets[register], self.widths[register]
        return file[offset : offset + LANES * max(width // 8, 1)].view(WIDTH_TYPES[width])

    def states(self) -> NDArray[np.uint64]:
        """The states of a fresh file: nothing written but constants."""
        states = np.zeros(len(self.widths), np.uint64)
        states[: self.program_registers] = NEVER_WRITTEN
        return states


def _bits(array: Lanes) -> int:
    return 1 if array.dtype == np.bool_ else array.dtype.itemsize * 8


class Registers(dict[int, Any]):
    """Views of the registers of one file, made when first asked for; a register that is set keeps its place."""

    def __init__(self, layout: Layout, file: NDArray[np.uint8]) -> None:
        super().__init__()
        self.layout, self.file = layout, file

    def __missing__(self, index: int) -> Lanes:
        view = self.layout.view(self.file, index)
        super().__setitem__(index, view)
        return view

    def __setitem__(self, index: int, value: Any) -> None:
        self[index][:] = value


class RegisterFiles:
    """The files of all warps of one CTA of a launch with these parameters, used again by the next CTA."""

    def __init__(self, layout: Layout, warps: int, parameters: bytes) -> None:
        self.layout = layout
        whole = np.zeros(warps * layout.size + ALIGNMENT, np.uint8)
        start = -whole.ctypes.data % ALIGNMENT
        self.memory = whole[start : start + warps * layout.size].reshape(warps, layout.size)
        self.fresh = layout.states()
        self.states = np.tile(self.fresh, (warps, 1))
        constants = np.zeros(layout.size, np.uint8)
        for slot, value in enumerate(layout.template):
            if value is not None:
                layout.view(constants, slot)[:] = value
        given = np.frombuffer(parameters, np.uint8)[: layout.size - layout.parameters]
        constants[layout.parameters : layout.parameters + len(given)] = given
        self.memory[:] = constants
        self.registers = [Registers(layout, file) for file in self.memory]

        layout_arrays = (layout.offsets, [LANES * max(width // 8, 1) for width in layout.widths])
        self._places, self._sizes = (np.array(one, np.int64) for one in layout_arrays)
        arrays = (self.memory, self.states, self._places, self._sizes)
        self._arguments = (
            *(array.ctypes.data for array in arrays),
            *(warps, layout.size, len(layout.widths), layout.program_registers),
        )
        self._reset = _reset()

    def reset(self) -> None:
        """Make the files those of a new CTA: registers that were never written are still zero."""
        self._reset(*self._arguments)


@cache
def _reset() -> Any:
    """void reset(files, states, places, sizes, warps, bytes of a file, registers, those of the program)."""
    module = ir.Module("reset")
    kind = ir.FunctionType(ir.VoidType(), [POINTER] * 4 + [LONG] * 4)
    function = ir.Function(module, kind, "reset")
    files, states, places, sizes, warps, size, registers, of_program = function.args
    b = ir.IRBuilder(function.append_basic_block())
    with each(b, warps) as warp, each(b, registers) as register:
        at = b.gep(states, [b.add(b.mul(warp, registers), register)], source_etype=LONG)
        inside = b.icmp_unsigned("<", register, of_program)
        fresh = b.select(inside, LONG(NEVER_WRITTEN), LONG(0))
        with b.if_then(b.icmp_unsigned("!=", b.load(at, typ=LONG), fresh)):
            b.store(fresh, at)
            with b.if_then(inside):
                place, count = (
                    b.load(b.gep(a, [register], source_etype=LONG), typ=LONG) for a in (places, sizes)
                )
                start = b.gep(files, [b.add(b.mul(warp, size), place)], source_etype=BYTE)
                with each(b, b.udiv(count, LONG(LANES))) as row:
                    piece = b.gep(start, [b.mul(row, LONG(LANES))], source_etype=BYTE)
                    b.store(splat(0, 8, LANES), piece, align=LANES)
    b.ret_void()
    address = native.link(str(module)).get_function_address("reset")
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 4)(address)
