"""The vectorised reference against its scalar twin, sampled over the shapes, and what must not change one bit."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqa_ref.errors import InputError
from mqa_ref.flow import FLOWS, Flow
from mqa_ref.numerics import MACHINES
from mqa_ref.reference import GENERATIONS, SUPPORTED_FLOWS, reference_logits, scalar_logit
from mqa_ref.schedule import build

FLOW = Flow.parse("fp32-fp32-fp32")


def random_problem(
    make: Any, shape: tuple[int, int, int, int], lengths: list[int], page: int, seed: int, **more: Any
) -> Any:
    """Random codes with a NaN in about one vector of a hundred; every second seed keeps to numbers that do not overflow
    fp16, and few weights are random bits, so that not all is inf or NaN."""
    rng = np.random.default_rng(seed)

    def draw(*size: int) -> Any:
        largest = 0x7F if seed % 2 else 0x58
        found = rng.integers(0, largest, size, dtype=np.uint8) | rng.integers(0, 2, size, dtype=np.uint8) << 7
        found[rng.random(size[:-1]) < 0.01, 0] = 0xFF
        return found

    batch, next_n, heads, dim = shape
    weights = rng.integers(0, 2**32, (batch * next_n, heads), dtype=np.uint32).view(np.float32)
    weights = np.where(rng.random(weights.shape) < 0.98, rng.standard_normal(weights.shape), weights)
    scales = [rng.uniform(-1, 1, n).astype(np.float32) for n in lengths]
    return make(
        draw(*shape),
        [draw(n, dim) for n in lengths],
        scales=scales,
        weights=weights,
        page=page,
        seed=seed,
        **more,
    )


SHAPES = [
    # sizes B, next_n, H, D; lengths; page
    ((2, 1, 8, 32), [300, 31], 32),
    ((1, 3, 8, 64), [129], 64),
    ((3, 2, 12, 32), [1, 0, 70], 64),
    ((1, 1, 8, 128), [260], 128),
    ((1, 1, 64, 32), [257], 64),
    ((2, 4, 32, 32), [3, 200], 128),
    ((1, 1, 8, 32), [2100], 128),
    ((1, 2, 8, 32), [1025], 32),
]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("shape", "lengths", "page"), SHAPES)
def test_twins_agree(
    shape: tuple[int, int, int, int],
    lengths: list[int],
    page: int,
    machine: str,
    make: Any,
    record_property: Any,
) -> None:
    """Sampled places, the borders of tokens in work at once (1024), pages and rows among them; NaN bits included."""
    problem = random_problem(make, shape, lengths, page, seed=sum(lengths), max_context_len=max(lengths) + 3)
    rng = np.random.default_rng(page)
    compared = 0
    for name, generation in product(FLOWS, GENERATIONS):
        flow = Flow.parse(name)
        found, mask = reference_logits(problem, flow, machine, generation=generation)
        rows = rng.integers(0, problem.rows, 4)
        borders = np.clip([0, page - 1, page, 1023, 1024, max(lengths) - 1], 0, problem.max_context_len - 1)
        columns = [*rng.choice(borders, 2), *rng.integers(0, problem.max_context_len, 2)]
        for row, column in zip(rows.tolist(), columns, strict=True):
            twin = scalar_logit(problem, flow, machine, row, int(column), generation)
            assert twin == found[row, column], (name, generation, row, column)
            compared += bool(mask[row, column])
    assert compared > 15
    record_property("tried", compared)


@given(seed=st.integers(0, 2**32 - 1), page=st.sampled_from([32, 64, 128]))
@settings(deadline=None, max_examples=20)
def test_pages_schedule_and_spare_room_change_nothing(seed: int, page: int, make: Any) -> None:
    shape, lengths = (2, 2, 8, 32), [200, 77]
    plain = random_problem(make, shape, lengths, 32, seed)
    for_other = {"spare": 5, "schedule": build(lengths, 3, "reversed"), "max_context_len": 333}
    rng = np.random.default_rng(seed)
    keys, scales = [], []
    for b, n in enumerate(lengths):  # the same tokens, taken from the pages of the plain problem
        at = [(plain.block_table[b, p // 32], p % 32) for p in range(n)]
        keys.append(np.array([plain.key_codes[i, j] for i, j in at]))
        scales.append(np.array([plain.scale_bits[i, j] for i, j in at], np.uint32).view(np.float32))
    other = make(
        plain.q,
        keys,
        scales=scales,
        weights=plain.weights,
        page=page,
        seed=int(rng.integers(2**32)),
        **for_other,
    )
    assert other.kv_fused.shape != plain.kv_fused.shape
    ours, ours_mask = reference_logits(plain, FLOW)
    theirs, theirs_mask = reference_logits(other, FLOW)
    assert np.array_equal(ours, theirs[:, :200])
    assert np.array_equal(ours_mask, theirs_mask[:, :200])
    assert not theirs[:, 200:].any()


def test_inputs_are_left_alone(make: Any) -> None:
    problem = random_problem(make, (2, 1, 8, 32), [70, 5], 32, 1)
    name = problem.case_id
    reference_logits(problem, FLOW)
    del problem.__dict__["case_id"]
    assert problem.case_id == name


def test_every_flow_is_supported() -> None:
    assert set(SUPPORTED_FLOWS) == set(FLOWS)


def test_bad_requests(make: Any) -> None:
    problem = random_problem(make, (1, 2, 8, 32), [5], 32, 1)
    with pytest.raises(InputError) as caught:
        reference_logits(problem, FLOW, "sm101", generation="half")  # type: ignore[arg-type]
    assert [(fault.argument, fault.value) for fault in caught.value.faults] == [
        ("machine", "'sm101'"),
        ("generation", "'half'"),
    ]
    for row, column, names in ((2, 0, ["row"]), (0, 5, ["col"]), (-1, -1, ["row", "col"])):
        with pytest.raises(InputError) as caught:
            scalar_logit(problem, FLOW, "sm100", row, column)
        assert [fault.argument for fault in caught.value.faults] == names
