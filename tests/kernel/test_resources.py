"""Costs of the kernel, and the readers of listings on listings made by hand."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from mqa_ref.errors import NotAvailable
from mqa_ref.kernel import CompiledKernel, Resources, cubin, measure
from mqa_ref.kernel.loops import Instruction, innermost_loop
from mqa_ref.kernel.resources import ptx_epilogue

Compile = Callable[..., CompiledKernel]
SHAPES = [(page, next_n, heads) for page in (64, 128) for next_n in (1, 2) for heads in (64, 32)]

# Instructions of the seed kernel's epilogue loop by the same count (nvidia-cutlass-dsl 4.8.1): not to be exceeded.
SEED_EPILOGUE = {(1, 64): 182, (2, 64): 275, (1, 32): 155, (2, 32): 196}

SASS = """
.text.kernel:
.L_x_9:
        /*0000*/                   S2R R0, SR_TID.X ;
        /*0010*/              @!P0 BRA `(.L_x_3) ;
.L_x_1:
        /*0020*/                   LDS R1, [R0] ;
        /*0030*/              @!P1 BRA `(.L_x_4) ;
.L_x_2:
        /*0040*/                   LDTM.x64 R4, tmem[UR4] ;
        /*0050*/                   FADD2 R2, R4.F32x2.HI_LO, |R4|.F32x2.HI_LO ;
        /*0060*/                   BRA.U UP0, `(.L_x_1) ;
.L_x_3:
        /*0070*/                   EXIT ;
.L_x_4:
        /*0080*/                   NANOSLEEP 0x1 ;
        /*0090*/                   BRA `(.L_x_2) ;
"""

PTX = """
$L__BB0_1:
	.pragma "nounroll";
	// begin inline asm
	{
	.reg .pred       P1;
	LAB_WAIT:
	mbarrier.try_wait.parity.shared.b64 P1, [%r1], %r2, 10000000;
	@P1 bra.uni DONE;
	bra.uni     LAB_WAIT;
	DONE:
	}
	// end inline asm
$L__BB0_2:
	tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r3}, [%r4];
	tcgen05.wait::ld.sync.aligned;
	@%p1 bra 	$L__BB0_3;
	st.global.b32 	[%rd1], %r3;
$L__BB0_3:
	setp.ne.b32 	%p2, %r5, 0;
	@%p2 bra 	$L__BB0_2;
	@%p3 bra 	$L__BB0_1;
	ret;
"""


@pytest.fixture(scope="session")
def measured(compiled: Compile) -> Callable[..., Resources]:
    return lambda **shape: measure(compiled(**shape))


@pytest.mark.parametrize(("page", "next_n", "heads"), SHAPES)
def test_cost_of_every_shape(measured: Callable[..., Resources], page: int, next_n: int, heads: int) -> None:
    cost = measured(page=page, next_n=next_n, heads=heads)
    assert cost.registers <= 168
    assert cost.spill_instructions == cost.frame_bytes == 0
    assert cost.epilogue_sass["LDTM"] == next_n
    assert cost.epilogue_sass["FADD2"] == cost.epilogue_sass["FFMA2"] == next_n * heads // 2
    assert cost.sass["UTCQMMA"] == 4
    assert next_n * heads < cost.epilogue_instructions <= SEED_EPILOGUE[next_n, heads]
    assert cost.epilogue_instructions < cost.instructions


def test_a_loop_needs_a_jump_back_that_its_target_dominates() -> None:
    """The way back from the retry path (.L_x_4) goes up too, but it is no loop; nor is the path part of one."""
    code = cubin.parse_sass(SASS)
    assert [step.opcode for step in code][:2] == ["S2R", "BRA"]
    assert (code[1].jumps, code[1].goes_on) == ((7,), True)
    assert (code[6].jumps, code[6].goes_on) == ((2,), True)
    assert (code[9].jumps, code[9].goes_on) == ((4,), False)
    body = innermost_loop(code, lambda opcode: opcode == "LDTM")
    assert [step.opcode for step in body] == ["LDS", "BRA", "LDTM", "FADD2", "BRA"]
    assert innermost_loop(code, lambda opcode: opcode == "NANOSLEEP") == ()


def test_the_innermost_loop_and_the_longest_of_several() -> None:
    step = Instruction
    code = [step("a"), step("x"), step("b", (1,)), step("x"), step("c"), step("d", (3,)), step("e", (0,))]
    assert [found.opcode for found in innermost_loop(code, lambda opcode: opcode == "x")] == ["x", "c", "d"]
    assert [found.opcode for found in innermost_loop(code, lambda opcode: opcode == "b")] == ["x", "b"]
    assert len(innermost_loop(code, lambda opcode: opcode == "a")) == 7


def test_ptx_loop() -> None:
    loop = ptx_epilogue(PTX)
    assert loop == {
        "tcgen05.ld.sync.aligned.32x32b.x1.b32": 1,
        "tcgen05.wait::ld.sync.aligned": 1,
        "bra": 2,
        "st.global.b32": 1,
        "setp.ne.b32": 1,
    }
    assert ptx_epilogue("ret;") == {}


def test_attributes_of_a_cubin_made_by_hand() -> None:
    """Two sections of attributes: a flag without payload, 96 and 168 registers, a stack frame of 16 bytes."""
    first = struct.pack("<BBH", 1, 0x50, 0) + struct.pack("<BBHII", 4, 0x2F, 8, 3, 96)
    second = struct.pack("<BBHII", 4, 0x2F, 8, 4, 168) + struct.pack("<BBHII", 4, 0x11, 8, 4, 16)
    table = 64
    headers = b""
    at = table + 2 * 64
    for section in (first, second):
        headers += struct.pack("<IIQQQQIIQQ", 0, 0x70000000, 0, 0, at, len(section), 0, 0, 4, 0)
        at += len(section)
    elf = bytearray(b"\x7fELF\x02".ljust(64, b"\0"))
    struct.pack_into("<Q", elf, 0x28, table)
    struct.pack_into("<HH", elf, 0x3A, 64, 2)
    assert cubin.registers_and_frame(bytes(elf) + headers + first + second) == (168, 16)
    with pytest.raises(ValueError, match="ELF"):
        cubin.registers_and_frame(b"\x7fELF\x01" + bytes(64))


def test_no_disassembler_is_a_typed_answer(monkeypatch: pytest.MonkeyPatch, compiled: Compile) -> None:
    monkeypatch.setattr("sys.path", [])
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NotAvailable, match="nvidia-cuda-nvdisasm"):
        measure(compiled())
