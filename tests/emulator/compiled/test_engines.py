"""Whole programs in both engines: all that a launch reports must be the same, for sound and for broken kernels."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from mqa_ref.emulator.compiled import native
from mqa_ref.errors import InputError
from mqa_ref.flow import FLOWS, Flow
from mqa_ref.kernel.targets import resolve
from mqa_ref.launch import Launch
from mqa_ref.verification.launch import launch
from mqa_ref.verification.problems import NamedProblem, Recipe, make

pytestmark = pytest.mark.skipif(not native.available(), reason="the CPU lacks what machine code needs")

FLOW = Flow.parse(FLOWS[0])
# Two rows with an empty one between, two CTAs: every warp meets its ring more than once, one CTA starts within a row.
SMALL = Recipe("engines", "both engines", (400, 0, 300), 2, data="bits")
ORDERS = (("eager", 0), ("lazy", 0), ("random", 1), ("random", 2), ("systematic", 3), ("systematic", 17))


@lru_cache(maxsize=4)
def problem(recipe: Recipe) -> NamedProblem:
    return make(recipe)


@lru_cache(maxsize=4)
def ptx(flow: Flow) -> str:
    return resolve("builtin").compile(problem(SMALL).problem, flow).ptx


def both(
    edit: Callable[[str], str] | None = None, flow: Flow = FLOW, **arguments: Any
) -> tuple[Launch, Launch]:
    text = ptx(flow) if edit is None else edit(ptx(flow))
    one, other = (
        launch(
            *(resolve("builtin"), problem(SMALL).problem, flow),
            edit_ptx=lambda _: text,
            engine=engine,
            **arguments,
        )
        for engine in ("interpreter", "compiled")
    )
    return one, other


def same(one: Launch, other: Launch) -> None:
    assert np.array_equal(one.logits, other.logits)
    assert np.array_equal(one.written, other.written)
    assert one.writer is not None
    assert other.writer is not None
    assert np.array_equal(one.writer, other.writer)
    assert one.findings == other.findings
    assert (one.instructions, one.ctas) == (other.instructions, other.ctas)


@pytest.mark.parametrize(("order", "seed"), ORDERS)
def test_orders(order: str, seed: int) -> None:
    one, other = both(order=order, seed=seed)
    same(one, other)
    assert one.written.any()
    assert not any(finding.severity == "error" for finding in one.findings)


@pytest.mark.parametrize("flow", ["fp32-fp32-bf16", "fp32-fp16-fp16", "fp16-fp16-fp32"])
def test_flows(flow: str) -> None:
    same(*both(flow=Flow.parse(flow)))


def without(pattern: str, number: int) -> Callable[[str], str]:
    """Leave one instruction out."""

    def edit(text: str) -> str:
        found = list(re.finditer(rf"^[ \t]*(?:@!?%p\d+ )?{pattern}[^;]*;", text, re.MULTILINE))
        start, end = found[number].span()
        return text[:start] + text[end:]

    return edit


BROKEN = {
    "no arrival": (without(r"mbarrier\.arrive\.expect_tx", 0), "hang"),
    "no wait for tensor memory": (without(r"tcgen05\.wait::ld", 0), "tmem_load_not_waited"),
    "a register that nobody writes": (without(r"and\.b32", 0), "uninitialised_register"),
    "no barrier of the CTA": (without(r"bar\.sync", 0), ""),
    "no initialisation": (without(r"mbarrier\.init", 1), "mbarrier_misuse"),
    "no fence": (without(r"fence\.mbarrier_init", 0), "mbarrier_misuse"),
    "no free": (without(r"tcgen05\.dealloc", 0), "tmem_leak"),
    "no guard of the store": (without(r"bra\s+\$L__BB0_15", 0), ""),
}


@pytest.mark.parametrize(
    ("name", "order"), list(zip(BROKEN, itertools.cycle(["eager", "random"]), strict=False))
)
def test_broken(name: str, order: str) -> None:
    edit, kind = BROKEN[name]
    one, other = both(edit, order=order, seed=5)
    same(one, other)
    assert one.findings or not kind
    assert not kind or kind in {finding.kind for finding in one.findings}


def test_a_difference_would_be_seen() -> None:
    """The comparison can fail: the sound kernel is not the one that scales twice as much."""
    one, _ = both()
    _, other = both(lambda text: re.sub(r"\b1056964608\b|0f3F000000", "0f3F800000", text, count=1))
    with pytest.raises(AssertionError):
        same(one, other)


def test_without_the_sanitizer() -> None:
    """The same bits and counts; a race is no longer seen, a hang still is."""
    sound, _ = both()
    off = launch(resolve("builtin"), problem(SMALL).problem, FLOW, sanitize=False)
    same(sound, off)
    for one in both(without(r"mbarrier\.arrive\.expect_tx", 0), sanitize=False):
        assert "hang" in {finding.kind for finding in one.findings}
    pattern = r"mbarrier\.try_wait[^;]*;"
    unwaited = lambda text: re.sub(pattern, "setp.eq.u32 P1, 0, 0;", text, count=1)  # noqa: E731
    racing, _ = both(unwaited, order="lazy")
    assert {"race_shared", "uninitialised_shared"} & {finding.kind for finding in racing.findings}
    calm, also = both(unwaited, order="lazy", sanitize=False)
    same(calm, also)
    assert not {"race_shared", "uninitialised_shared"} & {finding.kind for finding in calm.findings}


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(InputError, match="engine"):
        launch(resolve("builtin"), problem(SMALL).problem, FLOW, engine="fast")


def test_random_data_of_every_width() -> None:
    """Products that are cut and products that are not, in one launch."""
    wide = replace(SMALL, name="engines-wide", data="wide")
    made = [
        launch(resolve("builtin"), make(wide).problem, FLOW, engine=engine)
        for engine in ("interpreter", "compiled")
    ]
    same(*made)
