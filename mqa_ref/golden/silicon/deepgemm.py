"""The problems on which DeepGEMM's SM90 kernel was recorded on a GPU: descriptions that expand to the same bytes
anywhere.

``recorded`` are those whose every valid logit is stored; ``fuzzed`` are drawn from their number, and of their results
the hashes are stored. Both are run with DeepGEMM's own schedule metadata; 132 CTAs are those of an H200.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.flow import Flow
from mqa_ref.golden.entry import plain_bytes
from mqa_ref.kernel.deepgemm.shape import Arch
from mqa_ref.kernel.raw_launch import RawLaunch
from mqa_ref.problem import Problem
from mqa_ref.verification.pages import Order, Rest
from mqa_ref.verification.problems import NamedProblem, Recipe, make
from mqa_ref.verification.words import below

ARCH: Arch = "sm_90a"
FLOW = Flow.parse("fp32-fp32-fp32")
FUZZED = 2048
"""How many of the drawn problems were run."""

SHAPES = ((64, 1), (64, 2), (32, 1), (32, 2))
"""(heads, next_n)."""
KINDS = (
    *(
        "rms",
        "bits",
        "wide",
        "fma_ties",
        "special_scales",
        "nan_keys",
        "plain_scales",
        "overflow",
        "nan_query",
    ),
    *("amax", "special_weights", "cancelling", "subnormals"),
)
ORDERS: tuple[Order, ...] = ("shuffled", "in_order", "repeated", "descending")
RESTS: tuple[Rest, ...] = ("zeros", "tight", "garbage")
CTAS = (132, 7, 132, 1, 132, 2, 132)

# fmt: off
LENGTHS: tuple[tuple[int, ...], ...] = (
    (1,), (2,), (3, 1), (5,), (17,), (31, 33), (63,), (64,), (65,), (66, 1, 64), (100,), (127,), (128,), (129,),
    (191, 192, 193), (200,), (255,), (256,), (257,), (258, 255), (320,), (383, 385), (511,), (512,), (513,),
    (0,), (0, 1), (1, 0), (0, 0, 7), (300, 0, 129), (0, 257, 0, 0, 64), (300, 0), (0, 0, 0), (128, 0, 2048),
    (1, 1, 1, 1, 1, 1, 1, 1), (64, 128, 192, 256, 320), (1, 64, 256, 257, 1000), (9, 8, 7, 6, 5, 4, 3, 2, 1),
    (777,), (1000, 300), (1024,), (1337, 200), (1025, 1023), (2000,), (2048, 1), (2049,), (3000, 3),
    (4096,), (513, 514, 515, 516), (700, 0, 700, 1), (8191,), (8322,), (1, 12345), (20000,),
)
# fmt: on
"""Around every edge of a page, a split and a fetch of table entries (32 splits), and rows without tokens."""


@cache
def recorded() -> tuple[NamedProblem, ...]:
    """The problems whose logits are stored, in the order of the recording: every tuple of lengths in every shape."""
    made = []
    for number in range(len(LENGTHS) * len(SHAPES)):
        heads, next_n = SHAPES[number % len(SHAPES)]
        made.append(
            Recipe(
                f"deepgemm-{number}",
                "recorded on an H200",
                LENGTHS[number // len(SHAPES)],
                CTAS[number % len(CTAS)],
                heads=heads,
                next_n=next_n,
                data=KINDS[number % len(KINDS)],
                order=ORDERS[number // 3 % len(ORDERS)],
                rest=RESTS[number % len(RESTS)],
            )
        )
    return tuple(make(recipe) for recipe in made)


def fuzzed(number: int) -> NamedProblem:
    """One drawn problem: short rows more often than long ones, up to 20,000 tokens and eight sequences."""
    name = f"deepgemm-fuzz-{number}"
    heads, next_n = SHAPES[_pick(f"{name}/shape", len(SHAPES))]
    batch = 1 + _pick(f"{name}/batch", 8)
    lengths, left = [], 24_000
    for row in range(batch):
        lengths.append(min(_length(f"{name}/row {row}"), left))
        left -= lengths[-1]
    recipe = Recipe(
        name,
        "drawn",
        tuple(lengths),
        CTAS[_pick(f"{name}/ctas", len(CTAS))],
        heads=heads,
        next_n=next_n,
        data=KINDS[_pick(f"{name}/kind", len(KINDS))],
        order=ORDERS[_pick(f"{name}/order", len(ORDERS))],
        rest=RESTS[_pick(f"{name}/rest", len(RESTS))],
    )
    return make(recipe)


def _pick(label: str, bound: int) -> int:
    return int(below(label, 1, bound)[0])


def _length(label: str) -> int:
    """Of 128 draws: 16 empty rows, 40 below a page, 32 near an edge of one, 32 below three splits, 7 longer, 1 long."""
    turn = _pick(f"{label}/class", 128)
    if turn < 16:
        return 0
    if turn < 56:
        return 1 + _pick(label, 63)
    if turn < 88:
        return max(1, 64 * (1 + _pick(f"{label}/page", 10)) - 2 + _pick(label, 5))
    if turn < 120:
        return 1 + _pick(label, 768)
    return 1 + _pick(label, 4000 if turn < 127 else 20_000)


def given_digest(launch: RawLaunch) -> bytes:
    """The SHA-256 of all that a launch was given: every buffer's bytes, and its grid and parameters."""
    digest = hashlib.sha256(
        f"{launch.grid} {launch.block} {launch.shared_bytes} {launch.parameters}".encode()
    )
    for buffer in launch.buffers:
        digest.update(f"{buffer.name} {buffer.data.size}\n".encode() + buffer.data.tobytes())
    return digest.digest()


def valid_logits(problem: Problem, output: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """The valid logits of an output buffer, row after row."""
    bits = output.view("<u4").reshape(problem.rows, problem.row_stride)[:, : problem.max_context_len]
    return bits[problem.valid_mask()]


def digest_of(bits: NDArray[Any]) -> bytes:
    """The SHA-256 of an array's little-endian bytes."""
    return hashlib.sha256(plain_bytes(np.ascontiguousarray(bits))).digest()


def stored_logits(
    tensors: Mapping[str, NDArray[Any]], problems: Sequence[NamedProblem]
) -> list[NDArray[np.uint32]]:
    """The recorded valid logits of each problem."""
    counts = [int(case.problem.valid_columns().sum()) for case in problems]
    return list(np.split(tensors["logits"], np.cumsum(counts)[:-1]))
