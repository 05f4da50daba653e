"""The faults in the source are where the table says; wrong builders are noticed, and the right one is not."""

from __future__ import annotations

import pytest

from mqa_ref.fuzz import edits
from mqa_ref.fuzz.always import schedules_partition
from mqa_ref.fuzz.bugs import SOURCE_FAULTS
from mqa_ref.fuzz.edits import edited
from mqa_ref.fuzz.mutants import schedules, sources
from mqa_ref.fuzz.mutants.mutant import Mutant
from mqa_ref.kernel.own_copy import PREFIX, own_copy


@pytest.mark.parametrize("name", list(sources.FAULTS))
def test_a_fault_changes_its_module_alone(name: str) -> None:
    before, after = own_copy(), edited([sources.FAULTS[name]])
    changed = {file for file in before if before[file] != after[file]}
    assert changed == {f"{PREFIX}{sources.FAULTS[name].module}.py"}
    for file in changed:
        compile(after[file], file, "exec")


@pytest.mark.parametrize("number", list(SOURCE_FAULTS))
def test_a_bug_of_the_field_has_its_place(number: int) -> None:
    for file, text in edited(SOURCE_FAULTS[number]).items():
        compile(text, file, "exec")
    assert edited(SOURCE_FAULTS[number]) != own_copy()


def test_a_place_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    name = next(iter(sources.FAULTS))
    gone = {file: text.replace(sources.FAULTS[name].old, "") for file, text in own_copy().items()}
    monkeypatch.setattr(edits, "own_copy", lambda: gone)
    with pytest.raises(ValueError, match="0 times"):
        edited([sources.FAULTS[name]])


@pytest.mark.parametrize("mutant", schedules.mutants(), ids=lambda one: one.operator)
def test_a_wrong_builder_is_noticed(mutant: Mutant) -> None:
    assert schedules.judge(mutant).outcome == "value"


def test_the_right_builder_is_not() -> None:
    assert all(schedules_partition(f"mutants/{turn}") == [] for turn in range(12))
