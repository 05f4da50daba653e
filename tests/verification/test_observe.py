"""Watching one CTA: the timeline adds up, a hang shows where every warp stands, and what a thread computed is what it
stored."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from mqa_ref.emulator.timeline import Timeline
from mqa_ref.flow import Flow
from mqa_ref.kernel.targets import resolve
from mqa_ref.reference import reference_logits
from mqa_ref.verification.observe import watcher
from mqa_ref.verification.problems import NamedProblem, Recipe, make

SMALL = Recipe("small", "two rows on two CTAs", (300, 130), 2, data="bits")
MODULE = "mqa_ref.kernel.sm100:PagedMqaLogitsSm100"


@lru_cache(maxsize=1)
def small() -> NamedProblem:
    return make(SMALL)


def watched(
    ask: dict[str, Any], flow: str = "fp32-fp32-fp32", kernel: str = "builtin", **given: Any
) -> dict[str, Any]:
    with watcher(resolve(kernel)) as watch:
        return watch(small().problem, Flow.parse(flow), ask, **given)


@pytest.mark.parametrize("order", ["eager", "lazy", "random"])
def test_a_timeline_adds_up(order: str) -> None:
    told = watched({"what": "timeline", "cta": 1}, order=order, seed=5)
    assert (told["cta"], told["dropped"]) == (1, 0)
    spans = sorted((first, last) for _, first, last in told["runs"])
    assert spans[0][0] == 0
    assert all(before[1] == after[0] for before, after in pairwise(spans))
    assert spans[-1][1] == told["end"]
    executed: Counter[int] = Counter()
    for warp, first, last in told["runs"]:
        executed[warp] += last - first
    assert {one["warp"]: one["instructions"] for one in told["ends"]} == executed
    assert all(one["state"] == "ended" for one in told["ends"])
    for _, start, stop, what, line, source in told["waits"]:
        assert 0 < start <= stop <= told["end"]
        assert what
        assert line > 0
        assert re.fullmatch(r"\w+\.py:\d+", source)
    operations = Counter(kind for kind, *_ in told["operations"])
    # 300 and 130 tokens are two splits and one: CTA 1 has the last, two tiles of four products of K = 32 each.
    assert operations["product"] == 2 * 4
    assert operations["commit"] == 2
    assert operations["copy"] > 0
    assert all(issued <= completed for _, _, issued, completed, _ in told["operations"])
    assert all(issued == completed for _, _, issued, completed, _ in told["operations"]) == (order == "eager")


def test_a_hang_shows_where_every_warp_stands() -> None:
    def no_commit(text: str) -> str:
        changed, count = re.subn(r"^\s*tcgen05\.commit[^;]*;", "", text, count=1, flags=re.MULTILINE)
        assert count == 1
        return changed

    told = watched({"what": "timeline", "cta": 0}, edit_ptx=no_commit)
    stuck = [one for one in told["ends"] if one["state"] != "ended"]
    assert len(stuck) > 8
    for one in stuck:
        assert "mbarrier" in one["state"] or "barrier" in one["state"]
        assert one["ptx_line"] > 0
        assert re.fullmatch(r"\w+\.py:\d+", one["source"])
    assert {wait[0] for wait in told["waits"] if wait[2] is None} == {one["warp"] for one in stuck}


def test_events_past_the_limit_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqa_ref.emulator.timeline.MOST_EVENTS", 3)
    timeline = Timeline(0)
    for number in range(5):
        timeline._keep(timeline.arrivals, [number, 0, 0])
    assert (len(timeline.arrivals), timeline.dropped) == (3, 2)


@pytest.mark.parametrize("flow", ["fp32-fp32-fp32", "fp16-fp16-fp16", "fp32-fp16-bf16"])
def test_what_is_stored_is_what_was_computed(flow: str) -> None:
    """The graph of a thread ends in the bits that the reference gives, and holds every head once."""
    bits, _ = reference_logits(small().problem, Flow.parse(flow), "sm100")
    for cta, row, column in ((0, 0, 200), (1, 1, 129)):
        told = watched({"what": "logit", "cta": cta, "row": row, "column": column}, flow)
        nodes = told["nodes"]
        root = nodes[told["root"]]
        assert root["bits"] == int(bits[row, column])
        accumulators = [node for node in nodes if node["kind"] == "accumulator"]
        assert sorted(node["column"] for node in accumulators) == list(range(64))
        for node in accumulators:
            assert len(node["steps"]) == 4
            assert node["steps"][-1]["bits"] == node["bits"]
            assert [step["accumulates"] for step in node["steps"]] == [False, True, True, True]
            query = small().problem.q[row, 0, node["column"]]
            assert [code for step in node["steps"] for code in step["b"]] == query.tolist()
        assert all(before < number for number, node in enumerate(nodes) for before, _ in node["inputs"])
        weights = small().problem.weights[row]
        words = (weights if "fp16" not in flow else weights.astype(np.float16)).view(
            f"u{4 if 'fp16' not in flow else 2}"
        )
        products = [node for node in nodes if node["opcode"].startswith("fma")]
        assert sorted(node["inputs"][1][1] for node in products) == sorted(words.tolist())


def test_a_place_that_the_cta_does_not_store() -> None:
    assert watched({"what": "logit", "cta": 1, "row": 0, "column": 0}) == {"nodes": None, "root": None}


def test_a_kernel_in_a_process_of_its_own_is_watched_there() -> None:
    ask = {"what": "logit", "cta": 1, "row": 1, "column": 5}
    told = watched(ask, kernel=MODULE)
    bits, _ = reference_logits(small().problem, Flow.parse("fp32-fp32-fp32"), "sm100")
    assert told["nodes"][told["root"]]["bits"] == int(np.uint32(bits[1, 5]))
    assert told == watched(ask)
