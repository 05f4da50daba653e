"""PTX text: what is understood, and what is refused by name and line."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from mqa_ref.emulator import GlobalMemory, LaunchCall, decode, parse, run_grid
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
        ("add.sat.u32 %r1, %r2, %r3;", 9, "add.sat.u32"),
        ("max.xorsign.abs.f32 %r1, %r2, %r3;", 9, "max.xorsign.abs.f32"),
        ("add.rz.f32 %r1, %r2, %r3;", 9, "add.rz.f32"),
        ("ld.global.relaxed.gpu.b32 %r1, [%d1];", 9, "ld.global.relaxed.gpu.b32"),
        ("mov.u32 %r1, %r2;\nwgmma.fence.sync.aligned;", 10, "wgmma exists on sm_90a only"),
        ("mul.hi.sat.s32 %r1, %r2, %r3;", 9, "mul has no row with .sat"),
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


def test_what_nvcc_writes() -> None:
    """Several statements on a line, pragmas, locations of inlined code, variables, aligned pointers, launch bounds."""
    text = (
        HEAD
        + """.global .align 4 .b8 table[8] = {1, 2, 0x3, 0b100};\n.const .u32 c = 0x1F;
.extern .shared .align 1024 .b8 dynamic[];
.entry k(.param .u32 n, .param .u64 .ptr .global .align 16 p)
.maxntid 256, 1, 1
.minnctapersm 1
{
.reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .pred %p<2>;
.shared .align 16 .b8 fixed[48];
.loc 1 7 3
.loc 1 9 3, function_name $L__info_string0, inlined_at 1 7 3
{ .reg .pred P1; LAB: @P1 bra LAB; } { .reg .pred P1; LAB: @!P1 bra.uni LAB; }
.pragma "nounroll";
mov.u32 %r1, dynamic; add.s32 %r2, %r1, 64; mov.u32 %r3, fixed+8;
ld.shared.u32 %r4, [fixed-4]; ld.shared.u32 %r4, [%r1-8];
mov.u32 %r5, 010;
ret;
}
.file 1 "/somewhere/kernel.cu"
.section .debug_str
{
$L__info_string0:
.b8 95,90
}
"""
    )
    program = parse(text)
    assert (program.required_threads, program.max_threads, program.target) == (None, 256, "sm_100a")
    assert program.shared == {"fixed": 0, "dynamic": 1024}
    assert [(v.name, v.data, v.writable) for v in program.variables] == [
        ("table", bytes([1, 2, 3, 4, 0, 0, 0, 0]), True),
        ("c", bytes([31, 0, 0, 0]), False),
    ]
    first, second, *rest = program.instructions
    assert (first.target, second.target) == (0, 1)
    assert first.guard != second.guard
    assert [i.text for i in rest[:2]] == ["mov.u32 %r1, dynamic;", "add.s32 %r2, %r1, 64;"]
    assert rest[2].operands[1] == Symbol("fixed", 8)
    assert (rest[3].operands[1], rest[4].operands[1]) == (
        Addr(Symbol("fixed"), -4),
        Addr(Reg(1, "b32", "%r1"), -8),
    )
    assert rest[5].operands[1] == Imm(8)
    assert program.source_of(rest[0]) == "kernel.cu:9"


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (".local .align 8 .b8 depot[16];", "'.local' is not modelled here"),
        ("AGAIN: AGAIN: ret;", "label 'AGAIN' is defined twice"),
        ("call f, (%r1);", "is not an operand"),
        (".reg .v2 .b32 %v;", "register type '.v2' is not modelled"),
        ("mov.b32 %r1, 09;", "decimal constant 09"),
        (".loc 1 2 3, somewhere 4", "'somewhere' is not modelled here"),
    ],
)
def test_forms_that_are_refused(body: str, what: str) -> None:
    with pytest.raises(EmulatorError, match=what):
        decode(parse(kernel(body)))


@pytest.mark.parametrize("engine", ["compiled", "interpreter"])
def test_variables_of_the_module_and_special_registers(engine: str) -> None:
    text = (
        ".version 8.8 .target sm_90a .address_size 64 .global .align 8 .b32 counts[4] = {7, -1};\n"
        ".const .align 4 .u32 scale = 3; .entry k(.param .u64 out) { .reg .b32 %r<9>; .reg .b64 %d<9>;\n"
        "ld.param.u64 %d1, [out]; mov.u32 %r8, %laneid; mul.wide.u32 %d2, %r8, 4; add.s64 %d1, %d1, %d2;\n"
        "and.b32 %r1, %r8, 3; mul.wide.u32 %d3, %r1, 4; mov.u64 %d4, counts; add.s64 %d4, %d4, %d3;\n"
        "ld.global.u32 %r2, [%d4]; ld.const.u32 %r3, [scale]; mul.lo.s32 %r2, %r2, %r3;\n"
        "mov.u32 %r4, %lanemask_lt; popc.b32 %r4, %r4; mov.u32 %r5, %lanemask_ge; popc.b32 %r5, %r5;\n"
        "add.s32 %r4, %r4, %r5; add.s32 %r2, %r2, %r4; mov.u32 %r6, %dynamic_smem_size; add.s32 %r2, %r2, %r6;\n"
        "st.global.u32 [%d1], %r2; ret; }"
    )
    memory = GlobalMemory()
    out = np.zeros(128, np.uint8)
    target = memory.add("out", out, writable=True)
    call = LaunchCall((1, 1, 1), (32, 1, 1), 1000, struct.pack("<Q", target.address))
    outcome = run_grid(decode(parse(text)), call, memory, budget=1000, engine=engine)
    assert outcome.findings == ()
    assert out.view(np.int32).tolist() == [1053, 1029, 1032, 1032] * 8
    wrong = text.replace("[scale]", "[nothing]")
    with pytest.raises(EmulatorError, match="'nothing' is not a variable or parameter"):
        decode(parse(wrong))
    stored = text.replace(
        "ld.const.u32 %r3, [scale];", "mov.u64 %d5, scale; st.global.u32 [%d5], %r2; mov.u32 %r3, 3;"
    )
    assert {f.kind for f in run_grid(decode(parse(stored)), call, memory, budget=1000).findings} == {
        "input_written"
    }
