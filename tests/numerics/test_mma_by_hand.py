"""Tensor-core steps worked out on paper, each rule on its own, for the scalar and the vectorised implementation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mqa_ref.numerics import E4M3FN, FP16, FP32, MACHINES, MachineModel, mma, scalar

SM90, SM100, EXACT = MACHINES["sm90"], MACHINES["sm100"], MACHINES["exact"]
FORMAT = {"fp32": FP32, "fp16": FP16}
Product = tuple[Fraction | float, Fraction | float]
Step = Callable[..., int]


def by_scalar(a: list[int], b: list[int], c: int, machine: MachineModel, acc: str) -> int:
    return scalar.mma_step(a, b, c, machine=machine, acc=acc)


def by_vector(a: list[int], b: list[int], c: int, machine: MachineModel, acc: str) -> int:
    """The element in a corner of a tile whose other elements are harmless, so that the tile takes the gathering way."""
    left, right = np.zeros((5, 32), np.uint8), np.zeros((4, 32), np.uint8)
    left[4], right[3] = a, b
    start: Any = np.zeros((5, 4), np.uint16 if acc == "fp16" else np.uint32)
    start[4, 3] = c
    out = mma(left, right, machine=machine, acc="fp16" if acc == "fp16" else "fp32", c=start)
    assert not out[:4, :3].any()
    return int(out[4, 3])


def by_vector_alone(a: list[int], b: list[int], c: int, machine: MachineModel, acc: str) -> int:
    start: Any = np.array([[c]], np.uint16 if acc == "fp16" else np.uint32)
    kind: Any = acc
    return int(
        mma(np.array([a], np.uint8), np.array([b], np.uint8), machine=machine, acc=kind, c=start)[0, 0]
    )


@pytest.fixture(params=[by_scalar, by_vector, by_vector_alone], ids=["scalar", "vector", "alone"])
def step(request: pytest.FixtureRequest) -> Step:
    chosen: Step = request.param

    def run(
        products: list[Product], c: Fraction | float = 0, machine: MachineModel = SM100, acc: str = "fp32"
    ) -> int:
        pairs = [(E4M3FN.encode(Fraction(x)), E4M3FN.encode(Fraction(y))) for x, y in products]
        for (x, y), (code_x, code_y) in zip(products, pairs, strict=True):
            assert (E4M3FN.value(code_x), E4M3FN.value(code_y)) == (x, y), "not numbers of e4m3fn"
        pairs += [(0, 0)] * (32 - len(pairs))
        start = FORMAT[acc].encode(Fraction(c))
        assert FORMAT[acc].value(start) == c, "not a number of the accumulator's format"
        return chosen([x for x, _ in pairs], [y for _, y in pairs], start, machine, acc)

    return run


def fp32(value: Fraction | float) -> int:
    code = FP32.encode(Fraction(value))
    assert FP32.value(code) == value
    return code


def test_nothing_cut(step: Step) -> None:
    assert step([(1.5, 2), (-0.25, 3)], 10) == fp32(12.25)
    assert step([(Fraction(1, 512), Fraction(1, 512))]) == fp32(2.0**-18)


def test_terms_are_cut_toward_zero(step: Step) -> None:
    """448 * 448 has e = 8 + 8 = 16: sm100 keeps multiples of 2**(16 - 25) = 2**-9, sm90 of 2**(16 - 13) = 8."""
    big = (448, 448)
    minus_big = (-448, 448)
    unit = Fraction(1, 512)
    # The large terms cancel, so the sum shows what was left of the small one, both signs alike.
    assert step([big, minus_big, (unit, 1)]) == fp32(unit)
    assert step([big, minus_big, (unit, 0.9375)]) == 0
    assert step([big, minus_big, (-unit, 0.9375)]) == 0, "toward zero, not down"
    assert step([big, minus_big, (-3 * unit, 0.5)]) == fp32(-unit)
    assert step([big, minus_big, (7.5, 1)], machine=SM90) == 0
    assert step([big, minus_big, (-15, 1)], machine=SM90) == fp32(-8)
    assert step([big, minus_big, (unit, 0.9375)], machine=EXACT) == fp32(unit * Fraction(15, 16))


def test_terms_are_cut_one_by_one_before_the_sum(step: Step) -> None:
    big, minus_big, tiny = (448, 448), (-448, 448), (Fraction(1, 512), 0.5)
    assert step([big, minus_big, *[tiny] * 30]) == 0
    assert step([big, minus_big, *[tiny] * 30], machine=EXACT) == fp32(30 / 1024)


def test_a_product_is_not_normalised(step: Step) -> None:
    """1.875 * 1.875 = 3.515625 counts as e = 0, not 1: with F = 13, 2**-13 is kept."""
    wide, minus_wide = (1.875, 1.875), (-1.875, 1.875)
    assert step([wide, minus_wide, (Fraction(1, 64), Fraction(1, 128))], machine=SM90) == fp32(2.0**-13)
    assert step([wide, minus_wide, (Fraction(1, 128), Fraction(1, 128))], machine=SM90) == 0


def test_a_subnormal_factor_keeps_its_exponent(step: Step) -> None:
    """2**-9 has e = -6, so 2**-9 * 256 = 0.5 counts as e = 2: with F = 13, 2**-11 is the unit."""
    half, minus_half = (Fraction(1, 512), 256), (Fraction(-1, 512), 256)
    assert step([half, minus_half, (Fraction(1, 32), Fraction(1, 64))], machine=SM90) == fp32(2.0**-11)
    assert step([half, minus_half, (Fraction(1, 64), Fraction(1, 64))], machine=SM90) == 0
    normal, minus_normal = (Fraction(1, 64), 32), (Fraction(-1, 64), 32)  # also 0.5, with e = -1
    assert step([normal, minus_normal, (Fraction(1, 64), Fraction(1, 64))], machine=SM90) == fp32(2.0**-12)


@pytest.mark.parametrize(("bits", "left"), [(18, 0), (19, 0), (20, 2.0**-18)])
def test_a_subnormal_factor_limits_the_fast_path(bits: int, left: float, step: Step) -> None:
    """2**-9 * 256 = 0.5 with e = 2 makes F = 19 cut at 2**-17, though all terms together are below 2."""
    half, minus_half = (Fraction(1, 512), 256), (Fraction(-1, 512), 256)
    products = [half, minus_half, (Fraction(1, 512), Fraction(1, 512))]
    assert step(products, machine=replace(SM100, fraction_bits=bits)) == fp32(left)


def chain(first: list[Product], second: list[Product], c: int, machine: MachineModel, acc: str) -> list[int]:
    """Two steps by both implementations."""
    codes = [
        [E4M3FN.encode(Fraction(pair[side])) for pair in part] for part in (first, second) for side in (0, 1)
    ]
    padded = [row + [0] * (32 - len(row)) for row in codes]
    a, b = padded[0] + padded[2], padded[1] + padded[3]
    return [scalar.mma(a, b, c, machine=machine, acc=acc), by_vector_alone(a, b, c, machine, acc)]


def test_each_step_of_a_chain_is_rounded() -> None:
    """64 + 2**-18 does not fit 24 bits, so a second step of -32 finds 64: the exact sum would keep the 2**-18."""
    grain = (Fraction(1, 512), Fraction(1, 512))
    assert chain([(8, 8), grain], [(-8, 4)], 0, SM100, "fp32") == [fp32(32)] * 2
    assert chain([(8, 4), grain], [(-8, 4)], 0, SM100, "fp32") == [fp32(2.0**-18)] * 2, "32 + 2**-18 fits"
    sixteenth = (0.25, 0.25)
    assert (
        chain([sixteenth, grain], [(-0.25, 0.125)], 0, replace(SM100, final32="rz13"), "fp32")
        == [fp32(2.0**-5)] * 2
    )
    least = (Fraction(1, 128), 1)
    assert (
        chain([least, grain], [(Fraction(-1, 256), 1)], 0, SM100, "fp16")
        == [FP16.encode(Fraction(1, 256))] * 2
    )


def test_an_accumulator_off_the_grid_is_lost_in_a_chain() -> None:
    """32 + 2**-20 does not fit 24 bits, though everything is below 64."""
    start = fp32(2.0**-20)
    assert chain([(8, 4)], [(-7.5, 4)], start, SM100, "fp32") == [fp32(2)] * 2
    assert chain([(8, 1)], [(-8, 1)], start, SM100, "fp32") == [fp32(2.0**-20)] * 2, "8 + 2**-20 fits"


def test_zero_terms_have_no_exponent(step: Step) -> None:
    """448 * 0 does not raise the largest exponent, nor does a zero accumulator lower it."""
    assert step([(448, 0), (0, 448), (Fraction(1, 512), Fraction(1, 512))], machine=SM90) == fp32(2.0**-18)


def test_the_accumulator_is_cut_like_a_product(step: Step) -> None:
    """Against 448 * 448 an accumulator of 2**-9 + 2**-12 keeps 2**-9; it cuts the products when it is the largest."""
    assert step([(448, 448), (-448, 448)], Fraction(9, 4096)) == fp32(2.0**-9)
    assert step([(448, 448), (-448, 448)], Fraction(-9, 4096)) == fp32(-(2.0**-9))
    assert step([(1, 1), (-1, 0.5)], 2**25) == fp32(2**25), "2**25 + 0.5, then toward zero"
    assert step([(1, 1)], 2**26) == fp32(2**26), "F = 25: the unit is 2, the product is lost"
    assert step([(-1, 1)], 2**26) == fp32(2**26), "and so is a negative one"
    assert step([(-2, 1)], 2**26) == fp32(2**26 - 4), "kept, and the sum is cut toward zero to fp32's 24 bits"


def test_final_rounding_is_toward_zero_in_fp32(step: Step) -> None:
    assert step([(Fraction(1, 4), 1)], 2**23 + 1) == fp32(2**23 + 1)
    assert step([(Fraction(-1, 4), 1)], 2**23 + 1) == fp32(2**23)
    assert step([(Fraction(15, 16), 1)], 2**23) == fp32(2**23)
    assert step([(Fraction(-1, 4), 1)], -(2**23) - 1) == fp32(-(2**23) - 1)
    assert step([(Fraction(3, 4), 1)], 2**23 + 1, EXACT) == fp32(2**23 + 2)


def test_sm90_keeps_13_fraction_bits(step: Step) -> None:
    assert step([], 1 + Fraction(1, 2**13) + Fraction(1, 2**14), SM90) == fp32(1 + 2.0**-13)
    assert step([(1, 1)] * 2, 2**14 - 1, SM90) == fp32(2**14), "2**14 + 1 needs 14 fraction bits"


def test_fp16_rounds_to_nearest_even_and_overflows(step: Step) -> None:
    assert step([(1, 1)], 2048, acc="fp16") == FP16.encode(2048), "2049 is a tie"
    assert step([(3, 1)], 2048, acc="fp16") == FP16.encode(2052), "2051 is a tie"
    assert step([(15, 1)], 65504, acc="fp16") == 0x7BFF
    assert step([(16, 1)], 65504, acc="fp16") == 0x7C00, "65520"
    assert step([(448, 448)], acc="fp16") == 0x7C00
    assert step([(-448, 448)], acc="fp16") == 0xFC00
    assert step([(448, 448), (-448, 448)], 1, acc="fp16") == 0x3C00, "only the sum overflows"


@pytest.mark.parametrize("acc", ["fp32", "fp16"])
@pytest.mark.parametrize("machine", [SM90, SM100, EXACT], ids=lambda m: m.name)
def test_signed_zeros_give_plus_zero(machine: MachineModel, acc: str) -> None:
    minus_zero = FORMAT[acc].sign_mask
    for run in (by_scalar, by_vector, by_vector_alone):
        for a, b, c in ((0x80, 0x38, minus_zero), (0, 0, minus_zero), (0x80, 0x80, 0), (0x81, 0, minus_zero)):
            assert run([a] * 32, [b] * 32, c, machine, acc) == 0


@pytest.mark.parametrize("acc", ["fp32", "fp16"])
@pytest.mark.parametrize("machine", [SM90, SM100, EXACT], ids=lambda m: m.name)
def test_nan_and_inf(machine: MachineModel, acc: str) -> None:
    fmt = FORMAT[acc]
    ones, quiet = [0x38] * 32, fmt.exponent_mask | 3
    for run in (by_scalar, by_vector, by_vector_alone):
        for nan in (0x7F, 0xFF):
            assert run([nan, *ones[1:]], ones, 0, machine, acc) == fmt.canonical_nan
            assert (
                run([0x38] * 31 + [0], [0x38] * 31 + [nan], fmt.inf(0), machine, acc) == fmt.canonical_nan
            ), "0 * NaN too"
        assert run(ones, ones, quiet | fmt.sign_mask, machine, acc) == fmt.canonical_nan
        for sign in (0, 1):
            assert run(ones, ones, fmt.inf(sign), machine, acc) == fmt.inf(sign)
            assert run([0] * 32, [0] * 32, fmt.inf(sign), machine, acc) == fmt.inf(sign)


def test_subnormal_accumulators(step: Step) -> None:
    """With no product the accumulator is the only term, with e = -126 or -14 when subnormal."""
    least = Fraction(1, 2**149)
    assert step([], least) == 1
    assert step([], -3 * least) == 0x80000003
    assert step([], 1025 * least, SM90) == 1024, "F = 13 below 2**-126 leaves multiples of 2**-139"
    assert step([], 1025 * least, EXACT) == 1025
    assert step([(Fraction(1, 512), Fraction(1, 512))], least) == fp32(2.0**-18), (
        "cut: 2**-149 is under 2**(-12 - 25)"
    )
    assert step([], Fraction(3, 2**24), acc="fp16") == 3
    assert step([], Fraction(3, 2**24), SM90, acc="fp16") == 3
    odd = replace(SM100, final32="rz13")
    assert step([], 1025 * least, odd) == 1024


def test_largest_accumulator(step: Step) -> None:
    largest = FP32.max_finite
    assert step([(448, 448)] * 32, largest) == FP32.max_finite_code
    assert step([(448, 448)] * 32, largest, EXACT) == FP32.max_finite_code
    assert step([(448, 448)] * 32, -largest, SM90) == 0xFF7FFC00, "cut to 13 fraction bits"
