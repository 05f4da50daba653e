"""Machine code against PTX: the project's kernel passes, and PTX written to be fused, unrolled or split does not."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from mqa_ref.cli.app import run
from mqa_ref.emulator import parse
from mqa_ref.errors import NotAvailable
from mqa_ref.kernel.cubin import tool
from mqa_ref.kernel.sass import ARITHMETIC, arithmetic, count
from mqa_ref.verification import assembly
from mqa_ref.verification.assembly import Row, asked, check_texts

HEAD = """.version 8.8
.target sm_100a
.address_size 64

.visible .entry crafted(
	.param .u64 crafted_0
)
{
	.reg .pred %p<2>;
	.reg .b32 %r<9>;
	.reg .b64 %rd<3>;
	ld.param.b64 %rd1, [crafted_0];
	ld.global.b32 %r1, [%rd1];
	ld.global.b32 %r2, [%rd1+4];
	ld.global.b32 %r3, [%rd1+8];
"""
TAIL = "\tst.global.b32 [%rd1+12], %r5;\n\tret;\n}\n"
PAIR = "\tmul{0}.f32 %r4, %r1, %r2;\n\tadd{1}.f32 %r5, %r4, %r3;\n"
LOOP = """	mov.b32 %r5, %r3;
	mov.b32 %r6, 0;
$L_loop:
	add.rn.f32 %r5, %r5, %r1;
	add.s32 %r6, %r6, 1;
	setp.lt.s32 %p1, %r6, 4;
	@%p1 bra $L_loop;
"""


def machine_code(ptx: str, folder: Path) -> Mapping[str, int]:
    """What ptxas makes of it at its defaults."""
    (folder / "a.ptx").write_text(ptx)
    line = [str(tool("ptxas")), "--gpu-name", "sm_100a", "-o", str(folder / "a.cubin"), str(folder / "a.ptx")]
    subprocess.run(line, check=True, capture_output=True)
    return arithmetic((folder / "a.cubin").read_bytes())


def test_an_exposed_pair_is_fused_and_found(tmp_path: Path) -> None:
    ptx = HEAD + PAIR.format("", "") + TAIL
    found = check_texts(ptx, machine_code(ptx, tmp_path))
    assert found.rows == (Row("FFMA", 0, 1, 0), Row("FMUL", 1, 0, 1), Row("FADD", 1, 0, 1))
    assert {row.verdict for row in found.rows} == {"fused"}
    assert not found.good


@pytest.mark.parametrize("modifiers", [(".rn", ""), ("", ".rn"), (".rn", ".rn")])
def test_a_pair_with_a_rounding_mode_is_kept(tmp_path: Path, modifiers: tuple[str, str]) -> None:
    ptx = HEAD + PAIR.format(*modifiers) + TAIL
    found = check_texts(ptx, machine_code(ptx, tmp_path))
    assert found.rows == (Row("FMUL", 1, 1, 1), Row("FADD", 1, 1, 1))
    assert found.good


def test_a_loop_that_is_unrolled_is_not_passed(tmp_path: Path) -> None:
    """Four sums for one: nothing is fused, and still nobody has shown that all is well."""
    ptx = HEAD + LOOP + TAIL
    found = check_texts(ptx, machine_code(ptx, tmp_path))
    assert found.rows == (Row("FADD", 1, 4, 4),)
    assert found.rows[0].verdict == "unexplained"
    assert not found.good


def test_a_split_is_not_passed() -> None:
    """No assembler is known to do it, so the machine code is made up."""
    ptx = HEAD + "\tfma.rn.f32 %r5, %r1, %r2, %r3;\n" + TAIL
    sass = dict.fromkeys(ARITHMETIC, 0) | {"FMUL": 1, "FADD": 1}
    found = check_texts(ptx, sass)
    assert [(row.opcode, row.verdict) for row in found.rows] == [
        ("FFMA", "fused"),
        ("FMUL", "fused"),
        ("FADD", "fused"),
    ]


def test_without_the_assembler_the_ptx_alone_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ptx = HEAD + PAIR.format("", "") + TAIL
    sass = machine_code(ptx, tmp_path)

    def absent(_: str) -> bytes:
        raise NotAvailable("no ptxas here")

    monkeypatch.setattr(assembly, "assemble_apart", absent)
    found = check_texts(ptx, sass)
    assert (found.missing, found.good) == ("no ptxas here", False)
    assert {row.verdict for row in found.rows} == {"unexplained"}


def test_what_the_ptx_asks_for() -> None:
    body = "\tfma.rn.f32 %r5, %r1, %r2, %r3;\n\tadd.rn.f16x2 %r4, %r1, %r2;\n\tmul.lo.s32 %r6, %r1, %r2;\n"
    wanted = asked(parse(HEAD + body + PAIR.format("", "") + TAIL))
    assert {opcode: times for opcode, times in wanted.items() if times} == {
        "FFMA": 1,
        "HADD2": 1,
        "FMUL": 1,
        "FADD": 1,
    }


LISTING = """
        /*0000*/                   HFMA2 R0, -RZ, RZ, 0, 5.9604644775390625e-08 ;
        /*0010*/                   HFMA2 R131, R3, 1, 1, R48 ;
        /*0020*/               @P0 HFMA2 R4, R4, R128, RZ ;
        /*0030*/                   HFMA2 R2, R5, R53, RZ.H0_H0 ;
        /*0040*/                   HADD2 R130, R130.H0_H0, R130.H1_H1 ;
        /*0050*/                   HADD2.F32 R127, -RZ, R130.H0_H0 ;
        /*0060*/                   FFMA2 R2, R2.F32x2.HI_LO, R128.F32x2.HI_LO, RZ.F32 ;
        /*0070*/              @!P1 FMUL R2, R3, 0.5 ;
        /*0080*/                   IMAD.MOV.U32 R1, RZ, RZ, R2 ;
"""


def test_machine_code_is_counted_by_meaning() -> None:
    """A constant, a sum that is written as x * 1 + y, two fused, a sum, a conversion; the rest by name."""
    found = {opcode: times for opcode, times in count(LISTING).items() if times}
    assert found == {"HFMA2": 2, "HADD2": 2, "FFMA2": 1, "FMUL": 1}


@pytest.mark.parametrize(
    ("kernel", "flow", "opcode", "count"),
    [
        # 64 heads, two an instruction; the others have a loop for each of two groups of warps, the builtin kernel one
        ("builtin", "fp32-fp32-fp32", "FFMA2", 32),
        ("sglang", "fp32-fp32-fp32", "FFMA2", 64),
        ("flashinfer", "fp32-fp16-fp16", "HFMA2", 64),
    ],
)
def test_the_kernels_pass(
    kernel: str, flow: str, opcode: str, count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "result.json"
    line = ["compile", "--kernel", kernel, "--flow", flow, "--out", str(tmp_path), "--check-sass"]
    assert run([*line, "--json", str(file)]) == 0
    told = json.loads(file.read_text())
    assert (told["status"], told["exit_code"], told["findings"]) == ("pass", 0, 0)
    assert {row["verdict"] for row in told["rows"]} == {"same"}
    assert any(row["opcode"] == opcode and row["sass"] >= count for row in told["rows"])
    assert "pass: every sum, product and fused multiply-add of the PTX" in capsys.readouterr().out


def test_an_object_without_the_check_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compile", "--out", str(tmp_path), "--json", str(tmp_path / "x")]) == 2
    assert "--check-sass beside it" in capsys.readouterr().err
