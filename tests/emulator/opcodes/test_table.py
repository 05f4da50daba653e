"""The opcode table: complete, documented, honest about what was recorded, and strict about types and modifiers."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqa_ref.emulator import decode, opcodes, parse
from mqa_ref.emulator.decode import OPCODES, agrees
from mqa_ref.emulator.opcodes.document import document
from mqa_ref.emulator.opcodes.recorded import RECORDED
from mqa_ref.emulator.opcodes.table import TABLE, explain_unknown
from mqa_ref.errors import EmulatorError
from mqa_ref.golden.silicon import OPERATIONS, PROGRAMS, load
from mqa_ref.golden.silicon.values import words_of

ROOT = Path(__file__).parents[3]
opcodes.load()


def test_every_opcode_is_a_row_and_every_row_an_opcode() -> None:
    assert set(TABLE) == set(OPCODES)
    assert len(TABLE) > 2000
    for name, row in TABLE.items():
        assert row.name == name
        assert row.base in {word.split(".")[0].split("[")[0] for word in row.family.split(", ")}
        assert row.section
        assert row.standing in ("doc", "hw", "published")
        assert callable(row.function)


def test_the_page_is_current() -> None:
    assert (ROOT / "docs" / "opcodes.md").read_text() == document()


def test_what_counts_as_recorded_is_what_recordings_use() -> None:
    tensors = load("programs").tensors
    used = {operation.ptx for operation in OPERATIONS.values()}
    for program in PROGRAMS:
        if f"{program.name}.out" in tensors:
            used |= {instruction.opcode for instruction in parse(program.ptx).instructions}
    used |= {key.split()[0] for key in words_of(load("values").tensors)}
    assert used > RECORDED
    assert {name for name, row in TABLE.items() if row.standing == "hw"} == used


def test_an_unknown_opcode_is_explained() -> None:
    assert explain_unknown("add.ftz.f32") == "opcode 'add.ftz.f32' is not modelled: add has no row with .ftz"
    assert explain_unknown("frobnicate.b32") == "opcode 'frobnicate.b32' is not modelled"
    assert "together" in explain_unknown("add.wide.s32") or ".wide" in explain_unknown("add.wide.s32")
    assert explain_unknown("mul.wide.s64").endswith("mul has no row with these modifiers together")


@pytest.mark.parametrize(
    ("register", "kind", "fits"),
    [
        ("b32", "f32", True),
        ("f32", "b32", True),
        ("s32", "u32", True),
        ("f32", "s32", False),
        ("u32", "f32", False),
        ("b64", "f32x2", True),
        ("b32", "f16x2", True),
        ("f32", "f16x2", False),
        ("b16", "bf16", True),
        ("b32", "u64", False),
        ("pred", "pred", True),
        ("b16", "pred", False),
    ],
)
def test_which_registers_an_operand_may_be(register: str, kind: str, fits: bool) -> None:
    """PTX ISA, "Operand Type Checking": sizes must agree; a float is no integer; untyped bits are either."""
    assert agrees(register, kind) is fits


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("add.f32 %i, %f, %f;", "%i is s32, no f32 register"),
        ("add.s32 %i, %i, %f;", "%f is f32, expected s32"),
        ("ld.param.f32 %i, [n];", "%i is s32, no f32 register"),
        ("mov.f32 %f, %i;", "%i is s32, expected f32"),
        ("wgmma.fence.sync.aligned;", "wgmma exists on sm_90a only"),
    ],
)
def test_types_and_generations_are_checked(statement: str, what: str) -> None:
    text = (
        f".version 8.8\n.target sm_100a\n.address_size 64\n.entry k(.param .u32 n)\n"
        f"{{ .reg .f32 %f; .reg .s32 %i;\n{statement} ret; }}"
    )
    with pytest.raises(EmulatorError, match=what) as caught:
        decode(parse(text))
    assert "PTX line 6" in str(caught.value)
