"""Whoever listens is told of every scalar operation and may put another int in its place; nobody listens after."""

from __future__ import annotations

from typing import Any

import pytest

from mqa_ref.numerics import scalar
from mqa_ref.numerics.listening import listening

ONE, TWO, THREE = 0x3F800000, 0x40000000, 0x40400000


class Noted(int):
    """An int that is somebody's."""


def test_operations_are_heard() -> None:
    told: list[Any] = []

    def listener(name: str, arguments: tuple[Any, ...], named: dict[str, Any], result: int) -> int:
        told.append((name, arguments, named, result))
        return Noted(result)

    assert type(scalar.add_f32(ONE, TWO)) is int
    with listening(listener):
        found = scalar.add_f32(ONE, b=TWO)
        scalar.abs_f32(ONE)
    assert type(found) is Noted
    assert found == THREE
    assert told == [("add_f32", (ONE,), {"b": TWO}, THREE), ("abs_f32", (ONE,), {}, ONE)]
    assert type(scalar.add_f32(ONE, TWO)) is int
    assert len(told) == 2


def test_nobody_listens_after_an_error_and_the_outer_one_listens_again() -> None:
    told: list[str] = []

    def noting(who: str) -> Any:
        def note(name: str, arguments: Any, named: Any, result: Any) -> Any:
            told.append(who)
            return result

        return note

    def fail() -> None:
        scalar.abs_f32(ONE)
        raise ZeroDivisionError

    with listening(noting("outer")):
        with pytest.raises(ZeroDivisionError), listening(noting("inner")):
            fail()
        scalar.abs_f32(ONE)
    scalar.abs_f32(ONE)
    assert told == ["inner", "outer"]


def test_the_operation_keeps_its_name() -> None:
    assert scalar.fma_f32.__name__ == "fma_f32"
    assert (scalar.fma_f32.__doc__ or "").startswith("fma.rn.f32")
