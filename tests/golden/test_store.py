"""The folder of files: names, renamed files, and replacing them as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqa_ref.errors import InputError
from mqa_ref.golden import container, load
from mqa_ref.golden.entry import Entry
from mqa_ref.golden.store import path_of, replace, unused


def test_load(entry: Entry, tmp_path: Path) -> None:
    path_of(entry.name, tmp_path).write_bytes(container.encode(entry))
    assert load(entry.name, tmp_path).case_id == entry.case_id


def test_a_renamed_file(entry: Entry, tmp_path: Path) -> None:
    path = tmp_path / "other-case.safetensors"
    path.write_bytes(container.encode(entry))
    with pytest.raises(InputError) as caught:
        load("other-case", tmp_path)
    (fault,) = caught.value.faults
    assert fault.argument == str(path)
    assert "the case small-case" in str(fault)
    assert "renamed" in str(fault)


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a/b", "..", ""])
def test_names_that_lead_elsewhere(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="case: got"):
        load(name, tmp_path)


def test_unused(tmp_path: Path) -> None:
    for name in ("a.safetensors", "b.safetensors", "a.txt", "HISTORY.jsonl"):
        (tmp_path / name).write_text("")
    (tmp_path / "folder").mkdir()
    assert unused(["a", "c"], tmp_path) == ("a.txt", "b.safetensors", "folder")


def test_replace(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("1")
    (tmp_path / "gone").write_text("2")
    replace({"old": b"3", "new": b"4", "gone": None}, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"old": b"3", "new": b"4"}
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o644}


def test_replace_all_or_nothing(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("1")
    with pytest.raises(TypeError):
        replace({"old": b"3", "new": "text"}, tmp_path)  # type: ignore[dict-item]
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"old": "1"}
