"""Programs that apply one instruction after another to numbers, for a real GPU and the emulator: every instruction that
works on each lane alone and exists on sm_90, with operands that are special or random.

Each of 64 threads takes eight sets of operands and folds what an instruction gives for them into a word of its own, so
a word that differs names the instruction. All take the same operands: what is recorded of one does not depend on the
others. Sixteen-bit operands are the lower half of the 32-bit ones, and those of the 64-bit ones; 8-bit ones lie in
32-bit registers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.emulator import opcodes
from mqa_ref.emulator.opcodes.recorded import takes_numbers
from mqa_ref.emulator.opcodes.table import TABLE
from mqa_ref.verification.words import words

THREADS, SETS, OPERANDS, TOGETHER = 64, 8, 3, 32
SPECIALS = (
    0, 1, 2, 3, 7, 8, 15, 16, 23, 24, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 0x7FFF, 0x8000, 0x8001, 0xFFFF,
    0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF, 0x100000000, 0x7FFFFFFF80000000,
    (1 << 63) - 1, 1 << 63, (1 << 63) + 1, (1 << 64) - 2, (1 << 64) - 1, 0xFFFFFFFF00000000, 0xFFFFFFFF80000000,
    0x3F8000003F800000, 0xBF000000BF000000, 0x3FC000003FC00000, 0x4020000040200000, 0xC0200000C0200000,
    0x4F0000004F000000, 0x4EFFFFFF4EFFFFFF, 0xCF000000CF000000, 0x5F0000005F000000, 0xDF000000DF000000,
    0x4F7FFFFF4F7FFFFF, 0x5F7FFFFF5F7FFFFF, 0x46FFFE0046FFFE00, 0xC7000000C7000000, 0x477FFF00477FFF00,
    0x7F8000007F800000, 0xFF800000FF800000, 0x7FC000007FC00000, 0xFFC00001FFC00001, 0x0000000100000001,
    0x8000000180000001, 0x007FFFFF007FFFFF, 0x3C003C003C003C00, 0x7C007C007C007C00, 0x7E007E007E007E00,
)  # fmt: skip
"""Of integers of every width, of fp32 and of fp16."""


@dataclass(frozen=True)
class Values:
    """One program: the instructions, in the order of their words in each thread's slot."""

    instructions: tuple[str, ...]
    wide: bool

    @property
    def keys(self) -> tuple[str, ...]:
        """What the words are called in the recording."""
        return tuple(f"{name} wide" if self.wide else name for name in self.instructions)

    @property
    def slot(self) -> int:
        """Bytes of output of a thread."""
        return 8 * len(self.instructions)

    @property
    def ptx(self) -> str:
        """The whole text."""
        return _program(self)


def split(program: Values, output: NDArray[np.uint64]) -> dict[str, NDArray[np.uint64]]:
    """The words of each instruction, one for each thread, from the output of its program."""
    table = output.reshape(THREADS, len(program.instructions))
    return {key: np.ascontiguousarray(table[:, place]) for place, key in enumerate(program.keys)}


def tensors_of(words: Mapping[str, NDArray[np.uint64]]) -> dict[str, NDArray[Any]]:
    """The words of many instructions as two tensors: "names" in ASCII, and "words", their lower and upper halves."""
    names = np.array(list(words), np.bytes_)
    table = np.stack(list(words.values())).view(np.uint32)
    return {"names": names.view(np.uint8).reshape(len(words), -1), "words": table}


def words_of(tensors: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[np.uint64]]:
    """What ``tensors_of`` was given."""
    names = [bytes(row).rstrip(b"\0").decode() for row in tensors["names"]]
    return dict(zip(names, np.ascontiguousarray(tensors["words"]).view(np.uint64), strict=True))


def given() -> NDArray[np.uint64]:
    """The input of every program, [threads, sets, operands]."""
    count = THREADS * SETS * OPERANDS
    drawn, chosen = words("silicon/values", count), words("silicon/values/special", count)
    table = np.array(SPECIALS, np.uint64)
    special = table[(chosen >> np.uint64(8)) % np.uint64(len(table))]
    found: NDArray[np.uint64] = np.where(chosen & np.uint64(1), special, drawn)
    return found.reshape(THREADS, SETS, OPERANDS)


def _width(kind: str) -> int:
    return {"pred": 1, "f16x2": 32}.get(kind) or int(kind[1:].removesuffix("x2")) * (2 if "x2" in kind else 1)


