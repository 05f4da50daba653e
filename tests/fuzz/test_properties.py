"""Every property passes on a launcher that answers from the reference, and fails on one that breaks it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest

from mqa_ref.errors import InputError, KernelTimeout, NotAvailable, Unsupported
from mqa_ref.findings import Finding
from mqa_ref.flow import FLOWS
from mqa_ref.fuzz import always
from mqa_ref.fuzz.description import Description, Override
from mqa_ref.fuzz.model import reference_launch
from mqa_ref.fuzz.properties import PROPERTIES, Outcome, examine
from mqa_ref.fuzz.session import subject_of
from mqa_ref.fuzz.shapes import Shape
from mqa_ref.fuzz.trial import Trial
from mqa_ref.launch import Launch
from mqa_ref.problem import Problem
from mqa_ref.reference import own_order_bounds
from mqa_ref.schedule import build

BASE = Description(
    lengths=(257, 0, 65),
    shape=Shape(num_sms=3, heads=16, next_n=2),
    data="bits",
    order="shuffled",
    rest="garbage",
    columns=300,
)
Breaks = Callable[[Problem, Launch, Mapping[str, Any]], Launch]


def judge(launch: Any, check: str = "", description: Description = BASE, **named: Any) -> Outcome:
    return examine(Trial(launch, subject_of(description), **named), check, "label/3")


@pytest.mark.parametrize("flow", FLOWS)
@pytest.mark.parametrize("check", PROPERTIES)
def test_the_reference_keeps_every_property(check: str, flow: str) -> None:
    data = ("bits", "amax", "counting")[FLOWS.index(flow) % 3]
    outcome = judge(reference_launch, check, replace(BASE, shape=replace(BASE.shape, flow=flow), data=data))
    assert outcome.failures == ()
    assert outcome.checked == check


def lowest_bit(problem: Problem, told: Launch, spoil: bool) -> Launch:
    """One bit of every valid logit, if ``spoil``."""
    if not spoil:
        return told
    logits = told.logits.copy()
    logits[:, : problem.max_context_len][problem.valid_mask()] ^= 1
    return replace(told, logits=logits)


def depends_on(fact: Callable[[Problem, Mapping[str, Any]], Any]) -> Any:
    """A launcher that is right for the first launch and wrong for one in which ``fact`` differs from it."""
    first: list[Any] = []

    def launch(problem: Problem, flow: Any, **how: Any) -> Launch:
        told = fact(problem, how)
        first.append(told)
        return lowest_bit(problem, reference_launch(problem, flow, **how), told != first[0])

    return launch


turn = count()
MUTANTS: dict[str, Callable[[Problem, Mapping[str, Any]], Any]] = {
    "rerun": lambda problem, how: next(turn),
    "interleaving": lambda problem, how: (how["order"], how["seed"]),
    "page_permutation": lambda problem, how: problem.block_table[0, 0],
    "schedule": lambda problem, how: problem.schedule.tolist(),
    "batch_order": lambda problem, how: problem.context_lens.tolist(),
    "batch_part": lambda problem, how: problem.batch,
    "unread_places": lambda problem, how: problem.block_table[1, 0],
    "scaled_scales": lambda problem, how: problem.scale_bits.tobytes(),
    "scaled_weights": lambda problem, how: problem.weights.tobytes(),
    "cta_count": lambda problem, how: problem.num_sms,
    "options": lambda problem, how: how["options"],
}


@pytest.mark.parametrize("check", MUTANTS)
def test_a_dependence_that_must_not_be(check: str) -> None:
    outcome = judge(depends_on(MUTANTS[check]), check)
    assert outcome.names == {f"{check}:value"}


def test_a_head_without_weight_that_counts() -> None:
    """The two launches of this property differ in the queries alone; the first one must be right."""

    def launch(problem: Problem, flow: Any, **how: Any) -> Launch:
        spoil = bool((problem.weights == 0).all(axis=0).any() and problem.q.sum(dtype=np.int64) % 2)
        return lowest_bit(problem, reference_launch(problem, flow, **how), spoil)

    names = [
        examine(Trial(launch, subject_of(BASE)), "weightless_head", f"label/{n}").names for n in range(8)
    ]
    assert {"weightless_head:value"} in names


@pytest.mark.parametrize("kind", ["hang", "runaway", "global_out_of_bounds"])
def test_a_stale_schedule_that_does_not_end(kind: str) -> None:
    def launch(problem: Problem, flow: Any, **how: Any) -> Launch:
        findings = (Finding(kind, "error", "x"),) if problem.schedule_faults else ()
        return replace(reference_launch(problem, flow, **how), findings=findings)

    one = replace(BASE, lengths=(257,), cuts=())
    names = {name for n in range(8) for name in _names(launch, one, n)}
    assert names == {f"stale_schedule:{kind}"}


def _names(launch: Any, description: Description, number: int) -> frozenset[str]:
    return examine(Trial(launch, subject_of(description)), "stale_schedule", f"label/{number}").names


def test_unwritten_and_stray_elements(spoiled: Any) -> None:
    def unwritten(problem: Problem, logits: np.ndarray, written: np.ndarray) -> None:
        written[0, 5] = False

    def tail(problem: Problem, logits: np.ndarray, written: np.ndarray) -> None:
        written[0, 300] = False

    def stray(problem: Problem, logits: np.ndarray, written: np.ndarray) -> None:
        written[0, 512] = True

    assert judge(spoiled(unwritten)).names == {"bits:unwritten", "written:missing"}
    assert judge(spoiled(tail)).names == {"written:missing"}
    assert judge(spoiled(stray)).names == {"written:stray", "finding:unasked_columns"}
    assert judge(spoiled(stray), kernel="sglang").names == {"written:stray"}


def test_a_wrong_bit_and_a_finding(spoiled: Any) -> None:
    def bit(problem: Problem, logits: np.ndarray, written: np.ndarray) -> None:
        logits[1, 3] ^= 1

    def launch(problem: Problem, flow: Any, **how: Any) -> Launch:
        found = Finding("race_shared", "error", "x", ptx_text="st.shared.b32 [x], y;")
        return replace(reference_launch(problem, flow, **how), findings=(found,))

    assert judge(spoiled(bit)).names == {"bits:value"}
    assert judge(launch).names == {"finding:race_shared@st.shared.b32"}


def test_an_input_that_is_written() -> None:
    def launch(problem: Problem, flow: Any, **how: Any) -> Launch:
        told = reference_launch(problem, flow, **how)
        problem.q.flags.writeable = True
        problem.q[0, 0, 0, 0] ^= 1
        return told

    assert "inputs:changed" in judge(launch).names


def test_a_bound_that_is_exceeded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds a thousand times too small: an error of more than that is an error of the oracle."""
    real = own_order_bounds

    def tight(*given: Any, **named: Any) -> Any:
        told = real(*given, **named)
        return replace(told, bound=told.bound / 1000)

    assert judge(reference_launch).ratio <= 1
    monkeypatch.setattr(always, "own_order_bounds", tight)
    assert judge(reference_launch).names == {"bound:exceeded"}


