"""torch's arithmetic against NumPy's and the judges: the same bits in every flow, on every machine, on any device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch

from mqa_ref.flow import FLOWS, Flow
from mqa_ref.numerics import FP16, FP32, MACHINES, scalar
from mqa_ref.problem import Problem
from mqa_ref.reference import reference_logits, reference_logits_torch
from mqa_ref.reference.attacks import attack_problems
from mqa_ref.reference.on_torch import device_logits
from mqa_ref.reference.on_torch import operations as op
from mqa_ref.verification.problems import quick

MODELS = (*MACHINES.values(), replace(MACHINES["sm100"], name="f26-rne", fraction_bits=26, final32="rne"))


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def small(seed: int) -> Problem:
    """The first attack of a seed that has few products, cut to 40 tokens of one sequence."""
    found = next(one for one in islice(attack_problems(seed), 20) if one.heads * one.head_dim <= 512)
    return Problem(
        *(found.q[:1], found.kv_fused, found.weights[: found.next_n], found.block_table[:1]),
        np.array([40], np.int32),
        page=found.page,
        num_sms=1,
    )


def bits_of(logits: Any, flow: Flow) -> Any:
    words = logits.view(torch.int32 if flow.out == "fp32" else torch.int16).cpu().numpy()
    return words.view(flow.bits_dtype)


def same(problem: Problem, name: str, model: Any, generation: Any, device: str) -> int:
    flow = Flow.parse(name)
    expected, mask = reference_logits(problem, flow, model, generation=generation)
    logits, told = device_logits(problem, flow, model, generation, device)
    assert np.array_equal(told.cpu().numpy(), mask)
    assert np.array_equal(bits_of(logits, flow), expected), (name, model.name, generation)
    return int(mask.sum())


@pytest.mark.parametrize("name", FLOWS)
def test_the_bits_of_numpy(name: str) -> None:
    generations = ("folded", "max", "max_nan") if name.startswith("fp32-fp32") else ("folded",)
    compared = 0
    for seed, model in enumerate(MODELS):
        for generation in generations:
            compared += same(small(seed), name, model, generation, "cpu")
    assert compared >= 100


def test_nan_and_infinity() -> None:
    named = {one.name: one.problem for one in quick()}
    for name in ("nan-query", "special-scales"):
        same(named[name], "fp32-fp32-fp32", MACHINES["sm100"], "folded", "cpu")


CASES16 = [
    (0x4C02, 0x01FF, 0xBD35),
    (0x0001, 0x0001, 0x8001),
    (0x7BFF, 0x7BFF, 0xFC00),
    (0x3C01, 0x3C01, 0x0001),
]
CASES32 = [
    (0x437FFFFE, 0xAD800001, 0xBD828D83),
    (0x3F800001, 0x3F800001, 0x33800000),
    (0x00800001, 0x3F000000, 0x00000001),
]


@pytest.mark.parametrize(("cases", "fmt", "name"), [(CASES16, FP16, "fma_f16"), (CASES32, FP32, "fma_f32")])
def test_fma_is_rounded_once(cases: Any, fmt: Any, name: str) -> None:
    """The operands that a fused operation in the next wider format gets wrong (the first of each)."""
    apply = op.fma16 if fmt is FP16 else op.fma32
    for case in cases:
        a, b, c = (torch.tensor([float(fmt.decode(code))], dtype=torch.float64) for code in case)
        expected = float(fmt.decode(getattr(scalar, name)(*case)))
        assert apply(a, b, c).item() == expected, case


def test_float64_to_fp16_does_not_go_through_fp32() -> None:
    """1.0009765625 + 2^-11 + 2^-52 is above a tie; by way of float32 it would be the tie, and go to even."""
    value = 1 + 2**-11 + 2**-52
    assert op.round16(torch.tensor([value], dtype=torch.float64)).item() == 1 + 2**-10
    assert FP16.value(FP16.encode(Fraction(value))) == 1 + Fraction(2) ** -10
    assert torch.tensor([value], dtype=torch.float64).half().item() == 1, "what torch itself does"


@pytest.mark.gpu
@pytest.mark.parametrize("name", FLOWS)
def test_the_bits_of_numpy_on_the_gpu(name: str) -> None:
    for one in quick():
        for model in MODELS:
            same(one.problem, name, model, "folded", "cuda")


def test_on_the_cpu_the_tensors_are_numpys() -> None:
    logits, _ = reference_logits_torch(small(0), Flow.parse("fp32-fp16-bf16"))
    assert logits.dtype == torch.bfloat16
