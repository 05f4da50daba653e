"""The evidence for each opcode that one of the six programs spells, by its full name: a row of the table, a scalar twin
that it was executed against, and, where sm_90 has it, a recording.

``spelled.json`` has the names, as ``compiled_programs`` found them with the versions of constraints.txt.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mqa_ref.emulator import opcodes
from mqa_ref.emulator.opcodes.recorded import takes_numbers
from mqa_ref.emulator.opcodes.table import TABLE
from mqa_ref.errors import NotAvailable
from mqa_ref.flow import Flow
from mqa_ref.kernel import resolve
from mqa_ref.verification.given import given
from tests.emulator.opcodes import test_witness_accesses as accesses
from tests.emulator.opcodes import test_witness_control as control
from tests.emulator.opcodes import test_witness_tensor as tensor
from tests.emulator.opcodes import test_witness_tiles as tiles
from tests.emulator.opcodes.compiled_programs import CONTRACT, DEEPGEMM, METADATA, opcodes_of, spelled
from tests.emulator.opcodes.test_twins import PACKED
from tests.emulator.opcodes.twins import twin

opcodes.load()
SPELLED: dict[str, list[str]] = json.loads(Path(__file__).with_name("spelled.json").read_text())
EVERY = sorted(set().union(*SPELLED.values()))
WITNESSED = accesses.NAMES | tiles.NAMES | control.NAMES | tensor.NAMES
WITHOUT_RECORDING = {
    "trap": "a GPU ends the whole grid and gives no result",
}


def has_twin(name: str) -> bool:
    if name in WITNESSED or name in PACKED:
        return True
    try:
        return takes_numbers(TABLE[name]) and callable(twin(name))
    except KeyError:
        return False


def exists_on_sm_90(name: str) -> bool:
    return not name.startswith("tcgen05.") and not name.endswith(".f32x2")


def test_the_six_programs_are_here() -> None:
    assert set(SPELLED) == {*CONTRACT, *DEEPGEMM, *METADATA}
    assert all(len(names) > 35 for names in SPELLED.values())
    assert len(EVERY) >= 160


def test_each_has_a_row() -> None:
    assert [name for name in EVERY if name not in TABLE] == []


def test_each_was_executed_against_a_scalar_twin() -> None:
    assert [name for name in EVERY if not has_twin(name)] == []
    assert not has_twin("add.nothing.s32")
    assert not has_twin("tcgen05.ld.sync.aligned.32x32b.x128.b32")


def test_each_was_recorded_where_sm_90_has_it() -> None:
    without = [name for name in EVERY if exists_on_sm_90(name) and TABLE[name].standing != "hw"]
    assert without == sorted(WITHOUT_RECORDING)
    others = [name for name in EVERY if not exists_on_sm_90(name)]
    assert {TABLE[name].standing for name in others} == {"doc", "published"}


def test_the_kernel_of_this_project_spells_nothing_else() -> None:
    problem = given((300,), num_sms=2, page=64, heads=64).problem
    kernel = resolve("builtin").compile(problem, Flow.parse("fp32-fp32-fp32"))
    assert opcodes_of(kernel.ptx) <= set(SPELLED["builtin"])


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("program", sorted(SPELLED))
def test_the_list_is_what_the_compilers_give(program: str) -> None:
    try:
        found = spelled(program)
    except NotAvailable as error:
        pytest.skip(str(error))
    assert sorted(found) == SPELLED[program]
