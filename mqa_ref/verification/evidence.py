"""Gathers what a report shows beside its numbers, while a run goes on: maps, distances, timelines, explanations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.compare.bits import ulp_distance
from mqa_ref.compare.classes import KINDS, classify, code
from mqa_ref.compare.place import owners
from mqa_ref.compare.tolerances import factor
from mqa_ref.errors import MqaRefError
from mqa_ref.flow import Flow
from mqa_ref.launch import Launch
from mqa_ref.numerics import FORMATS
from mqa_ref.problem import Problem
from mqa_ref.reference import any_order_bounds, own_order_bounds
from mqa_ref.report.evidence import CaseEvidence, Evidence, FlowEvidence, Histogram, Matrix
from mqa_ref.report.model import CaseResult
from mqa_ref.schedule import SPLIT_TOKENS
from mqa_ref.verification.interleavings import Step
from mqa_ref.verification.observe import Watcher, watcher
from mqa_ref.verification.request import Request
from mqa_ref.verification.worker import Limits

MOST_CASES = 6
"""Failing cases that get pictures."""
MOST_LOGITS = 2_000_000
"""Logits of a problem up to which its bound ratios are computed."""
_ULP_EDGES = (0, 1, 2, 4, 8, 16, 256, 65536, 1 << 20)
_RATIO_EDGES = (0.0, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
_RATIOS = (
    *("0, the true logit", "up to 1/16", "1/16 to 1/8", "1/8 to 1/4", "1/4 to 1/2", "1/2 to 1"),
    *("above 1", "without a bound"),
)

Place = tuple[int, int]
Explainer = Callable[[Watcher, "Seen", Place, int], Mapping[str, Any]]
"""What explains the logit at (row, column) of a case, which the CTA of the last argument stored."""


@dataclass(frozen=True)
class Seen:
    """One case just after it ran. ``expected`` and ``valid``: the reference, [rows, columns]."""

    result: CaseResult
    step: Step
    request: Request
    launch: Launch
    expected: NDArray[np.unsignedinteger]
    valid: NDArray[np.bool_]

    @property
    def problem(self) -> Problem:
        """The problem with the schedule that the kernel was given."""
        return self.request.own.target.scheduled(self.step.problem.problem)

    @property
    def flow(self) -> Flow:
        """The flow of the case."""
        return self.request.flow_of(self.step.problem)

    @property
    def bounds_of(self) -> dict[str, Any]:
        """Further arguments of the bounds' functions."""
        own = self.request.own
        return {"machine": self.request.machine or own.declared.machine, "generation": own.generation}


class Collector(AbstractContextManager["Collector"]):
    """Called with every case of a run. ``explain``: makes the explanation of a wrong logit, None for none."""

    def __init__(self, explain: Explainer | None = None, limits: Limits | None = None) -> None:
        self.explain, self.limits = explain, limits
        self.cases: list[CaseEvidence] = []
        self.flows: dict[str, FlowEvidence] = {}
        self.left_out = 0
        self._stack = ExitStack()
        self._watcher: Watcher | None = None
        self._explained: set[tuple[str, ...]] = set()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def __call__(self, seen: Seen) -> None:
        """Take in one case; one that fails is run once more for its timeline, and watched."""
        flow, problem = seen.flow, seen.problem
        kinds = classes(seen, flow)
        self._count(seen, flow, kinds)
        if seen.result.status != "fail":
            return
        if len(self.cases) >= MOST_CASES:
            self.left_out += 1
            return
        matrix = Matrix(
            kinds, seen.valid.sum(axis=1).astype(np.int64), owners(problem), problem.page, problem.next_n
        )
        wrong = np.argwhere(kinds >= 0)
        title = f"Distance from the reference in ULP, {seen.result.name}, {flow}"
        place = (int(wrong[0, 0]), int(wrong[0, 1])) if wrong.size else None
        self.cases.append(
            CaseEvidence(
                *(seen.result.name, seen.result.order, seen.result.seed, str(flow)),
                schedule=problem.schedule,
                lengths=problem.context_lens,
                matrix=matrix if wrong.size else None,
                ulp=replace(ulp_histogram(seen, flow, kinds), title=title) if wrong.size else None,
                timeline=self._timeline(seen, place),
                explanation=self._explanation(seen, place),
            )
        )

    def evidence(self, hashes: Mapping[str, str]) -> Evidence:
        """All that was gathered."""
        return Evidence(tuple(self.cases), tuple(self.flows.values()), self.left_out, hashes)

    def _count(self, seen: Seen, flow: Flow, kinds: NDArray[np.int8]) -> None:
        ulp = ulp_histogram(seen, flow, kinds)
        ratio = ratio_histogram(seen, flow)
        logits = int(seen.valid.sum())
        old = self.flows.get(str(flow))
        if old is not None:
            ulp, ratio, logits = old.ulp + ulp, old.ratio + ratio, old.logits + logits
        self.flows[str(flow)] = FlowEvidence(str(flow), logits, ulp, ratio)

    def _watch(self, seen: Seen) -> Watcher:
        if self._watcher is None:
            self._watcher = self._stack.enter_context(watcher(seen.request.own.target, self.limits))
        return self._watcher

    def _timeline(self, seen: Seen, place: Place | None) -> Mapping[str, Any] | None:
        """The timeline of the faulty CTA: that of the first finding, else that of the first wrong element."""
        cta = next((finding.cta for finding in seen.result.errors if finding.cta is not None), None)
        if cta is None and place is not None:
            cta = _writer(seen, place)
        if cta is None or cta < 0 or seen.request.backend != "emulator":
            return None
        step, own = seen.step, seen.request.own
        # The report is about the run that failed; what cannot be watched again is left out of it.
        with suppress(MqaRefError):
            return self._watch(seen)(
                *(seen.problem, seen.flow, {"what": "timeline", "cta": cta}),
                edit_ptx=own.edit_ptx,
                order=step.order,
                seed=step.seed,
                options=own.options_for(step.problem),
            )
        return None

    def _explanation(self, seen: Seen, place: Place | None) -> Mapping[str, Any] | None:
        """How the first wrong element came about; once for each cause."""
        compared = seen.result.comparison
        if place is None or compared is None or self.explain is None or seen.request.backend != "emulator":
            return None
        cause = compared.suspects or tuple(kind for kind, count in compared.counts.items() if count)
        if cause in self._explained or seen.request.own.declared.order is None:
            return None
        self._explained.add(cause)
        with suppress(MqaRefError):
            return self.explain(self._watch(seen), seen, place, _writer(seen, place))
        return None


