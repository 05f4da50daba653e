"""The compiled reference where its two ways meet, against the scalar one; and everywhere against its NumPy twin."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from mqa_ref.flow import FLOWS, Flow
from mqa_ref.numerics import MACHINES, MachineModel
from mqa_ref.problem import Problem
from mqa_ref.reference import GENERATIONS, plain_logits, reference_logits, scalar_logit
from mqa_ref.reference.fused import machine_code
from mqa_ref.reference.fused import sums as fused
from mqa_ref.reference.runs import runs

pytestmark = pytest.mark.skipif(
    not machine_code.supported(), reason="this processor runs the NumPy reference"
)

FLOW = Flow.parse("fp32-fp32-fp32")
HALF = Flow.parse("fp16-fp16-fp16")
ONE, TWO, SMALLEST, LARGEST, NAN = 0x38, 0x40, 0x01, 0x7E, 0x7F
"""Codes of 1, 2, 2^-9, 448 and NaN."""
STEP = [TWO] * 16 + [0] * 16


def blocks_cut(problem: Problem, flow: Flow, machine: str = "sm100") -> int:
    """How many blocks of 4 heads and 16 tokens did not go the exact way."""
    model = MACHINES[machine]
    return sum(fused.sums(run, fused.prepare(run, flow), flow, model, "folded")[1] for run in runs(problem))


def check_scalar(problem: Problem, flow: Flow, machine: str = "sm100") -> None:
    """The first and the last two logits of every row, against ints and Fractions."""
    for generation in GENERATIONS:
        bits, mask = reference_logits(problem, flow, machine, generation=generation)
        for row in range(problem.rows):
            last = int(mask[row].sum()) - 1
            for column in sorted({0, max(last - 1, 0), last}):
                expected = scalar_logit(problem, flow, machine, row, column, generation)
                assert hex(bits[row, column]) == hex(expected), (generation, row, column)


def one_query(make: Any, query: list[int], key: list[int], tokens: int = 16) -> Problem:
    """Eight heads of one query, tokens of one key; what the lists do not reach is zero."""
    q, k = np.zeros((1, 1, 8, 64), np.uint8), np.zeros((tokens, 64), np.uint8)
    q[..., : len(query)], k[:, : len(key)] = query, key
    found: Problem = make(q, [k])
    return found


@pytest.mark.parametrize("flow", [FLOW, HALF], ids=str)
@pytest.mark.parametrize(
    ("query", "key", "cut"),
    [
        ([TWO] * 15 + [ONE, SMALLEST], [TWO] * 15 + [ONE, SMALLEST], 0),  # 61 + 2^-18: below the limit
        ([TWO] * 15 + [ONE] * 3, [TWO] * 15 + [ONE] * 3, 0),  # 63, its square 3,969
        ([TWO] * 16, [TWO] * 16, 2),  # 64: the bound of the step is the limit
        ([TWO] * 16 + [SMALLEST], [TWO] * 16 + [SMALLEST], 2),  # 64 + 2^-18 needs 25 bits
        # On its way to 63 + 2^-18 the sum is 64 + 2^-18.
        ([TWO] * 16 + [SMALLEST, ONE], [TWO] * 16 + [SMALLEST, ONE | 0x80], 2),
        # Steps of 32 + 32: each bound is 32 or 33, and the accumulator decides.
        (STEP + STEP, [ONE] * 64, 2),
        (STEP + STEP[1:], [ONE] * 64, 0),  # 62
        (STEP + STEP[2:] + [ONE, SMALLEST], [ONE] * 63 + [SMALLEST], 0),  # 61 + 2^-18
        (STEP + STEP[:31] + [SMALLEST], [ONE] * 63 + [SMALLEST], 2),  # 64 + 2^-18 needs 25 bits
        ([code ^ 0x80 for code in STEP + STEP[:31]] + [0x81], [ONE] * 63 + [SMALLEST], 2),
    ],
)
def test_both_sides_of_the_bound(query: list[int], key: list[int], cut: int, flow: Flow, make: Any) -> None:
    problem = one_query(make, query, key)
    assert blocks_cut(problem, flow) == cut
    check_scalar(problem, flow)


@pytest.mark.parametrize("machine", ["sm90", "sm100"])
@pytest.mark.parametrize("large", range(0x38, 0x7F, 8))
def test_terms_at_the_last_bit_that_is_kept(large: int, machine: str, make: Any) -> None:
    """Next to a product of 2^0..2^16 stand small ones down to 2^-18: some just stay, some lose a bit, some are gone,
    with either sign, and the same once more with an accumulator."""
    small = [SMALLEST, 0x81, 0x03, 0x09, 0x8B, 0x0F, 0x13, 0x1D] * 3
    key = [large, *([SMALLEST] * 8 + [0x08] * 8 + [0x13] * 8), *[0] * 7] * 2
    problem = one_query(make, [large, *small, *[0] * 7] * 2, key)
    for flow in (FLOW, HALF):
        check_scalar(problem, flow, machine)


@pytest.mark.parametrize("machine", ["sm90", "sm100"])
@pytest.mark.parametrize(
    ("query", "key"),
    [
        ([LARGEST] * 64, [LARGEST] * 64),  # 12,845,056: the largest sum, inf in fp16
        ([LARGEST] * 32 + [0xFE] * 32, [LARGEST] * 64),  # inf, then nothing cancels it
        ([0xFE] * 64, [LARGEST] * 64),
        ([LARGEST] * 32 + [NAN], [LARGEST] * 32 + [ONE]),  # inf, then NaN
        ([ONE, NAN], [ONE, 0]),
        ([ONE, 0], [ONE, NAN]),
        ([0] * 64, [0x80] * 64),
        ([SMALLEST] * 64, [SMALLEST] * 64),  # 2^-12
        ([SMALLEST], [0x81]),  # -2^-18
        ([SMALLEST, 0x08], [LARGEST, 0x08]),  # 2^-9 * 448 counts with exponent 2, so sm90 drops 2^-12
        ([LARGEST, 0x08], [SMALLEST, 0x08]),
        ([0x58] * 16 + [TWO, SMALLEST], [0x58] * 16 + [ONE, 0x10]),  # 4098 + 2^-14: nearly a tie of fp16
    ],
)
def test_specials(query: list[int], key: list[int], machine: str, make: Any) -> None:
    problem = one_query(make, query, key)
    for name in FLOWS:
        check_scalar(problem, Flow.parse(name), machine)


def test_fp16_fma_that_fp32_rounds_twice(make: Any) -> None:
    """fma(0x4c02, 0x01ff, 0xbd35) is 0xbd35; by way of fp32 rounded to nearest it is 0xbd34 (docs/numerics.md)."""
    q, key = np.zeros((1, 1, 8, 32), np.uint8), np.zeros((16, 32), np.uint8)
    q[0, 0, 0, 0], q[0, 0, 4, :2], key[:, :2] = ONE, (0x58, ONE), (ONE, 0x10)  # dots 1 and 16 + 2^-5
    weights = np.zeros((1, 8), np.float32)
    weights[0, 0], weights[0, 4] = np.array([0xBD35, 0x01FF], np.uint16).view(np.float16)
    problem = make(q, [key], weights=weights)
    for name in ("fp32-fp16-fp16", "fp16-fp16-fp16"):
        assert hex(reference_logits(problem, Flow.parse(name))[0][0, 0]) == "0xbd35"


VARIANTS = [
    MACHINES["sm90"],
    MACHINES["sm100"],
    *[replace(MACHINES["sm100"], name=f"F={bits}", fraction_bits=bits) for bits in (1, 8, 23, 24)],
    replace(MACHINES["sm90"], name="F=13/rz", final32="rz"),
    replace(MACHINES["sm100"], name="F=25/rz13", final32="rz13"),
]


@pytest.mark.parametrize("model", VARIANTS, ids=lambda model: model.name)
def test_twins(model: MachineModel, make: Any, record_property: Any) -> None:
    """Codes of growing range, so that blocks of both kinds lie side by side; weights and scales are any bits."""
    assert fused.serves(model)
    rng, tried = np.random.default_rng(11), 0
    for top, (next_n, heads, dim, length) in product(
        (0x30, 0x3C, 0x48, 0x7F), ((1, 8, 128, 1050), (3, 16, 32, 77))
    ):

        def codes(*size: int, top: int = top) -> Any:
            found = rng.integers(0, top, size, dtype=np.uint8) | rng.integers(0, 2, size, dtype=np.uint8) << 7
            found[rng.random(size[:-1]) < 0.02, 5] = NAN
            return found

        def floats(*size: int) -> Any:
            bits = rng.integers(0, 2**32, size, dtype=np.uint32).view(np.float32)
            return np.where(rng.random(size) < 0.9, rng.standard_normal(size).astype(np.float32), bits)

        keys, lengths = [codes(length, dim), codes(3, dim)], (length, 3)
        scales = [floats(count) for count in lengths]
        problem = make(codes(2, next_n, heads, dim), keys, scales=scales, weights=floats(2 * next_n, heads))
        for name, generation in product(FLOWS, GENERATIONS):
            fast, _ = reference_logits(problem, Flow.parse(name), model, generation=generation)
            plain, mask = plain_logits(problem, Flow.parse(name), model, generation=generation)
            assert np.array_equal(fast, plain), (top, dim, name, generation)
            tried += int(mask.sum())
    record_property("tried", tried)


def test_what_is_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not fused.serves(MACHINES["exact"])
    assert not fused.serves(replace(MACHINES["sm100"], fraction_bits=26))
    assert not fused.serves(replace(MACHINES["sm100"], final32="rne"))
    monkeypatch.setattr(machine_code, "supported", lambda: False)
    assert not fused.serves(MACHINES["sm100"])
