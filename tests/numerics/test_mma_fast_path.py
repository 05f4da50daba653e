"""Where the vectorised tensor-core step may stop looking at exponents, on paper: elements on each side of the bound.

With F bits below the largest exponent the bound on |c| + sum |a*b| is 2**(F-17), 256 for F = 25; below F = 20 there is
none. The smallest product is 2**-18; it is kept as long as 2**(E-F) is no more.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mqa_ref.numerics import E4M3FN, FP32, MACHINES, MachineModel, mma

SM100 = MACHINES["sm100"]
LEAST = (Fraction(1, 512), Fraction(1, 512))


def model(bits: int) -> MachineModel:
    return replace(SM100, name=f"F = {bits}", fraction_bits=bits)


def row(numbers: list[Fraction | int]) -> np.ndarray:
    codes = [E4M3FN.encode(Fraction(number)) for number in numbers]
    return np.array([codes + [0] * (32 - len(codes))], np.uint8)


def value(pairs: list[tuple[Any, Any]], machine: MachineModel, c: Fraction | int = 0) -> Fraction:
    a, b = row([x for x, _ in pairs]), row([y for _, y in pairs])
    start = np.array([[FP32.encode(Fraction(c))]], np.uint32)
    return FP32.value(int(mma(a, b, machine=machine, acc="fp32", c=start)[0, 0]))


@pytest.mark.parametrize(
    ("bits", "factor", "kept"),
    [
        (25, 16, False),  # 16 * 16 has E = 8: the unit is 2**(8-25) = 2**-17, twice the product
        (
            25,
            8,
            True,
        ),  # 8 * 16 has E = 7: the unit is 2**-18, and the sum of magnitudes is just past the bound
        (24, 8, False),
        (24, 4, True),
        (26, 32, False),
        (26, 16, True),
        (20, Fraction(1, 2), False),  # 1/2 * 16 = 8 has E = 3: the unit is 2**(3-20)
        (20, Fraction(1, 4), True),
    ],
)
def test_the_smallest_product_on_both_sides_of_the_bound(bits: int, factor: Any, kept: bool) -> None:
    pairs = [(factor, 16), (-factor, 16), LEAST]
    assert value(pairs, model(bits)) == (Fraction(1, 2**18) if kept else 0)


def test_below_twenty_bits_there_is_no_bound() -> None:
    """2**-9 counts with the exponent -6, so 2**-9 * 128 = 1/4 has E = 1: with F = 18 the unit is 2**-17."""
    pairs = [(Fraction(1, 512), 128), (Fraction(-1, 512), 128), LEAST]
    assert value(pairs, model(18)) == 0
    assert value(pairs, model(19)) == Fraction(1, 2**18)


@pytest.mark.parametrize("large", [256, 2**20])
def test_the_accumulator_counts_like_a_product(large: int) -> None:
    """An accumulator of 256 has E = 8; its opposite, 16 * 16 in products, shows what is left of the smallest one."""
    pairs = [(-16, 16), LEAST] if large == 256 else [(-256, 256)] * 16 + [LEAST]
    assert value(pairs, SM100, large) == 0
    assert value([(-8, 16), LEAST], SM100, 128) == Fraction(1, 2**18)


def test_an_accumulator_off_the_grid_of_products_is_cut() -> None:
    """2**-19 is no multiple of 2**-18: beside 4 * 16 = 64, E = 6, the unit is 2**-19; beside 128 it is 2**-18."""
    tiny = Fraction(1, 2**19)
    assert value([(4, 16), (-4, 16)], SM100, tiny) == tiny
    assert value([(8, 16), (-8, 16)], SM100, tiny) == 0
    assert value([(4, 16), (-4, 16)], SM100, 3 * tiny / 2) == tiny


@pytest.mark.parametrize("machine", [*MACHINES.values(), model(13)], ids=lambda m: m.name)
@pytest.mark.parametrize("rows", [1, 3])
def test_codes_have_the_width_of_the_accumulator(machine: MachineModel, rows: int) -> None:
    one = np.full((rows, 64), E4M3FN.encode(1), np.uint8)
    half, single = (mma(one, one[:1], machine=machine, acc=acc) for acc in ("fp16", "fp32"))
    assert (half.dtype, single.dtype) == (np.dtype(np.uint16), np.dtype(np.uint32))
    assert half.tolist() == [[0x5400]] * rows  # 64
    assert single.tolist() == [[0x42800000]] * rows
