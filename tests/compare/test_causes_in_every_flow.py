"""The cause of a mistake is named in every flow: wrong logits are those of the reference for other inputs, another
machine, generation or flow, in whole rows or in parts of the output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mqa_ref.compare import Comparison, compare
from mqa_ref.flow import FLOWS, Flow
from mqa_ref.launch import Launch
from mqa_ref.numerics import FORMATS, is_nan
from mqa_ref.problem import Problem
from mqa_ref.reference import GENERATIONS, reference_logits, reordered_logits

BATCH, NEXT_N, HEADS, DIM, PAGE, LENGTH = 3, 2, 16, 64, 32, 160
PAGES = 2 * BATCH * LENGTH // PAGE


@pytest.fixture(scope="module")
def inputs() -> dict[str, Any]:
    random = np.random.default_rng(11)

    def codes(*shape: int) -> Any:
        return (random.integers(0x20, 0x40, shape) + 128 * random.integers(0, 2, shape)).astype(np.uint8)

    scales = random.uniform(0.25, 1, (PAGES, PAGE)).astype("<f4")
    return {
        "q": codes(BATCH, NEXT_N, HEADS, DIM),
        "kv_fused": np.concatenate([codes(PAGES, PAGE * DIM), scales.view(np.uint8)], axis=1),
        "weights": random.uniform(0.1, 1, (BATCH * NEXT_N, HEADS)).astype(np.float32),
        "block_table": random.permutation(PAGES)[: BATCH * LENGTH // PAGE]
        .reshape(BATCH, -1)
        .astype(np.int32),
    }


def make(inputs: dict[str, Any]) -> Problem:
    return Problem(**inputs, context_lens=np.full(BATCH, LENGTH, np.int32), page=PAGE, num_sms=2)


def told(inputs: dict[str, Any], flow: Flow, wrong: np.ndarray, **options: Any) -> Comparison:
    problem = make(inputs)
    expected, valid = reference_logits(problem, flow, **options)
    launch = Launch(wrong, np.ones(wrong.shape, np.bool_), (), 2, 0, 0.0)
    return compare(expected, valid, launch, problem, flow, **options)


def changed_scales(kv: np.ndarray, change: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    out = kv.copy()
    scales = out[:, PAGE * DIM :].view("<f4")
    scales[:] = change(scales.copy())
    return out


def interleaved(kv: np.ndarray) -> np.ndarray:
    """What a kernel sees that looks for each token's scale behind its codes."""
    tokens = kv.reshape(PAGES, PAGE, DIM + 4)
    return np.concatenate(
        [tokens[:, :, :DIM].reshape(PAGES, -1), tokens[:, :, DIM:].reshape(PAGES, -1)], axis=1
    )


def swap(values: np.ndarray, axis: int, one: int, other: int) -> np.ndarray:
    order = np.arange(values.shape[axis])
    order[[one, other]] = other, one
    return values.take(order, axis)


