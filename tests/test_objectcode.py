"""Machine code on disk: found again, made again when it is damaged or another text is asked for."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pytest

from mqa_ref import objectcode

WAY = objectcode.Way("plain", 1, lambda llvm, module, target: None)


def text(number: int) -> str:
    return f"define i64 @answer() {{\n  ret i64 {number}\n}}\n"


def answer(number: int) -> Any:
    engine = objectcode.link("things", text(number), WAY)
    return ctypes.CFUNCTYPE(ctypes.c_int64)(engine.get_function_address("answer"))()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MQA_REF_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "things"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were compiled."""
    seen: list[str] = []
    compile_it = objectcode._compile

    def watched(source: str, way: objectcode.Way, target: Any) -> bytes:
        seen.append(source)
        return compile_it(source, way, target)

    monkeypatch.setattr(objectcode, "_compile", watched)
    return seen


def test_a_text_is_compiled_once(place: Path, compiled: list[str]) -> None:
    assert [answer(41), answer(41), answer(42), answer(41)] == [41, 41, 42, 41]
    assert compiled == [text(41), text(42)]
    assert len(list(place.iterdir())) == 2


def test_the_way_is_part_of_the_key(place: Path, compiled: list[str]) -> None:
    answer(7)
    objectcode.link("things", text(7), WAY._replace(name="other"))
    objectcode.link("things", text(7), WAY._replace(level=2))
    assert len(compiled) == 3
    assert len(list(place.iterdir())) == 3


def test_a_damaged_object_is_made_again(place: Path, compiled: list[str]) -> None:
    answer(5)
    (path,) = place.iterdir()
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(bytes(data))
    assert answer(5) == 5
    assert len(compiled) == 2


def test_without_a_cache(monkeypatch: pytest.MonkeyPatch, compiled: list[str]) -> None:
    monkeypatch.setenv("MQA_REF_CACHE", "off")
    assert [answer(3), answer(3)] == [3, 3]
    assert len(compiled) == 2
