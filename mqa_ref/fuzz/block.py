"""One block of a campaign: draw its examples, judge each, say what was found and what was reached."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import hypothesis
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from mqa_ref.errors import MqaRefError
from mqa_ref.fuzz.always import schedules_partition
from mqa_ref.fuzz.bugs import BUGS
from mqa_ref.fuzz.campaign import BLOCK, BlockResult, Campaign, Found, declared_by
from mqa_ref.fuzz.casefile import description_text
from mqa_ref.fuzz.description import Description
from mqa_ref.fuzz.drive import drive
from mqa_ref.fuzz.properties import PROPERTIES
from mqa_ref.fuzz.session import Session, ratio_of, subject_of
from mqa_ref.fuzz.shapes import palette, weighted
from mqa_ref.fuzz.strategies import descriptions
from mqa_ref.reference import SUM_ORDERS
from mqa_ref.schedule import build
from mqa_ref.verification.words import words

TARGETED = 4
"""One block in so many is steered toward great errors."""
SCHEDULES = 3
"""Schedules built and walked in each block."""

DETAILED = 1
"""After so many failures of a block only the classes of further ones are worked out."""

Keep = Callable[[Found], None]


def block_seed(campaign: Campaign, index: int) -> int:
    """The seed of what a block draws."""
    return int(words(f"block/{campaign.seed}/{index}", 1)[0] >> 1)


def examples_of(campaign: Campaign, index: int) -> SearchStrategy[Description]:
    """What a block draws from."""
    how: Any = {"options": campaign.options, "pages": campaign.pages, "heads": campaign.heads}
    shapes = weighted(palette(campaign.seed, index, campaign.flows, **how))
    cheap = [name for name in campaign.checks if not PROPERTIES[name].compiles]
    costly = [name for name in campaign.checks if PROPERTIES[name].compiles]
    # A compilation costs many launches: those properties come up a third as often. A property costs a launch or two,
    # and new inputs find more than the same ones again: half of the examples have none.
    tried = (*cheap * 3, *costly)
    return descriptions(
        shape=st.sampled_from(shapes),
        interleavings=campaign.orders,
        checks=(*("",) * max(1, len(tried)), *tried),
    )


def replay_block(
    campaign: Campaign, index: int, body: Callable[[Description], float | None], **how: Any
) -> None:
    """Call ``body`` with the examples of a block, which follow from the campaign and ``index`` alone, as long as it
    returns: None, or what ``ratio_of`` the launch is, if it has worked that out; ``how``: see ``drive``."""
    steered = index % TARGETED == TARGETED - 1

    def steer(description: Description) -> None:
        ratio = body(description)
        if steered:
            if ratio is None:
                ratio = ratio_of(subject_of(description), campaign)
            hypothesis.target(ratio, label="share of the error bound")

    drive(
        examples_of(campaign, index),
        steer,
        seed=block_seed(campaign, index),
        examples=BLOCK,
        target=steered,
        **how,
    )


def run_block(
    campaign: Campaign,
    index: int,
    *,
    size: int = BLOCK,
    seconds: float | None = None,
    stop: bool = False,
    session: Session | None = None,
    keep: Keep | None = None,
    fatal: Mapping[int, str] = MappingProxyType({}),
    before: Callable[[int], None] | None = None,
) -> BlockResult:
    """Run the first ``size`` examples of a block, as far as ``seconds`` allow, with ``stop`` to the first that fails.
    ``keep`` is called with each failure as soon as it is found, ``before`` with the number of each example. ``fatal``:
    examples that end a process, by number: they are told as failures, with these words, and not launched.

    A pure function of campaign and number but for the time: whoever runs it gets the same. Raises NotAvailable and
    OracleError, which end the campaign.
    """
    if session is None:
        with Session(campaign) as own:
            how: Any = {"size": size, "seconds": seconds, "stop": stop, "keep": keep, "fatal": fatal}
            return run_block(campaign, index, session=own, before=before, **how)
    begun = time.monotonic()
    examples: list[str] = []
    seen: dict[Description, float | None] = {}
    failures: list[Found] = []
    coverage: Counter[str] = Counter()
    properties: Counter[str] = Counter()
    count: Counter[str] = Counter()
    ratio = 0.0
    stopped: list[MqaRefError] = []

    def take(told: Iterable[Found]) -> None:
        for found in told:
            if keep is not None:
                keep(found)
            # One file for each class is enough to send around.
            seen_before = any(one.name == found.name for one in failures)
            failures.append(replace(found, case=b"") if seen_before else found)

    # The bound of a kernel that adds in the reference's order is that by which blocks are steered.
    alike = declared_by(campaign.kernel).order == SUM_ORDERS[0]

    def body(description: Description) -> float | None:
        nonlocal ratio
        if description in seen or stopped:
            return seen.get(description)
        number = len(seen)
        seen[description] = None
        if number >= size:
            return None
        late = seconds is not None and time.monotonic() - begun > seconds
        if late or (stop and failures):
            count["skipped"] += 1
            return None
        if number in fatal:
            examples.append(f"{number}:{digest_of(description)}")
            take(session.found(description, session.fatal(description, fatal[number]), index, number))
            return None
        if before is not None:
            before(number)
        try:
            judged = session.judge(description, brief=len(failures) >= DETAILED)
        except MqaRefError as error:
            stopped.append(error)
            return None
        outcome = judged.outcome
        examples.append(f"{number}:{digest_of(description)}")
        count.update(
            launches=judged.launches, logits=judged.logits, unsupported=int(bool(outcome.unsupported))
        )
        if outcome.unsupported:
            return None
        coverage.update(judged.covered)
        properties.update(("launch", *((outcome.checked,) if outcome.checked else ())))
        ratio = max(ratio, outcome.ratio)
        take(session.found(description, judged, index, number))
        seen[description] = outcome.ratio if alike and not outcome.failures else None
        return seen[description]

    builder = BUGS[campaign.bug].builder if campaign.bug else build
    for turn in range(SCHEDULES):
        label = f"schedules/{campaign.seed}/{index}/{turn}"
        properties["schedule_builder"] += 1
        for failure in schedules_partition(label, builder):
            failures.append(Found(failure.name, failure.message, index, BLOCK + turn))
    replay_block(campaign, index, body)
    if stopped:
        raise stopped[0]
    return BlockResult(
        block=index,
        examples=tuple(examples),
        unsupported=count["unsupported"],
        skipped=count["skipped"],
        launches=count["launches"],
        logits=count["logits"],
        coverage=dict(coverage),
        properties=dict(properties),
        failures=tuple(failures),
        ratio=ratio,
        seconds=time.monotonic() - begun,
    )


def digest_of(description: Description) -> str:
    """12 hex digits that stand for a description."""
    return hashlib.sha256(description_text(description.as_plain()).encode()).hexdigest()[:12]