def test_exceptions_have_their_places() -> None:
    def raising(error: Exception) -> Any:
        def launch(*given: Any, **named: Any) -> Launch:
            raise error

        return launch

    assert judge(raising(KernelTimeout("slow"))).names == {"error:KernelTimeout"}
    assert judge(raising(Unsupported("not this"))).unsupported == "not this"
    with pytest.raises(NotAvailable):
        judge(raising(NotAvailable("no device")))
    with pytest.raises(InputError, match="one of rerun"):
        judge(reference_launch, "no such property")


def test_schedules_partition() -> None:
    labels = [f"label/{number}" for number in range(30)]
    assert {len(always.drawn_lengths(label)) for label in labels} >= {1, 32, 8192}
    assert all(always.schedules_partition(label) == [] for label in labels[:12])

    def late(lengths: Any, ctas: int, form: Any) -> np.ndarray:
        made = build(lengths, ctas, form)
        made[1:-1, 1] += 1
        return made

    def short(lengths: Any, ctas: int, form: Any) -> np.ndarray:
        made = build(lengths, ctas, form)
        made[-1] = made[-2]
        return made

    for broken in (late, short):
        assert any(always.schedules_partition(label, broken) for label in labels)


def test_an_override_is_seen_in_a_used_place() -> None:
    description = Description(lengths=(5,), overrides=(Override("key", "nan", which=3, element=7),))
    problem = subject_of(description).problem
    page = problem.block_table[0, 0]
    assert np.argwhere((problem.key_codes & 0x7F) == 0x7F).tolist() == [[page, 3, 7]]
