"""Files appear whole or not at all; a bar is for terminals."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqa_ref.cli.output import check_writable, progress_bar, write_whole
from mqa_ref.errors import InputError


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    target.write_text("old")
    write_whole(target, "new")
    write_whole(tmp_path / "raw", b"\x00\xff")
    assert target.read_text() == "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["raw", "report.json"]


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "report.json"
    target.write_text("old")

    def refuse(self: Path, other: Path) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        write_whole(target, "new")
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_a_file_is_readable_as_any_other(tmp_path: Path) -> None:
    ordinary = tmp_path / "ordinary"
    ordinary.write_text("x")
    write_whole(tmp_path / "ours", "x")
    assert (tmp_path / "ours").stat().st_mode == ordinary.stat().st_mode


def test_where_no_file_can_be_written(tmp_path: Path) -> None:
    for path, expected in ((tmp_path, "not a folder"), (tmp_path / "no" / "file", "does not")):
        with pytest.raises(InputError, match=expected) as caught:
            check_writable("--json", path)
        assert caught.value.faults[0].argument == "--json"


def test_no_file_and_a_possible_file_are_fine(tmp_path: Path) -> None:
    check_writable("--json", None)
    check_writable("--json", tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


def test_no_bar_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("work") as move:
        assert move is None
    assert capsys.readouterr().err == ""


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress_bar("work") as move:
        assert move is not None
        move(1, 2, "one-token")
    assert "work" in capsys.readouterr().err