def no_half(weights: np.ndarray, first: int) -> np.ndarray:
    out = weights.copy()
    out[:, first : first + HEADS // 2] = 0
    return out


def cut(q: np.ndarray) -> np.ndarray:
    out = q.copy()
    out[..., 32:] = 0
    return out


Change = Callable[[Any], Any]
MISTAKES: dict[str, tuple[str, Change]] = {
    "the weights of heads 3 and 14 exchanged": ("weights", lambda w: swap(w, 1, 3, 14)),
    "the queries of heads 0 and 5 exchanged": ("q", lambda q: swap(q, 2, 0, 5)),
    "the weights of the next head": ("weights", lambda w: np.roll(w, -1, axis=1)),
    "the weights of the next query token": (
        "weights",
        lambda w: swap(w.reshape(BATCH, 2, HEADS), 1, 0, 1).reshape(-1, HEADS),
    ),
    "the weights of row 4": ("weights", lambda w: np.repeat(w[4:5], 6, axis=0)),
    "the query of the next query token": ("q", lambda q: swap(q, 1, 0, 1)),
    "the scale of token 0 of the page": (
        "kv_fused",
        lambda kv: changed_scales(kv, lambda s: np.repeat(s[:, :1], PAGE, axis=1)),
    ),
    "the key and scale of the page of sequence 1": (
        "block_table",
        lambda table: np.repeat(table[1:2], BATCH, axis=0),
    ),
    "the key and scale of the page of the next table entry": (
        "block_table",
        lambda table: table[:, [1, 2, 3, 4, 4]],
    ),
    "the key and scale of page 4": ("block_table", lambda table: np.full_like(table, 4)),
    "the key and scale of the page with the number of the table entry": (
        "block_table",
        lambda table: np.broadcast_to(np.arange(table.shape[1], dtype=np.int32), table.shape).copy(),
    ),
    "keys and scales read where interleaved pages would have them": ("kv_fused", interleaved),
    "the first half of the heads alone": ("weights", lambda w: no_half(w, HEADS // 2)),
    "the second half of the heads alone": ("weights", lambda w: no_half(w, 0)),
    "dot products without elements 32 to 63": ("q", cut),
}


@pytest.mark.parametrize("flow", FLOWS)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_the_inputs_is_named(inputs: dict[str, Any], name: str, flow: str) -> None:
    argument, change = MISTAKES[name]
    parsed = Flow.parse(flow)
    wrong = reference_logits(make(inputs | {argument: change(inputs[argument])}), parsed)[0]
    result = told(inputs, parsed, wrong)
    assert result.mismatched > 100
    assert name in result.suspects
    assert len(result.suspects) <= 2, f"one mistake is blamed on many: {result.suspects}"


@pytest.mark.parametrize("flow", FLOWS)
def test_a_mistake_in_one_tile_is_named_all_the_same(inputs: dict[str, Any], flow: str) -> None:
    parsed = Flow.parse(flow)
    wrong = reference_logits(make(inputs), parsed)[0]
    argument, change = MISTAKES["the weights of row 4"]
    other = reference_logits(make(inputs | {argument: change(inputs[argument])}), parsed)[0]
    wrong[2, :128] = other[2, :128]
    result = told(inputs, parsed, wrong)
    assert "the weights of the sequence after (row 4)" in result.suspects
    assert "tile 0 of row 2" in result.where[0]


@pytest.mark.parametrize("flow", FLOWS)
def test_the_whole_logits_of_another_row(inputs: dict[str, Any], flow: str) -> None:
    parsed = Flow.parse(flow)
    wrong = reference_logits(make(inputs), parsed)[0]
    wrong[4, :100] = wrong[1, :100]
    assert told(inputs, parsed, wrong).suspects == ("the logits 3 rows before",)


@pytest.mark.parametrize("flow", FLOWS)
def test_logits_of_other_columns(inputs: dict[str, Any], flow: str) -> None:
    parsed = Flow.parse(flow)
    wrong = reference_logits(make(inputs), parsed)[0]
    wrong[3, :30] = wrong[3, 100:130]
    assert told(inputs, parsed, wrong).suspects == ("the logits 100 columns further on",)


@pytest.mark.parametrize("flow", FLOWS)
def test_another_machine_and_another_flow(inputs: dict[str, Any], flow: str) -> None:
    parsed = Flow.parse(flow)
    small = inputs | {"weights": inputs["weights"] * np.float32(1 / 64)}
    problem = make(small)
    right = reference_logits(problem, parsed)[0]
    if (reference_logits(problem, parsed, "sm90")[0] != right).sum() > 100:
        assert (
            "the tensor core sm90"
            in told(small, parsed, reference_logits(problem, parsed, "sm90")[0]).suspects
        )
    for acc, epi in (("fp32", "fp32"), ("fp32", "fp16"), ("fp16", "fp16")):
        other = Flow(acc, epi, parsed.out)  # type: ignore[arg-type]
        wrong = reference_logits(problem, other)[0]
        if (wrong != right).sum() > 100:
            assert f"the flow {other}" in told(small, parsed, wrong).suspects


# Narrower outputs of the fp32 epilogue hide the order of so few logits.
@pytest.mark.parametrize(
    "flow", [name for name in FLOWS if not name.startswith("fp32-fp32-") or name.endswith("fp32")]
)
def test_another_order_is_named_or_nothing_is(inputs: dict[str, Any], flow: str) -> None:
    parsed = Flow.parse(flow)
    problem = make(inputs)
    serial = told(inputs, parsed, reordered_logits(problem, parsed, order="serial")[0])
    assert not serial.equal
    assert "one sum over the heads in ascending order" in serial.suspects
    tree = told(inputs, parsed, reordered_logits(problem, parsed, order="pairwise")[0])
    assert not tree.equal
    assert tree.suspects == ()


def test_the_generations_are_told_apart(inputs: dict[str, Any]) -> None:
    """Weights near the largest number: the folded half overflows, the other generation does not."""
    flow = Flow.parse("fp32-fp32-fp32")
    huge = inputs | {"weights": inputs["weights"] * np.float32(2.0**124)}
    problem = make(huge)
    folded, most = (reference_logits(problem, flow, generation=name)[0] for name in GENERATIONS[:2])
    assert (folded != most).sum() > 50
    assert told(huge, flow, most).suspects == ("the ReLU max(x, 0) without a final half",)
    assert "the folded ReLU, x + |x| and a final half" in told(huge, flow, folded, generation="max").suspects


def test_accumulators_that_saturate(inputs: dict[str, Any]) -> None:
    """2**17 and more in fp16: inf in the flow, 65504 times the weight in a kernel that saturates."""
    flow = Flow.parse("fp32-fp16-fp16")
    q, kv = np.zeros_like(inputs["q"]), inputs["kv_fused"].copy()
    q[..., 0] = 0x7E
    q[:, :, 1:] = 0
    kv[:, : PAGE * DIM].reshape(PAGES, PAGE, DIM)[..., 0] = 0x7E
    large = inputs | {"q": q, "kv_fused": kv}
    expected, valid = reference_logits(make(large), flow)
    assert (expected[valid] == 0x7C00).all()
    table, weights = large["block_table"], large["weights"][:, 0].astype(np.float16)
    scales = kv[:, PAGE * DIM :].view("<f4")[table].reshape(BATCH, -1).astype(np.float16)
    sums = np.float16(65504) * weights
    wrong = (sums[:, None] * np.repeat(scales, NEXT_N, axis=0)).view(np.uint16)
    result = told(large, flow, wrong)
    assert "accumulators that saturate at 65504 instead of overflowing" in result.suspects
    assert result.counts["inf"] == valid.sum()


def test_no_nan_hides(inputs: dict[str, Any]) -> None:
    flow = Flow.parse("fp32-fp16-bf16")
    wrong = reference_logits(make(inputs), flow)[0]
    wrong[1, 5] = 0x7FFF
    assert is_nan(wrong, FORMATS["bf16"]).sum() == 1
    result = told(inputs, flow, wrong)
    assert result.counts["nan"] == 1
    assert result.suspects == ()
