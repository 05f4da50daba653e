"""A few mutants of the real kernel, run; and the request of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqa_ref.cli.app import run
from mqa_ref.emulator import parse
from mqa_ref.errors import InputError
from mqa_ref.flow import Flow
from mqa_ref.fuzz.mutants import select
from mqa_ref.fuzz.mutants.ladder import CTAS, STATIC, ladder
from mqa_ref.fuzz.mutants.ledger import own_file, read_reasons
from mqa_ref.fuzz.mutants.mutant import Mutant
from mqa_ref.fuzz.mutants.statements import replaced
from mqa_ref.fuzz.mutants.study import BUILTIN, ask, ptx_of, study
from mqa_ref.kernel.targets import resolve

FLOW = "fp32-fp32-fp32"


def named(pool: tuple[Mutant, ...], kind: str, operator: str, opcode: str) -> str:
    """The id of the first such mutant of a statement with this opcode."""
    found = (one for one in pool if (one.kind, one.operator) == (kind, operator) and opcode in one.before)
    return next(found).id


def test_every_class_has_mutants_that_the_emulator_can_read() -> None:
    ptx = ptx_of(resolve(BUILTIN), Flow.parse(FLOW))
    pool = select.pool(ptx)
    assert {one.kind for one in pool} == set(select.OPERATORS)
    for mutant in select.choose(pool, 40, 7):
        parse(replaced(ptx, mutant.edits))


def test_mutants_of_the_kernel_are_caught_each_in_its_way() -> None:
    pool = ask(count=1).pool
    names = [
        named(pool, "relu", "abs", "abs.f32"),
        named(pool, "fence", "bar", "bar.sync"),
        named(pool, "wait", "wait", "mbarrier.try_wait"),
        named(pool, "relation", "relation", "setp.ne.b32 %p4"),
    ]
    asked = ask(only=names)
    assert sorted(one.id for one in asked.chosen) == sorted(names)
    report = study(asked, rungs=list(ladder(asked.flow, drawn=0))[:2])
    told = {one.id: one.outcome for one in report.verdicts}
    assert (report.baseline.outcome, report.baseline.message) == ("survived", "")
    assert told[names[0]] == "value"
    assert told[names[1]] == "finding"
    assert told[names[2]] in ("value", "finding", "time-out")
    assert told[names[3]] == "survived"
    assert report.equivalent(next(one for one in report.verdicts if one.id == names[3]))
    assert (report.status, report.total.missed, report.wrong) == ("pass", 0, ())


def test_no_entry_of_the_ledger_is_idle() -> None:
    path = own_file()
    assert path is not None
    assert read_reasons(path).idle(ask(count=1).pool) == ()


def test_all_launches_of_the_ladder_have_its_shape() -> None:
    for rung in ladder(Flow.parse(FLOW), drawn=3):
        problem = rung.subject.problem
        assert {name: getattr(problem, name) for name in STATIC if name != "num_sms"} == {
            name: value for name, value in STATIC.items() if name != "num_sms"
        }
        assert problem.num_sms in CTAS


def test_the_ptx_does_not_depend_on_the_number_of_ctas() -> None:
    texts = set()
    for rung in ladder(Flow.parse(FLOW), drawn=0):
        problem = rung.subject.problem
        texts.add(resolve(BUILTIN).compile(problem, Flow.parse(FLOW)).ptx)
    assert len(texts) == 1


def test_a_bad_request_is_refused_with_every_fault(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        ask(kernel="none", flow="x", ledger=tmp_path / "absent.toml")
    assert {one.argument for one in caught.value.faults} >= {"kernel", "flow", "ledger"}
    with pytest.raises(InputError, match="the id of a mutant"):
        ask(only=["fence:0:nothing"])


def test_the_command_lists_without_running(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["mutate", "--list", "--count", "3", "--seed", "5"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert len(listed) == len(ask(count=3, seed=5).chosen)
    assert any(one.startswith("source:") for one in listed)
    assert any(one.startswith("schedule:") for one in listed)
