"""Every opcode that has a vector kernel, on random and special operands under every kind of mask: the judge is the
interpreter, whose operations are held against the scalar twins of ``numerics`` and the ISA elsewhere.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mqa_ref import emulator
from mqa_ref.emulator import opcodes
from mqa_ref.emulator.compiled import native
from mqa_ref.emulator.decode import OPCODES

pytestmark = pytest.mark.skipif(not native.available(), reason="the CPU lacks what machine code needs")

ROUNDS = 8
GUARDS = ("", "@%p10", "@!%p10", "branch")
SPECIAL = {
    16: (0, 1, 0x8000, 0x7FFF, 0xFFFF, 0x7C00, 0xFC00, 0x7C01, 0x3C00, 0x0400, 0x03FF, 0x7BFF, 0xBD35, 0x4C02,
         0x01FF),
    32: (0, 1, 31, 32, 33, 0x80000000, 0x7FFFFFFF, 0xFFFFFFFF, 0x7F800000, 0xFF800000, 0x7F800001, 0x3F800000,
         0x00800000, 0x007FFFFF, 0x477FF000, 0x33000000, 0x437FFFFE, 0xAD800001, 0x828D8383),
    64: (0, 1, 1 << 63, (1 << 63) - 1, (1 << 64) - 1, 0x7F80000080000000, 0x7F800001FF800000, 0x3F80000000000001, 63,
         64),
}  # fmt: skip
NAMES = sorted(
    name
    for name, kernel in native.kernels().items()
    if kernel.sources and not kernel.exchanges and not name.startswith(("pack.", "unpack."))
)
HEADER = """
.version 8.8
.target sm_100a
.address_size 64
.visible .entry kernel(.param .u64 in_ptr, .param .u64 out_ptr)
.reqntid 32
{
.reg .pred %p<16>;
.reg .b16 %h<64>;
.reg .b32 %r<64>;
.reg .b64 %d<64>;
ld.param.b64 %d60, [in_ptr];
ld.param.b64 %d61, [out_ptr];
mov.u32 %r60, %tid.x;
mul.wide.u32 %d62, %r60, 8;
add.s64 %d60, %d60, %d62;
add.s64 %d61, %d61, %d62;
"""
LETTER = {16: "h", 32: "r", 64: "d"}


def operand(width: int, number: int) -> str:
    return f"%p{number}" if width == 1 else f"%{LETTER[width]}{number}"


def load(width: int, number: int, place: int) -> str:
    """Read 64 bits of each lane's own row of operands into a register."""
    if width == 1:
        return f"ld.global.b32 %r50, [%d60+{256 * place}];\nsetp.ne.s32 %p{number}, %r50, 0;\n"
    return f"ld.global.b{width} {operand(width, number)}, [%d60+{256 * place}];\n"


def program(name: str) -> str:
    """One instruction in every round, under each guard in turn; operands of a round lie 256 bytes from each other, the
    guard last."""
    kernel = native.kernels()[name]
    width = kernel.results[0]
    body = ""
    for turn in range(ROUNDS):
        for number, bits in enumerate(kernel.sources, start=1):
            body += load(bits, number, 4 * turn + number - 1)
        body += load(1, 10, 4 * turn + 3)
        target = operand(width, 0)
        body += f"setp.ne.s32 %p0, %r60, {turn};\n" if width == 1 else f"mov.b{width} {target}, {turn};\n"
        sources = ", ".join(operand(bits, number) for number, bits in enumerate(kernel.sources, start=1))
        instruction = f"{name} {target}, {sources};\n"
        guard = GUARDS[turn % len(GUARDS)]
        if guard == "branch":
            body += f"@!%p10 bra L{turn};\n{instruction}L{turn}:\n"
        else:
            body += f"{guard} {instruction}"
        if width == 1:
            body += "selp.b32 %r49, 1, 0, %p0;\n"
        stored = "%r49" if width == 1 else target
        body += f"st.global.b{32 if width == 1 else width} [%d61+{256 * turn}], {stored};\n"
    return HEADER + body + "ret;\n}\n"


def operands(name: str) -> NDArray[np.uint64]:
    """[ROUNDS * 4, 32]: half of the values are special, in the widths that the sources have."""
    draw = np.random.default_rng(sorted(native.kernels()).index(name))
    out = draw.integers(0, 1 << 64, (ROUNDS * 4, 32), np.uint64)
    for number, bits in enumerate(native.kernels()[name].sources):
        if bits > 1:
            choice = np.array(SPECIAL[bits], np.uint64)[draw.integers(0, len(SPECIAL[bits]), (ROUNDS, 32))]
            rows = out[number::4]
            rows[:] = np.where(draw.random((ROUNDS, 32)) < 0.5, choice, rows)
    out[3::4] = draw.random((ROUNDS, 32)) < draw.choice([0.0, 0.1, 0.5, 0.9, 1.0], (ROUNDS, 1))
    return out


def ran(text: str, given: NDArray[np.uint64], engine: str) -> tuple[NDArray[np.uint8], Any]:
    memory = emulator.GlobalMemory()
    out = np.zeros(ROUNDS * 256, np.uint8)
    source = memory.add("in", given.view(np.uint8).reshape(-1).copy(), writable=False)
    target = memory.add("out", out, writable=True)
    call = emulator.LaunchCall((1, 1, 1), (32, 1, 1), 0, struct.pack("<QQ", source.address, target.address))
    code = emulator.decode(emulator.parse(text))
    outcome = emulator.run_grid(code, call, memory, engine=engine, budget=100_000)
    assert engine == "interpreter" or code.table is not None
    return out, (outcome.findings, outcome.instructions)


@pytest.mark.parametrize("name", NAMES)
def test_kernel(name: str) -> None:
    text, given = program(name), operands(name)
    expected, judged = ran(text, given, "interpreter")
    found, told = ran(text, given, "compiled")
    assert np.array_equal(found, expected)
    assert told == judged
    assert expected.any()


def test_kernels_are_opcodes() -> None:
    """A kernel under a name that no instruction has would be dead code."""
    opcodes.load()
    assert [name for name in NAMES if name not in OPCODES] == []
