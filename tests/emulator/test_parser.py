"""PTX text: what is understood, and what is refused by name and line."""

from __future__ import annotations

import pytest

from mqa_ref.emulator import decode, parse
from mqa_ref.emulator.ptx import Addr, Imm, Pair, Reg, Symbol, Vec
from mqa_ref.errors import EmulatorError

HEAD = ".version 8.8\n.target sm_100a\n.address_size 64\n"


def kernel(body: str, registers: str = ".reg .b32 %r<9>;\n.reg .b64 %d<9>;\n.reg .pred %p<4>;\n") -> str:
    return f"{HEAD}.visible .entry k(.param .u32 n)\n{{\n{registers}{body}\n}}\n"


def test_every_form_of_operand() -> None:
    program = parse(
        kernel(
            "ld.global.v2.b32 {%r1, %r2}, [%d1+-8];\n"
            "elect.sync %r3|%p1, -1;\n"
            "mov.b32 %r4, 0f3F800000;\n"
            "mov.b32 %r5, 0x1F; /* two\nlines */ mov.b32 %r6, 7; // three on two lines\n"
            "@!%p1 mov.u32 %r7, %tid.x;\n"
            "ret;"
        )
    )
    load, elect, one, hexadecimal, seven, guarded, _ = program.instructions
    assert load.operands == (
        Vec((Reg(1, "b32", "%r1"), Reg(2, "b32", "%r2"))),
        Addr(Reg(10, "b64", "%d1"), -8),
    )
    assert elect.operands[0] == Pair(Reg(3, "b32", "%r3"), Reg(19, "pred", "%p1"))
    assert one.operands[1] == Imm(0x3F800000, is_bits=True)
    assert (hexadecimal.operands[1], seven.operands[1]) == (Imm(31), Imm(7))
    assert guarded.guard == Reg(19, "pred", "%p1", negated=True)
    assert seven.line == hexadecimal.line + 1


def test_inline_blocks_scope_their_registers_and_labels() -> None:
    block = "{\n.reg .pred P1;\nAGAIN:\n@P1 bra DONE;\nbra AGAIN;\nDONE:\n}\n"
    program = parse(kernel(f"{block}{block}bra END;\nEND:\nret;"))
    targets = [i.target for i in program.instructions]
    assert targets == [2, 0, 4, 2, 5, None]
    guards = {i.guard.index for i in program.instructions if i.guard}
    assert len(guards) == 2, "each block has its own P1"


def test_parameters_are_laid_out_with_their_alignment() -> None:
    text = (
        f"{HEAD}.visible .entry k(\n.param .b8 flag,\n.param .align 64 .b8 map[128],\n"
        ".param .u32 n,\n.param .u64 p)\n{\nret;\n}\n"
    )
    assert [(p.name, p.offset, p.size) for p in parse(text).parameters] == [
        ("flag", 0, 1),
        ("map", 64, 128),
        ("n", 192, 4),
        ("p", 200, 8),
    ]


@pytest.mark.parametrize(
    ("body", "line", "what"),
    [
        ("add.sat.s32 %r1, %r2, %r3;", 9, "add.sat.s32"),
        ("max.xorsign.abs.f32 %r1, %r2, %r3;", 9, "max.xorsign.abs.f32"),
        ("add.rz.f32 %r1, %r2, %r3;", 9, "add.rz.f32"),
        ("ld.global.relaxed.gpu.b32 %r1, [%d1];", 9, "ld.global.relaxed.gpu.b32"),
        ("mov.u32 %r1, %r2;\nwgmma.fence.sync.aligned;", 10, "wgmma.fence.sync.aligned"),
        ("add.s32 %r1, %d1, %r3;", 9, "%d1 is b64, expected 32 bits"),
        ("add.s32 %d1, %r1, %r3;", 9, "%d1 is no 32-bit register"),
        ("setp.eq.s32 %r1, %r2, %r3;", 9, "%r1 is no 1-bit register"),
        ("add.s32 %r1, %r2;", 9, "expected 3 operands"),
        ("mov.b32 %r1, nowhere;", 9, "'nowhere' is not a variable or parameter"),
    ],
)
def test_what_is_not_modelled_is_refused_with_name_and_line(body: str, line: int, what: str) -> None:
    with pytest.raises(EmulatorError) as caught:
        decode(parse(kernel(body + "\nret;")))
    assert f"PTX line {line}:" in str(caught.value)
    assert what in str(caught.value)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (kernel("bra NOWHERE;"), "label 'NOWHERE' is not defined"),
        (kernel("mov.b32 %r1, 1"), "stands where ';' is expected"),
        (kernel("mov.f32 %r1, 1.5;"), "decimal constant"),
        (kernel("mov.b32 %r1, ^;"), "is not a PTX token"),
        (kernel(".weird;"), "'.weird' is not modelled here"),
        (f"{HEAD}.func f()\n{{\nret;\n}}\n", "directive '.func' is not modelled"),
        (HEAD, "0 kernels"),
        (kernel("ret;")[:-3], "ends in the middle"),
    ],
)
def test_broken_text_is_refused(text: str, what: str) -> None:
    with pytest.raises(EmulatorError, match=what.replace("(", r"\(")):
        parse(text)


def test_a_sink_takes_the_place_of_a_destination() -> None:
    program = parse(kernel("mbarrier.arrive.shared.b64 _, [%r1];\nret;"))
    assert program.instructions[0].operands[0] == Symbol("_")
    decode(program)
