"""The machine models: their constants and standing, as the documents give them, and what is refused."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from fractions import Fraction
from typing import Any

import pytest

from mqa_ref.errors import InputError
from mqa_ref.numerics import MACHINES, MachineModel


def test_constants_and_standing() -> None:
    table = [
        (m.name, m.fraction_bits, m.final32, m.standing("fp32"), m.standing("fp16"))
        for m in MACHINES.values()
    ]
    assert table == [
        ("sm90", 13, "rz13", "hw", "hw"),
        ("sm100", 25, "rz", "published", "published"),
        ("exact", None, "rne", "proof", "proof"),
    ]
    assert all(model.source for model in MACHINES.values())
    assert list(MACHINES) == ["sm90", "sm100", "exact"]


@pytest.mark.parametrize(
    ("machine", "acc", "value", "expected"),
    [
        ("sm100", "fp32", 1 + Fraction(2, 2**23) - Fraction(1, 2**40), 0x3F800001),  # toward zero
        ("sm100", "fp32", -1 - Fraction(2, 2**23) + Fraction(1, 2**40), 0xBF800001),
        (
            "sm90",
            "fp32",
            1 + Fraction(2, 2**13) - Fraction(1, 2**20),
            0x3F800400,
        ),  # 13 bits: the last one is bit 10
        ("exact", "fp32", 1 + Fraction(3, 2**24), 0x3F800002),  # tie to even
        ("sm90", "fp16", 65519, 0x7BFF),
        ("sm100", "fp16", 65520, 0x7C00),
        ("sm100", "fp16", -65520, 0xFC00),
        ("sm100", "fp16", Fraction(3, 2**25), 2),  # a tie of subnormals, to even
        ("sm100", "fp32", 0, 0),
    ],
)
def test_final_rounding(machine: str, acc: str, value: Fraction, expected: int) -> None:
    assert MACHINES[machine].final(acc).encode(value) == expected


def test_variants_are_machines_and_originals_stay() -> None:
    variant = replace(MACHINES["sm100"], name="sm100-24", fraction_bits=24)
    assert isinstance(variant, MachineModel)
    assert variant.fraction_bits == 24
    assert MACHINES["sm100"].fraction_bits == 25
    with pytest.raises(FrozenInstanceError):
        variant.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize("bits", [0, -1, 41, 13.0, True, "25"])
def test_fraction_bits_out_of_range(bits: Any) -> None:
    with pytest.raises(InputError, match=r"fraction_bits: got .*, expected None or 1\.\.40"):
        replace(MACHINES["sm100"], fraction_bits=bits)


@pytest.mark.parametrize("bits", [None, 1, 2, 39, 40])
def test_fraction_bits_in_range(bits: int | None) -> None:
    assert replace(MACHINES["sm100"], fraction_bits=bits).fraction_bits == bits


def test_all_faults_are_listed() -> None:
    with pytest.raises(InputError) as caught:
        replace(MACHINES["sm100"], fraction_bits=99, final32="up")  # type: ignore[arg-type]
    assert [str(fault) for fault in caught.value.faults] == [
        "fraction_bits: got 99, expected None or 1..40",
        "final32: got 'up', expected 'rz', 'rz13' or 'rne'",
    ]


def test_standings_of_the_two_formats_are_two() -> None:
    model = replace(MACHINES["sm100"], standing32="doc", standing16="proof")
    assert (model.standing("fp32"), model.standing("fp16")) == ("doc", "proof")
