"""Accumulators at the ends of their formats, on paper: subnormal, largest, infinite, and zeros of either sign.

An accumulator is written with its format's own exponents, -126..127 for fp32 and -14..15 for fp16, and is cut with the
products, to F bits below the largest exponent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mqa_ref.calibrate import arithmetic
from mqa_ref.numerics import FP16, FP32, MACHINES, MachineModel, mma, scalar

Step = Callable[[MachineModel, str, int, int], int]
ONE_BIT = replace(MACHINES["sm100"], name="F = 1", fraction_bits=1)
WIDE13 = replace(MACHINES["sm90"], name="F = 13, rz", final32="rz")
CODES: dict[str, Any] = {"fp32": np.uint32, "fp16": np.uint16}


def by_vector(machine: MachineModel, acc: str, c: int, code: int) -> int:
    """32 times ``code`` with 1.0, onto ``c``."""
    a, b = np.full((1, 32), code, np.uint8), np.full((1, 32), 0x38, np.uint8)
    kind: Any = acc
    return int(mma(a, b, machine=machine, acc=kind, c=np.array([[c]], CODES[acc]))[0, 0])


def by_scalar(machine: MachineModel, acc: str, c: int, code: int) -> int:
    kind: Any = acc
    return scalar.mma([code] * 32, [0x38] * 32, c, machine=machine, acc=kind)


def by_rules(machine: MachineModel, acc: str, c: int, code: int) -> int:
    return arithmetic.step(arithmetic.of_model(machine, acc), [code] * 32, [0x38] * 32, c, acc)


each = pytest.mark.parametrize("step", [by_vector, by_scalar, by_rules])


@each
def test_a_subnormal_keeps_the_least_exponent(step: Step) -> None:
    """With F = 1 the unit is half of 2**-126 or 2**-14, however small the number is."""
    assert step(ONE_BIT, "fp32", 0x00200000, 0) == 0  # 2**-128
    assert step(ONE_BIT, "fp32", 0x00600000, 0) == 0x00400000  # 3 * 2**-128 to 2**-127
    assert step(ONE_BIT, "fp16", 0x0100, 0) == 0  # 2**-16
    assert step(ONE_BIT, "fp16", 0x0300, 0) == 0x0200  # 3 * 2**-16 to 2**-15


@each
def test_the_largest_are_cut_like_others(step: Step) -> None:
    """7/4 * 2**15 with F = 1 is cut to 3/2 * 2**15; in fp32 bit 2**113 of a number with e = 127 is beyond F = 13."""
    assert step(ONE_BIT, "fp16", 0x7B00, 0) == 0x7A00
    assert step(ONE_BIT, "fp16", 0xFB00, 0) == 0xFA00
    assert step(ONE_BIT, "fp32", 0x7F600000, 0) == 0x7F400000
    assert step(WIDE13, "fp32", 0x7F000600, 0) == 0x7F000400


@each
@pytest.mark.parametrize("machine", [*MACHINES.values(), ONE_BIT], ids=lambda m: m.name)
def test_an_infinity_stays(step: Step, machine: MachineModel) -> None:
    for acc, fmt in (("fp32", FP32), ("fp16", FP16)):
        for sign in (0, 1):
            assert step(machine, acc, fmt.inf(sign), 0x7E) == fmt.inf(sign)
            assert step(machine, acc, fmt.inf(sign), 0) == fmt.inf(sign)


@each
@pytest.mark.parametrize("acc", ["fp32", "fp16"])
@pytest.mark.parametrize("machine", [*MACHINES.values(), ONE_BIT, WIDE13], ids=lambda m: m.name)
def test_a_sum_of_minus_zeros_is_plus_zero(step: Step, machine: MachineModel, acc: str) -> None:
    """Products -0 * 1 onto -0: the PTX ISA's sum of them would be -0, a tensor core's zero is +0 (rule 3)."""
    minus_zero = 0x80000000 if acc == "fp32" else 0x8000
    for c in (minus_zero, 0):
        for code in (0x80, 0x00):
            assert step(machine, acc, c, code) == 0


@each
def test_what_thirteen_bits_cannot_hold_is_plus_zero(step: Step) -> None:
    """sm90 keeps multiples of 2**-139; -2**-140 is cut by the final rounding where F would keep it, and is no -0."""
    for bits in (13, 19, 25):
        machine = replace(MACHINES["sm90"], name=f"F = {bits}, rz13", fraction_bits=bits)
        assert step(machine, "fp32", 0x80000200, 0) == 0  # -2**-140
        assert step(machine, "fp32", 0x80000600, 0) == 0x80000400  # -3 * 2**-140 to -2**-139
        assert step(machine, "fp32", 0x00000400, 0) == 0x00000400


def test_a_chain_in_fp16_that_needs_no_rounding() -> None:
    """Two products of 2**-10 each, in two steps; below 2**-7 fp16 holds every multiple of 2**-18."""
    a, b = np.zeros((1, 64), np.uint8), np.zeros((1, 64), np.uint8)
    a[0, [3, 40]], b[0, [3, 40]] = 0x01, 0x30  # 2**-9 and 1/2
    assert int(mma(a, b, machine="sm100", acc="fp16")[0, 0]) == 0x1800  # 2**-9
    assert int(mma(a, b, machine="sm100", acc="fp32")[0, 0]) == 0x3B000000
