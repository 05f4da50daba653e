"""The folder of cached results: what is whole comes back, what is not is absent, and who may write there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mqa_ref import cachedir
from mqa_ref.cachedir import Entry
from mqa_ref.errors import InputError

ENTRY = Entry({"n": [1, 2.5, None], "s": "ä"}, {"code": b"\n\x00\xff", "empty": b"", "more": b"x" * 1000})
KEY = cachedir.key_of("a")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv(cachedir.VARIABLE, str(folder))
    return folder


def the_file(place: Path, kind: str = "things") -> Path:
    (found,) = (place / kind).glob("*.entry")
    return found


def test_an_entry_comes_back(place: Path) -> None:
    assert cachedir.load("things", KEY) is None
    cachedir.store("things", KEY, ENTRY)
    assert cachedir.load("things", KEY) == ENTRY
    assert cachedir.load("others", KEY) is None
    assert cachedir.load("things", cachedir.key_of("b")) is None
    assert cachedir.usage() == (1, the_file(place).stat().st_size)
    assert [path.stat().st_mode & 0o777 for path in (place, place / "things")] == [0o700, 0o700]
    assert the_file(place).stat().st_mode & 0o077 == 0


def test_keys_are_of_parts_not_of_their_sum() -> None:
    keys = {cachedir.key_of(*parts) for parts in (["ab"], ["a", "b"], ["", "ab"], ["ab", ""], ["b", "a"])}
    assert len(keys) == 5
    assert cachedir.key_of("ab") == cachedir.key_of(b"ab")


@pytest.mark.parametrize("where", ["digest", "head", "first", "last", "cut", "empty", "longer"])
def test_a_damaged_entry_is_absent_and_removed(where: str, place: Path) -> None:
    cachedir.store("things", KEY, ENTRY)
    path = the_file(place)
    data = bytearray(path.read_bytes())
    if where in ("cut", "empty"):
        data = data[: -1 if where == "cut" else 0]
    elif where == "longer":
        data += b"x"
    else:
        at = {"digest": 3, "head": 80, "first": data.index(b"\n\x00\xff"), "last": len(data) - 1}[where]
        data[at] ^= 1
    path.write_bytes(data)
    assert cachedir.load("things", KEY) is None
    assert not path.exists()
    cachedir.store("things", KEY, ENTRY)
    assert cachedir.load("things", KEY) == ENTRY


def test_an_entry_under_another_name_is_absent(place: Path) -> None:
    cachedir.store("things", KEY, ENTRY)
    other = cachedir.key_of("other")
    the_file(place).rename(place / "things" / f"{other}.entry")
    assert cachedir.load("things", other) is None


def test_a_link_is_not_followed(place: Path, tmp_path: Path) -> None:
    cachedir.store("things", KEY, ENTRY)
    path = the_file(place)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert cachedir.load("things", KEY) is None


def test_the_entry_used_longest_ago_goes_first(place: Path) -> None:
    keys = [cachedir.key_of(str(number)) for number in range(4)]
    for age, key in enumerate(keys[:3]):
        cachedir.store("things", key, ENTRY)
        os.utime(place / "things" / f"{key}.entry", (1000 + age, 1000 + age))
    assert cachedir.load("things", keys[0]) == ENTRY  # now it is the youngest
    size = (place / "things" / f"{keys[0]}.entry").stat().st_size
    cachedir.store("things", keys[3], ENTRY, limit_bytes=2 * size)
    assert [cachedir.load("things", key) is not None for key in keys] == [True, False, False, True]


def test_leftovers_go_after_an_hour(place: Path) -> None:
    cachedir.store("things", KEY, ENTRY)
    old, new = place / "things" / ".old.part", place / "things" / ".new.part"
    old.write_bytes(b"x")
    new.write_bytes(b"x")
    os.utime(old, (1000, 1000))
    cachedir.store("things", cachedir.key_of("b"), ENTRY)
    assert (old.exists(), new.exists()) == (False, True)


def test_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(cachedir.VARIABLE, "off")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cachedir.store("things", KEY, ENTRY)
    assert cachedir.load("things", KEY) is None
    assert cachedir.root() == (None, None)
    assert not list(tmp_path.iterdir())


def test_the_folder_without_the_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(cachedir.VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cachedir.folder("things") == tmp_path / "mqa-ref" / "things"
    (tmp_path / "mqa-ref").chmod(0o777)
    assert cachedir.folder("things") is None  # nobody chose it, so nobody is told
    assert cachedir.root() == (tmp_path / "mqa-ref", "others may write to it")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cachedir.folder("things") == tmp_path / ".cache" / "mqa-ref" / "things"


@pytest.mark.parametrize("fault", ["relative", "file", "link", "open", "open kind", "foreign"])
def test_a_folder_that_must_not_be_used(fault: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "relative":
        monkeypatch.setenv(cachedir.VARIABLE, "some/where")
    elif fault == "file":
        place.write_bytes(b"")
    elif fault == "link":
        place.symlink_to(place.parent)
    else:
        (place / "things").mkdir(parents=True, mode=0o700)
        if fault == "foreign":
            mine = os.geteuid()
            monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
        else:
            (place if fault == "open" else place / "things").chmod(0o770)
    with pytest.raises(InputError) as caught:
        cachedir.load("things", KEY)
    assert [fault.argument for fault in caught.value.faults] == ["MQA_REF_CACHE"]
    with pytest.raises(InputError):
        cachedir.store("things", KEY, ENTRY)


_WRITER = """
import sys
from mqa_ref import cachedir
key = cachedir.key_of("shared")
for turn in range(60):
    cachedir.store("things", key, cachedir.Entry(turn, {"a": bytes([turn]) * 5000}), limit_bytes=8000)
    entry = cachedir.load("things", key)
    assert entry is None or entry.blobs["a"] == bytes([entry.meta]) * 5000
    cachedir.store("things", cachedir.key_of(sys.argv[1], str(turn)), cachedir.Entry(0, {"b": b"x" * 4000}),
                   limit_bytes=8000)
"""


def test_several_processes(place: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", _WRITER, str(number)]) for number in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    assert not list((place / "things").glob("*.part"))
