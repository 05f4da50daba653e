"""tolerances.toml: what the file may hold, what it does hold, and that the check notices every way of being wrong."""

from __future__ import annotations

import datetime as dt
import json
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqa_ref.compare.tolerances import KINDS, Tolerances, check, derive, factor, read, source, to_toml
from mqa_ref.compare.tolerances.check import judge
from mqa_ref.compare.tolerances.derive import measure
from mqa_ref.errors import InputError
from mqa_ref.flow import FLOWS, Flow
from mqa_ref.reference import scalar_logit

ROOT = Path(__file__).parents[3]
DAY = dt.date(2026, 1, 2)
FLOW = Flow.parse("fp32-fp32-fp16")  # rounding the output decides, so few logits reach the bound
Plain = dict[str, Any]


@pytest.fixture(scope="module")
def plain() -> Plain:
    """A right file with the rows of one flow, as plain values."""
    made = derive(elements=4_000, seed=3, date=DAY, flows=[FLOW], machines=["sm100", "sm90"])
    return made.model_dump()


def changed(file: Plain, kind: str, **values: Any) -> Tolerances:
    """The file with other values in one row, the margin following."""
    flows = {name: {kind: dict(row) for kind, row in rows.items()} for name, rows in file["flows"].items()}
    row = flows["fp32-fp32-fp16"][kind]
    row.update(values)
    row["margin"] = row["bits"] - row["observed"] if kind == "same_model" else row["factor"] / row["plain"]
    return Tolerances.model_validate({**file, "flows": flows})


# The package exports a function of the same name.
deriving = sys.modules["mqa_ref.compare.tolerances.derive"]

Told = Callable[[Tolerances], list[tuple[str, str]]]


@pytest.fixture(scope="module")
def told() -> Told:
    """The faults of a file, held against one small measurement with another seed than the file's."""
    found = measure(elements=1_000, seed=8, flows=[FLOW], machines=["sm100"])
    return lambda file: [(fault.kind, fault.fault) for fault in judge(file, found)]


def test_a_file_that_was_just_measured_passes(plain: Plain) -> None:
    tolerances = Tolerances.model_validate(plain)
    report = check(tolerances, elements=2_000, flows=[FLOW], machines=["sm100"])
    assert (report.status, report.exit_code, report.faults) == ("pass", 0, ())
    assert (report.rows, report.seed) == (3, 4)
    assert report.logits > 2 * 2 * 2_000


def test_what_is_measured(plain: Plain) -> None:
    rows = plain["flows"]["fp32-fp32-fp16"]
    assert set(rows) == set(KINDS)
    for row in rows.values():
        assert row["standing"] == {"sm100": "published", "sm90": "hw"}
        assert row["date"] == DAY
    assert (rows["same_model"]["bits"], rows["same_model"]["observed"]) == (0, 0)
    for kind in ("exact", "foreign_order"):
        assert rows[kind]["factor"] == 1.0
        assert 0.2 < rows[kind]["plain"] <= rows[kind]["observed"] <= 1
        assert rows[kind]["samples"] >= 2 * 2 * 4_000


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_row(plain: Plain, told: Told, kind: str) -> None:
    rows = {name: row for name, row in plain["flows"]["fp32-fp32-fp16"].items() if name != kind}
    assert told(Tolerances.model_validate({**plain, "flows": {"fp32-fp32-fp16": rows}})) == [
        (kind, "missing")
    ]


def test_a_missing_flow(plain: Plain, told: Told) -> None:
    assert told(Tolerances.model_validate({**plain, "flows": {}})) == [(kind, "missing") for kind in KINDS]


@pytest.mark.parametrize("kind", ["exact", "foreign_order"])
def test_a_factor_that_is_exceeded(plain: Plain, told: Told, kind: str) -> None:
    """In the file itself, and by what is measured anew although the file claims to have seen nothing."""
    small = changed(plain, kind, factor=0.1, observed=0.05, plain=0.05)
    assert told(small) == [(kind, "exceeded")]
    assert (kind, "exceeded") in told(changed(plain, kind, factor=1.0, observed=1.001))


@pytest.mark.parametrize("kind", ["exact", "foreign_order"])
def test_a_factor_that_is_too_loose(plain: Plain, told: Told, kind: str) -> None:
    assert told(changed(plain, kind, factor=4.2)) == [(kind, "loose")]
    invented = changed(plain, kind, factor=4.2, observed=4.0, plain=4.0)
    assert told(invented) == [(kind, "loose")]
    assert told(changed(plain, kind, plain=0.2)) == [(kind, "loose")]


def test_bits_that_are_allowed_without_need(plain: Plain, told: Told) -> None:
    assert told(changed(plain, "same_model", bits=1)) == [("same_model", "loose")]
    assert told(changed(plain, "same_model", bits=0, observed=1)) == [("same_model", "exceeded")]


def test_twins_that_differ_are_seen(plain: Plain, monkeypatch: pytest.MonkeyPatch) -> None:
    right = scalar_logit
    monkeypatch.setattr(deriving, "scalar_logit", lambda *given: right(*given) ^ 0b101)
    found = measure(elements=1, seed=8, flows=[FLOW], machines=["exact"])
    assert "exceeded" in {fault.fault for fault in judge(Tolerances.model_validate(plain), found)}
    assert found[str(FLOW)].bits == 2