def _sources(name: str, sources: Iterable[str], *, wide: bool) -> Iterator[tuple[str, list[str]]]:
    """The register of each operand, and what puts it there."""
    base = name.split(".")[0]
    for place, spelled in enumerate(sources):
        kind = spelled.removesuffix(" or {parts}")
        if kind == "constant":
            continue
        # A fourth operand is the upper half of the third one's word.
        word = f"%d{min(place, 2) + 1}"
        lines: list[str] = []
        if place == 3:
            lines.append(f"shr.u64 %d4, {word}, 32;")
            word = "%d4"
        width = _width(kind)
        if width == 1:
            register = f"%p{place + 3}"
            lines += [f"cvt.u32.u64 %r9, {word};", "and.b32 %r9, %r9, 1;", f"setp.ne.s32 {register}, %r9, 0;"]
            yield register, lines
            continue
        if width == 64 or wide:
            register = word
        else:
            letter, bits = ("h", 16) if width == 16 else ("r", 32)
            register = f"%{letter}{place + 1}"
            lines.append(f"cvt.u{bits}.u64 {register}, {word};")
        if base == "fns" and place:  # bits 0 to 31 exist; at most 16 set bits up or down
            lines.append(
                f"{'and.b32' if place == 1 else 'shr.s32'} {register}, {register}, {31 if place == 1 else 27};"
            )
        if base in ("bfe", "bfi") and kind == "u32":
            lines.append(f"and.b32 {register}, {register}, 255;")  # the ISA defines no more
        if base in ("div", "rem") and place == 1:  # by zero is not defined
            letter = {16: "h", 32: "r", 64: "d"}[width]
            lines += [
                f"setp.eq.s{width} %p8, {register}, 0;",
                f"selp.b{width} %{letter}5, 1, {register}, %p8;",
            ]
            register = f"%{letter}5"
        yield register, lines


def _instruction(number: int, name: str, *, wide: bool) -> list[str]:
    """One instruction on the operands of a set, folded into %acc."""
    row = TABLE[name]
    result, sources = row.result, row.sources
    lines: list[str] = []
    registers = []
    for register, setup in _sources(name, sources, wide=wide):
        lines += setup
        registers.append(register)
    if name == "lop3.b32":
        registers.append("0xB1")
    if result == "pred":
        pair = name.startswith("setp.") and not name.endswith(".f16")
        lines.append(f"{name} {'%p1|%p2' if pair else '%p1'}, {', '.join(registers)};")
        lines.append("selp.b64 %d9, 1, 0, %p1;")
        if pair:
            lines += ["selp.b64 %d8, 2, 0, %p2;", "add.s64 %d9, %d9, %d8;"]
    else:
        width = 64 if wide else _width(result)
        letter = {8: "r", 16: "h", 32: "r", 64: "d"}[width]
        lines.append(f"{name} %{letter}9, {', '.join(registers)};")
        if width < 64:
            lines.append(f"cvt.u64.u{max(width, 16) if letter == 'h' else 32} %d9, %{letter}9;")
    return [
        *lines,
        f"mul.lo.s64 %acc{number}, %acc{number}, 31;",
        f"add.s64 %acc{number}, %acc{number}, %d9;",
    ]


def _program(program: Values) -> str:
    count = len(program.instructions)
    lines = [
        ".version 8.6\n.target sm_90a\n.address_size 64",
        ".visible .entry kernel(.param .u64 in_ptr, .param .u64 out_ptr)",
        f".reqntid {THREADS}\n{{",
        f".reg .pred %p<10>;\n.reg .b16 %h<10>;\n.reg .b32 %r<20>;\n.reg .b64 %d<20>;\n.reg .b64 %acc<{count}>;",
        "ld.param.b64 %d10, [in_ptr];\nld.param.b64 %d11, [out_ptr];\nmov.u32 %r10, %tid.x;",
        f"mul.wide.u32 %d12, %r10, {SETS * OPERANDS * 8};\nadd.s64 %d10, %d10, %d12;",
        f"mul.wide.u32 %d12, %r10, {program.slot};\nadd.s64 %d11, %d11, %d12;",
        *(f"mov.b64 %acc{number}, 0;" for number in range(count)),
        "mov.b32 %r11, 0;\nNEXT:",
        *(f"ld.global.b64 %d{place + 1}, [%d10+{8 * place}];" for place in range(OPERANDS)),
    ]
    for number, name in enumerate(program.instructions):
        lines += _instruction(number, name, wide=program.wide)
    lines += [
        f"add.s64 %d10, %d10, {8 * OPERANDS};\nadd.s32 %r11, %r11, 1;",
        f"setp.lt.s32 %p7, %r11, {SETS};\n@%p7 bra NEXT;",
        *(f"st.global.b64 [%d11+{8 * number}], %acc{number};" for number in range(count)),
        "ret;\n}\n",
    ]
    return "\n".join(lines)


def _is_conversion(name: str) -> bool:
    """Between integers: such as may work on registers wider than their types."""
    parts = name.split(".")
    return parts[0] == "cvt" and all(
        part[0] in "su" and part[1:].isdigit() for part in parts[1:] if part != "sat"
    )


def programs() -> tuple[Values, ...]:
    """All of them; conversions between integers once more with every operand in a 64-bit register."""
    opcodes.load()
    names = [name for name, row in TABLE.items() if takes_numbers(row)]
    wide = [name for name in names if _is_conversion(name)]
    return tuple(
        Values(tuple(chosen[start : start + TOGETHER]), chosen is wide)
        for chosen in (names, wide)
        for start in range(0, len(chosen), TOGETHER)
    )
