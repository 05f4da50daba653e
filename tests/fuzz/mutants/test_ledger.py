"""What an entry matches, and what is said of entries that are wrong or idle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqa_ref.errors import InputError
from mqa_ref.fuzz.mutants.judge import Verdict
from mqa_ref.fuzz.mutants.ledger import Reasons, contradicted, read_reasons
from mqa_ref.fuzz.mutants.mutant import Mutant
from mqa_ref.fuzz.mutants.report import MutationReport, lines

ADD = Mutant(
    "operation",
    "swap",
    "sub.s32",
    7,
    "add.s32 %r1, %r2, 4;",
    "sub.s32 %r1, %r2, 4;",
    "a.py:3",
    "x\n> add.s32",
)
OTHER = Mutant("fence", "bar", "left-out", 9, "bar.sync 0;", "", "a.py:9")


def reasons(**entry: Any) -> Reasons:
    return Reasons.model_validate({"entry": [{"id": "one", "class": "operation", "reason": "none", **entry}]})


@pytest.mark.parametrize(
    ("entry", "matches"),
    [
        ({}, True),
        ({"class": "fence"}, False),
        ({"operator": "swap:.*"}, True),
        ({"operator": "swap"}, False),
        ({"before": r"add\.s32 %r\d+, %r\d+, 4;"}, True),
        ({"before": r"add\.s32"}, False),
        ({"after": "sub.*"}, True),
        ({"near": "^> add"}, False),
        ({"near": "\n> add"}, True),
        ({"source": "a.py"}, True),
        ({"source": "b.py"}, False),
    ],
)
def test_matching(entry: dict[str, str], matches: bool) -> None:
    assert reasons(**entry).entry[0].matches(ADD) is matches


def test_idle_and_contradicted_entries() -> None:
    found = reasons()
    assert found.idle([OTHER]) == ("one",)
    assert found.idle([OTHER, ADD]) == ()
    assert contradicted(found, [ADD, OTHER], {ADD.id: False, OTHER.id: True}) == ()
    (wrong,) = contradicted(found, [ADD, OTHER], {ADD.id: True})
    assert (wrong.entry, wrong.mutant) == ("one", ADD.id)


@pytest.mark.parametrize(
    ("text", "argument"),
    [
        ("entry = [", "ledger"),
        ('[[entry]]\nid = "a"\nclass = "fence"\n', "x.toml: entry.0.reason"),
        ('[[entry]]\nid = "a"\nclass = "fence"\nreason = "r"\nbefore = "("\n', "x.toml: entry.0.before"),
        ('[[entry]]\nid = "a"\nclass = "fence"\nreason = "r"\nverdict = "fine"\n', "x.toml: entry.0.verdict"),
        (
            '[[entry]]\nid = "a"\nclass = "f"\nreason = "r"\n[[entry]]\nid = "a"\nclass = "g"\nreason = "r"\n',
            "id",
        ),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, text: str, argument: str) -> None:
    path = tmp_path / "x.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_reasons(path)
    assert caught.value.faults[0].argument == argument


def report(found: Reasons, *outcomes: tuple[Mutant, Any]) -> MutationReport:
    mutants = tuple(one for one, _ in outcomes)
    verdicts = tuple(Verdict(one.id, outcome) for one, outcome in outcomes)
    entries = {one.id: entry for one in mutants if (entry := found.of(one)) is not None}
    caught = {one.id: one.caught for one in verdicts}
    wrong = contradicted(found, mutants, caught)
    alone = Verdict("none", "survived")
    return MutationReport("k", "f", 1, 1, 2, 3, 4.0, alone, mutants, verdicts, entries, (), wrong)


def test_an_equivalent_survivor_counts_for_nothing_and_an_unseen_one_as_missed() -> None:
    made = report(reasons(), (ADD, "survived"), (OTHER, "value"))
    assert (made.total.caught, made.total.missed, made.total.equivalent, made.status) == (1, 0, 1, "pass")
    made = report(reasons(verdict="unseen"), (ADD, "survived"), (OTHER, "value"))
    assert (made.total.caught, made.total.missed, made.status, made.unexplained) == (1, 1, "pass", ())
    assert made.total.score == 0.5


def test_what_fails_a_run() -> None:
    unexplained = report(Reasons(), (ADD, "survived"), (OTHER, "finding"))
    assert (unexplained.status, unexplained.exit_code) == ("fail", 1)
    assert any(line.startswith(f"SURVIVED {ADD.id}") for line in lines(unexplained))
    assert report(reasons(), (ADD, "value")).status == "fail"
    assert report(Reasons(), (ADD, "fault")).status == "fail"
    assert report(Reasons(), (ADD, "refused")).exit_code == 5
    assert report(Reasons(), (ADD, "time-out"), (OTHER, "refused")).exit_code == 0


def test_the_object_tells_every_mutant() -> None:
    plain = report(reasons(), (ADD, "survived"), (OTHER, "value")).as_dict()
    assert [(one["id"], one["outcome"], one["entry"]) for one in plain["mutants"]] == [
        (ADD.id, "survived", "one"),
        (OTHER.id, "value", None),
    ]
    assert (plain["command"], plain["status"], plain["score"], plain["cases"]) == ("mutate", "pass", 1.0, 2)