Spoil = Callable[[Plain], object]
ROW = "fp32-fp32-fp16"
BAD: dict[str, tuple[Spoil, str]] = {
    "unknown key": (lambda file: file.update(more=1), "more"),
    "unknown key of a row": (lambda file: file["flows"][ROW]["exact"].update(more=1), "more"),
    "unknown flow": (lambda file: file["flows"].update({"fp8-fp8-fp8": {}}), "fp8-fp8-fp8"),
    "unknown machine": (lambda file: file["flows"][ROW]["exact"]["standing"].update(sm80="hw"), "sm80"),
    "unknown standing": (lambda file: file["flows"][ROW]["exact"]["standing"].update(sm90="sure"), "sm90"),
    "a number as text": (lambda file: file["flows"][ROW]["exact"].update(factor="1.0"), "factor"),
    "an infinite factor": (lambda file: file["flows"][ROW]["exact"].update(factor=float("inf")), "factor"),
    "a date as text": (lambda file: file["flows"][ROW]["exact"].update(date="2026-01-02"), "date"),
    "no samples": (lambda file: file["flows"][ROW]["exact"].update(samples=0), "samples"),
    "a key missing": (lambda file: file["flows"][ROW]["exact"].pop("observed"), "observed"),
    "another version": (lambda file: file.update(version=2), "version"),
    "a margin that does not follow": (lambda file: file["flows"][ROW]["exact"].update(margin=9.0), "margin"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_the_file_may_not_hold(plain: Plain, name: str, tmp_path: Path) -> None:
    file = tomllib.loads(to_toml(Tolerances.model_validate(plain)))
    spoil, named = BAD[name]
    spoil(file)
    path = tmp_path / "tolerances.toml"
    path.write_text(as_toml(file))
    with pytest.raises(InputError, match=named):
        read(path)


def as_toml(file: Plain) -> str:
    """Nested tables inline: another writer than the project's."""

    def value(given: Any) -> str:
        if isinstance(given, dict):
            return "{" + ", ".join(f"{json.dumps(key)} = {value(one)}" for key, one in given.items()) + "}"
        return json.dumps(given) if isinstance(given, str) else str(given)

    return "".join(f"{key} = {value(one)}\n" for key, one in file.items())


def test_every_fault_of_a_file_is_told(plain: Plain, tmp_path: Path) -> None:
    path = tmp_path / "tolerances.toml"
    path.write_text('version = 3\nseed = -1\nelements = 5\nflows = {}\nmore = "x"\n')
    with pytest.raises(InputError) as caught:
        read(path)
    named = {fault.argument for fault in caught.value.faults}
    assert named == {"tolerances.toml.version", "tolerances.toml.seed", "tolerances.toml.more"}


@pytest.mark.parametrize("content", [b"version = ", b"\xff\xfe"])
def test_what_is_no_toml(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "tolerances.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match="TOML in UTF-8"):
        read(path)
    with pytest.raises(InputError, match="can be read"):
        read(tmp_path / "nowhere.toml")


def test_the_text_says_the_same(plain: Plain, tmp_path: Path) -> None:
    tolerances = Tolerances.model_validate(plain)
    path = tmp_path / "tolerances.toml"
    path.write_text(to_toml(tolerances))
    assert read(path) == tolerances


def test_the_projects_own_file_is_complete() -> None:
    own = read()
    assert list(own.flows) == list(FLOWS)
    for name in FLOWS:
        assert all(row is not None for row in own.rows(name).values())
        same, exact, foreign = (getattr(own.flows[name], kind) for kind in KINDS)
        assert (same.bits, same.observed) == (0, 0)
        assert exact.samples > 1_000_000
        for row in (exact, foreign):
            assert 0 < row.plain <= row.observed <= row.factor == 1.0
            assert row.factor <= 4 * row.plain
            assert set(row.standing) == {"sm90", "sm100", "exact"}
    assert factor(FLOW, "exact") == factor(FLOW, "foreign_order") == 1.0
    with pytest.raises(InputError):
        factor(FLOW, "same_model")


def test_the_file_lies_at_the_top_level_and_goes_into_the_wheel() -> None:
    assert Path(str(source())).read_bytes() == (ROOT / "tolerances.toml").read_bytes()
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    assert build["targets"]["wheel"]["force-include"]["tolerances.toml"] == "mqa_ref/tolerances.toml"
    assert "/tolerances.toml" in build["targets"]["sdist"]["include"]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"machines": []}, "machines"),
        ({"machines": ["sm80"]}, "machines"),
        ({"seed": -1}, "seed"),
        ({"elements": 0}, "elements"),
    ],
)
def test_bad_arguments_of_derive(given: Plain, named: str) -> None:
    arguments = {"elements": 1, "seed": 0, "date": DAY, "flows": [FLOW], **given}
    with pytest.raises(InputError) as caught:
        derive(**arguments)
    assert [fault.argument for fault in caught.value.faults] == [named]
