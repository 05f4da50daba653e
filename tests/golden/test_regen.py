"""Regeneration: the same bytes when nothing changed, a bit diff when something did, and its refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mqa_ref.errors import InputError, OracleError
from mqa_ref.golden import Case, Claim, LogitsCase, by_name, container, load, regen
from mqa_ref.golden.store import HISTORY, path_of

Git = Callable[..., str]
NO_CI: dict[str, str] = {}


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".git"}


def test_nothing_changed_nothing_written(few: tuple[Case, ...], checkout: Path, git: Git) -> None:
    before = content(checkout)
    times = {name: (checkout / name).stat().st_mtime_ns for name in before}
    done = regen("just so", folder=checkout, cases=few, environment=NO_CI)
    assert (done.changes, done.cases) == ((), 4)
    assert content(checkout) == before
    assert {name: (checkout / name).stat().st_mtime_ns for name in before} == times
    assert git(checkout, "status", "--porcelain") == ""


def test_what_is_missing_comes_back_with_the_same_bytes(
    few: tuple[Case, ...], checkout: Path, git: Git
) -> None:
    before = content(checkout)
    git(checkout, "rm", "--quiet", *(name for name in before if name.startswith("peer")))
    git(checkout, "commit", "--quiet", "--message", "fewer")
    done = regen("bring them back", folder=checkout, cases=few, environment=NO_CI)
    assert {one.messages for one in done.changes} == {("new",)}
    after = content(checkout)
    line = json.loads(after.pop(HISTORY))
    assert after == before
    assert (line["reason"], line["files"]) == ("bring them back", 3)


def test_a_bit_diff_and_one_line_of_history(few: tuple[Case, ...], checkout: Path, git: Git) -> None:
    before = content(checkout)
    name = "peer-10-relu-before-sum"
    entry = load(name, checkout)
    tensor = entry.views["fp32-fp32-fp32.sm100.folded"]
    bits = entry.tensors[tensor].copy()
    bits[[0, 2]] = 0xDEADBEEF
    path_of(name, checkout).write_bytes(
        container.encode(replace(entry, tensors={**entry.tensors, tensor: bits}))
    )
    (checkout / "left-over.safetensors").write_bytes(b"x")
    (checkout / HISTORY).write_text('{"reason":"first"}\n')
    git(checkout, "add", "--all")
    git(checkout, "commit", "--quiet", "--message", "wrong bits")
    done = regen("right bits", folder=checkout, cases=few, environment=NO_CI)
    told = {one.file: one for one in done.changes}
    assert set(told) == {f"{name}.safetensors", "left-over.safetensors"}
    assert told[f"{name}.safetensors"].changed == 2
    (message,) = told[f"{name}.safetensors"].messages
    assert "[0, 0] 0xdeadbeef -> 0x3f800000; [0, 2] 0xdeadbeef -> 0x3f800000" in message
    after = content(checkout)
    lines = after.pop(HISTORY).decode().splitlines()
    assert after == before
    assert [json.loads(line)["reason"] for line in lines] == ["first", "right bits"]
    assert {key: json.loads(lines[1])[key] for key in ("elements", "files")} == {"elements": 2, "files": 2}


def test_an_unreadable_file_is_replaced(few: tuple[Case, ...], checkout: Path, git: Git) -> None:
    before = content(checkout)
    path_of(few[0].name, checkout).write_bytes(b"no golden")
    git(checkout, "commit", "--quiet", "--all", "--message", "damaged")
    (change,) = regen("repair", folder=checkout, cases=few, environment=NO_CI).changes
    assert change.messages[0].startswith("unreadable before")
    assert content(checkout)[change.file] == before[change.file]


def refusals(folder: Path, reason: str = "why", environment: dict[str, str] = NO_CI) -> list[str]:
    def never(done: int, total: int, name: str) -> None:
        raise AssertionError("work began")

    before = content(folder)
    with pytest.raises(InputError) as caught:
        regen(reason, folder=folder, environment=environment, progress=never)
    assert content(folder) == before
    return [fault.argument for fault in caught.value.faults]


def test_refused_under_ci(checkout: Path) -> None:
    assert refusals(checkout, environment={"CI": "true"}) == ["CI"]


@pytest.mark.parametrize("reason", ["", "  ", "two\nlines", "x" * 201])
def test_refused_without_a_reason(checkout: Path, reason: str) -> None:
    assert refusals(checkout, reason) == ["--reason"]


def test_refused_with_uncommitted_changes(checkout: Path, git: Git) -> None:
    (checkout / "new").write_text("")
    assert refusals(checkout) == ["checkout"]
    (checkout / "new").unlink()
    path = next(checkout.glob("*.safetensors"))
    path.write_bytes(path.read_bytes() + b"x")
    assert refusals(checkout) == ["checkout"]
    git(checkout, "add", "--all")
    assert refusals(checkout) == ["checkout"]
    assert refusals(checkout, "", {"CI": "1"}) == ["--reason", "CI", "checkout"]


def test_refused_outside_a_checkout(folder: Path) -> None:
    assert refusals(folder) == ["folder"]


def test_refused_where_git_ignores(checkout: Path, git: Git) -> None:
    installed = checkout / "site-packages"
    installed.mkdir()
    (checkout / ".gitignore").write_text("site-packages/\n")
    git(checkout, "add", "--all")
    git(checkout, "commit", "--quiet", "--message", "ignored")
    assert refusals(installed) == ["folder"]


def test_what_a_hook_sets_does_not_lead_elsewhere(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout / "new").write_text("")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    assert refusals(checkout) == ["checkout"]


def test_no_file_against_a_claim(checkout: Path) -> None:
    before = content(checkout)
    (case,) = by_name(["peer-10-relu-before-sum"])
    assert isinstance(case, LogitsCase)
    wrong = replace(case, claims=(Claim(0, 0, 3.0, "fp32-fp32-fp32.exact.max"),))
    with pytest.raises(OracleError, match=r"0x3f800000, claimed 3.0 = 0x40400000"):
        regen("why", folder=checkout, cases=[wrong], environment=NO_CI)
    assert content(checkout) == before