def _writer(seen: Seen, place: Place) -> int:
    """The CTA that stored an element, or the one that should have."""
    stored = -1 if seen.launch.writer is None else int(seen.launch.writer[place])
    if stored >= 0:
        return stored
    return int(owners(seen.problem)[place[0] // seen.problem.next_n, place[1] // SPLIT_TOKENS])


def classes(seen: Seen, flow: Flow) -> NDArray[np.int8]:
    """The class of every valid element, -1 where right and where not valid: int8 [rows, columns].

    Of a kernel that is held to a bound, an element is wrong when it is past it ("value") or not written.
    """
    width = seen.valid.shape[1]
    got, written = seen.launch.logits[:, :width], seen.launch.written[:, :width]
    if seen.request.own.declared.order is None:
        bounds = any_order_bounds(seen.problem, flow, scaled="parts", **seen.bounds_of)
        past = bounds.ratios(got, flow.out) > factor(flow, "foreign_order")
        kinds = np.where(past, np.int8(code("value")), np.int8(-1))
        kinds = np.where(written, kinds, np.int8(code("unwritten")))
    else:
        kinds = classify(got, seen.expected, written, FORMATS[flow.out])
    return np.where(seen.valid, kinds, np.int8(-1)).astype(np.int8)


def ulp_histogram(seen: Seen, flow: Flow, kinds: NDArray[np.int8]) -> Histogram:
    """Distances of the valid elements; a class of difference without a distance is a range of its own."""
    fmt = FORMATS[flow.out]
    got = seen.launch.logits[:, : seen.valid.shape[1]]
    finite = (kinds == code("value")) | (kinds == code("zero_sign"))
    distances = ulp_distance(seen.expected[finite], got[finite], fmt)
    labels, counts = ["0, the same bits"], [int(np.count_nonzero(seen.valid & (kinds < 0)))]
    for low, high in zip(_ULP_EDGES, (*_ULP_EDGES[1:], None), strict=True):
        inside = (distances > low) & (distances <= high if high is not None else True)
        labels.append(_range(low, high))
        counts.append(int(np.count_nonzero(inside)))
    labels.append("0 ULP, other bits (signs of zero)")
    counts.append(int(np.count_nonzero(distances == 0)))
    for kind in KINDS:
        if kind not in ("value", "zero_sign"):
            labels.append(kind)
            counts.append(int(np.count_nonzero(kinds == code(kind))))
    return Histogram(f"Distance from the reference in ULP, {flow}", tuple(labels), tuple(counts))


def _range(low: int, high: int | None) -> str:
    if high is None:
        return f"above {low}"
    return f"{high}" if high == low + 1 else f"{low + 1} to {high}"


def ratio_histogram(seen: Seen, flow: Flow) -> Histogram:
    """Errors against the true logits, as shares of the bound for the flow's own order."""
    title = f"Error as a share of its bound, {flow}"
    if seen.valid.sum() > MOST_LOGITS:
        return Histogram(title, _RATIOS, (*(0 for _ in _RATIOS[:-1]), int(seen.valid.sum())))
    bounds = own_order_bounds(seen.problem, flow, **seen.bounds_of)
    got = seen.launch.logits[:, : seen.valid.shape[1]]
    free = bounds.special | bounds.may_overflow
    shares = bounds.ratios(got, flow.out)[seen.valid & ~free]
    counts = [int(np.count_nonzero(shares == 0))]
    counts += [
        int(np.count_nonzero((shares > low) & (shares <= high))) for low, high in pairwise(_RATIO_EDGES)
    ]
    counts += [int(np.count_nonzero(shares > 1)), int(np.count_nonzero(seen.valid & free))]
    return Histogram(title, _RATIOS, tuple(counts))
