"""Every suspect is named when its bits are planted, computed here in plain float32 from the definition of the mistake.

Dot products are single e4m3 products (8 bits) and weights have 16 bits, so every product is exact and a float32
addition rounds as a fused multiply-add would.
"""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from mqa_ref.compare import compare
from mqa_ref.flow import Flow
from mqa_ref.launch import Launch
from mqa_ref.problem import Problem
from mqa_ref.reference import reference_logits

FLOW = Flow.parse("fp32-fp32-fp32")
HEADS, TOKENS = 32, 40
F = np.float32


@pytest.fixture(scope="module")
def problem() -> Problem:
    random = np.random.default_rng(4)  # with some other seeds two orders coincide on every element looked at
    q = np.zeros((1, 2, HEADS, 128), np.uint8)
    q[..., 0] = random.integers(0x30, 0x48, (1, 2, HEADS)) + 128 * random.integers(0, 2, (1, 2, HEADS))
    k = np.zeros((64, 128), np.uint8)
    k[:, 0] = random.integers(0x28, 0x50, 64) + 128 * random.integers(0, 2, 64)
    scales = (1 + np.arange(1, 65) / 64).astype("<f4")
    kv = np.concatenate([k.reshape(-1), scales.view(np.uint8)])[None]
    odd = random.integers(2**15, 2**16, (2, HEADS)) * random.choice([-1, 1], (2, HEADS))
    weights = np.ldexp(odd.astype(F), random.integers(-21, -9, (2, HEADS))).astype(F)
    lengths, table = np.array([TOKENS + 1], np.int32), np.zeros((1, 1), np.int32)
    return Problem(q, kv, weights, table, lengths, page=64, num_sms=1)


def numbers(codes: np.ndarray) -> np.ndarray:
    return codes.view(ml_dtypes.float8_e4m3fn).astype(F)


def dots(problem: Problem, row: int, shift: int = 0) -> np.ndarray:
    """float32 [HEADS, TOKENS - 2] for the tokens 1 .. TOKENS - 2, or those ``shift`` further on."""
    k = numbers(problem.key_codes[0, 1 + shift : TOKENS - 1 + shift, 0])
    return numbers(problem.q[0, row, :, 0])[:, None] * k[None, :]


def chain(terms: np.ndarray) -> np.ndarray:
    """Terms [heads, tokens] added one after the other in float32."""
    total = np.zeros(terms.shape[1], F)
    for term in terms:
        total = total + term
    return total


def four(terms: np.ndarray) -> list[np.ndarray]:
    return [chain(terms[i::4]) for i in range(4)]


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, F(0))


Wrong = Callable[[np.ndarray, np.ndarray], np.ndarray]  # dots [H, n], weights [H, 1] -> sum before the scale


def right(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    s = four(relu(x) * w)
    return ((s[0] + s[1]) + s[2]) + s[3]


def pairs(a: int, b: int, c: int, d: int) -> Wrong:
    def combine(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        s = four(relu(x) * w)
        return (s[a] + s[b]) + (s[c] + s[d])

    return combine


def neighbours(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    s = [chain(part) for part in np.split(relu(x) * w, 4)]
    return ((s[0] + s[1]) + s[2]) + s[3]


def swapped(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    s = four(relu(x) * w)
    return ((s[0] + s[2]) + s[1]) + s[3]


def backwards(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    s = [chain((relu(x) * w)[i::4][::-1]) for i in range(4)]
    return ((s[0] + s[1]) + s[2]) + s[3]


def unclipped(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    s = four(x * w)
    return ((s[0] + s[1]) + s[2]) + s[3]


MISTAKES: dict[str, Wrong] = {
    "one sum over the heads in ascending order": lambda x, w: chain(relu(x) * w),
    "two partial sums, head h in sum h % 2": lambda x, w: (
        chain((relu(x) * w)[::2]) + chain((relu(x) * w)[1::2])
    ),
    "four partial sums of neighbouring heads": neighbours,
    "the heads in descending order": backwards,
    "partial sums added as (s0x + s0y) + (s1x + s1y)": pairs(0, 1, 2, 3),
    "partial sums added as (s0x + s1x) + (s0y + s1y)": pairs(0, 2, 1, 3),
    "partial sums added as ((s0x + s1x) + s0y) + s1y": swapped,
    "no ReLU": unclipped,
    "the ReLU after the sum over the heads": lambda x, w: relu(unclipped(x, w)),
    "the final half left out": lambda x, w: F(2) * right(x, w),
    "the weights of the next head": lambda x, w: right(x, np.roll(w, -1, axis=0)),
}


def told(problem: Problem, row: int, values: np.ndarray) -> tuple[str, ...]:
    """What is said of these logits in place of the right ones."""
    flow_bits = reference_logits(problem, FLOW)[0]
    wrong = flow_bits.copy()
    wrong[row, 1 : TOKENS - 1] = values.astype(F).view(np.uint32)
    launch = Launch(wrong, np.ones(wrong.shape, np.bool_), (), 1, 0, 0.0)
    valid = problem.valid_mask()
    valid[:, 0] = valid[:, TOKENS - 1 :] = False
    return compare(flow_bits, valid, launch, problem, FLOW).suspects


@pytest.mark.parametrize("row", [0, 1])
@pytest.mark.parametrize("name", MISTAKES)
def test_a_wrong_epilogue_is_named_and_no_right_one(problem: Problem, name: str, row: int) -> None:
    x, w, scale = (
        dots(problem, row),
        problem.weights[row][:, None],
        problem.scale_bits.view(F)[0, 1 : TOKENS - 1],
    )
    values = MISTAKES[name](x, w) * scale
    assert (values != right(x, w) * scale).any()
    assert told(problem, row, values) == (name,)


def test_data_from_the_wrong_place_is_named(problem: Problem) -> None:
    w, scales = problem.weights[0][:, None], problem.scale_bits.view(F)[0]
    own, after, before = (scales[1 + i : TOKENS - 1 + i] for i in (0, 1, -1))
    x = dots(problem, 0)
    assert told(problem, 0, right(x, w) * after) == ("the scale of the token after",)
    assert told(problem, 0, right(x, w) * before) == ("the scale of the token before",)
    assert told(problem, 0, right(dots(problem, 0, 1), w) * own) == ("the key of the token after",)
    assert told(problem, 0, right(dots(problem, 0, -1), w) * before) == (
        "the key and scale of the token before",
    )
    other = problem.weights[1][:, None]
    assert told(problem, 0, right(x, other) * own) == ("the weights of the next query token (row 1)",)
    assert told(problem, 0, right(x, w)) == ("the scale left out",)


def test_nobody_is_accused_of_what_nobody_did(problem: Problem) -> None:
    x, w = dots(problem, 0), problem.weights[0][:, None]
    values = right(x, w) * problem.scale_bits.view(F)[0, 1 : TOKENS - 1]
    assert told(problem, 0, np.nextafter(values, F(np.inf))) == ()
