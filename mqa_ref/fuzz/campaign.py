"""What a campaign is asked to do, and what came of it: plain data that any process can be sent and send back.

A campaign is a row of blocks. What a block draws follows from the campaign's seed and the block's number alone, so that
it does not matter who runs it, when, or how many run beside it; results are merged by the numbers of their blocks.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mqa_ref.emulator.policy import ORDERS
from mqa_ref.errors import Fault, InputError, Unsupported
from mqa_ref.flow import FLOWS
from mqa_ref.fuzz.bugs import BUGS
from mqa_ref.fuzz.model import NAME
from mqa_ref.fuzz.properties import PROPERTIES
from mqa_ref.fuzz.shapes import HEADS
from mqa_ref.kernel.serves import ANYTHING
from mqa_ref.kernel.targets import Declared, resolve
from mqa_ref.problem_rules import PAGES
from mqa_ref.verification.request import check_request

PROCESS_DIED = "error:process_died"
"""The class of an example that ended the process it ran in."""
BLOCK = 16
"""Examples of one block."""
WITH_OPTIONS = ("builtin", "sglang")
"""Kernels whose options are known; others are run without any."""


@dataclass(frozen=True)
class Campaign:
    """The request, checked. ``flows``: those that are drawn. ``options``: whether the kernel's options are drawn.
    ``checks``: the properties that are drawn. ``pages``, ``heads`` (with next_n): the shapes that are drawn.
    ``own_schedule``: the kernel computes its schedule, whatever one is drawn. ``known``: a ledger of known findings as
    JSON, "" for none. ``seconds``, ``memory_bytes``: limits of a kernel in a process of its own. ``bug``: a name of
    ``fuzz.bugs``, which is put into the kernel, "" for none."""

    kernel: str = "builtin"
    backend: str = "emulator"
    flows: tuple[str, ...] = FLOWS
    machine: str = "sm100"
    generation: str = "folded"
    seed: int = 0
    options: bool = True
    orders: tuple[str, ...] = ORDERS
    checks: tuple[str, ...] = tuple(PROPERTIES)
    pages: tuple[int, ...] = PAGES
    heads: tuple[tuple[int, int], ...] = HEADS
    own_schedule: bool = False
    known: str = ""
    seconds: float = 300.0
    memory_bytes: int = 8 << 30
    bug: str = ""

    @property
    def flow_name(self) -> str:
        """The flow's name, or "all"."""
        return self.flows[0] if len(self.flows) == 1 else "all"


@dataclass(frozen=True)
class Found:
    """One failure of one example. ``name``: its class. ``block``, ``number``: the example; a block of -1 is a case that
    the database held. ``description``: of the launch, as plain values, empty for a saved case. ``case``: the bytes of
    its case file, ``file`` its name; empty for a failure that has none."""

    name: str
    message: str
    block: int
    number: int
    description: Mapping[str, Any] = field(default_factory=dict)
    case: bytes = field(default=b"", repr=False)
    file: str = ""

    @property
    def place(self) -> tuple[int, int]:
        """What findings are ordered by."""
        return self.block, self.number


@dataclass(frozen=True)
class BlockResult:
    """What came of a block. ``examples``: a digest of each example that ran, in order, with its number before it.
    ``coverage``: launches that met each coverpoint. ``properties``: how often each was judged. ``skipped``: examples
    that were not run for want of time."""

    block: int
    examples: tuple[str, ...] = ()
    unsupported: int = 0
    skipped: int = 0
    launches: int = 0
    logits: int = 0
    coverage: Mapping[str, int] = field(default_factory=dict)
    properties: Mapping[str, int] = field(default_factory=dict)
    failures: tuple[Found, ...] = ()
    ratio: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class Totals:
    """The results of many blocks, each counted once. ``digest``: SHA-256 over all examples in their order, 16 hex
    digits. ``failures``: the first example of each class, ordered by place; ``counts``: examples of each class."""

    blocks: int
    examples: int
    unsupported: int
    launches: int
    logits: int
    coverage: Mapping[str, int]
    properties: Mapping[str, int]
    failures: tuple[Found, ...]
    counts: Mapping[str, int]
    ratio: float
    digest: str


def merge(results: Iterable[BlockResult]) -> Totals:
    """The totals, whatever the order of the results. Raises ValueError for a block that comes twice."""
    ordered = sorted(results, key=lambda one: one.block)
    twice = [number for number, count in Counter(one.block for one in ordered).items() if count > 1]
    if twice:
        raise ValueError(f"blocks that came more than once: {twice}")
    coverage: Counter[str] = Counter()
    properties: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    first: dict[str, Found] = {}
    digest = hashlib.sha256()
    for one in ordered:
        coverage.update(one.coverage)
        properties.update(one.properties)
        digest.update("".join(f"{one.block}/{example}\n" for example in one.examples).encode())
        for found in one.failures:
            counts[found.name] += 1
            first.setdefault(found.name, found)
    return Totals(
        blocks=len(ordered),
        examples=sum(len(one.examples) for one in ordered),
        unsupported=sum(one.unsupported for one in ordered),
        launches=sum(one.launches for one in ordered),
        logits=sum(one.logits for one in ordered),
        coverage=dict(coverage),
        properties=dict(properties),
        failures=tuple(sorted(first.values(), key=lambda found: (found.place, found.name))),
        counts=dict(counts),
        ratio=max((one.ratio for one in ordered), default=0.0),
        digest=digest.hexdigest()[:16],
    )


def blocks_of(examples: int, shard: tuple[int, int] = (1, 1)) -> list[tuple[int, int]]:
    """The blocks of a shard ``(i, n)`` of a campaign of ``examples``: (number, examples to run in it)."""
    whole, rest = divmod(examples, BLOCK)
    sizes = [BLOCK] * whole + ([rest] if rest else [])
    return [(number, size) for number, size in enumerate(sizes) if number % shard[1] == shard[0] - 1]


def declared_by(kernel: str) -> Declared:
    """What is known of a kernel's arithmetic; the model of one that launches the reference keeps the contract's."""
    return Declared() if kernel == NAME else resolve(kernel).declared


def check_campaign(
    *,
    kernel: str = "builtin",
    on: str = "emulator",
    flow: str = "all",
    machine: str | None = None,
    generation: str | None = None,
    orders: Sequence[str] | None = None,
    seed: int = 0,
    checks: Sequence[str] | None = None,
    known: str = "",
    seconds: float = 300.0,
    memory_bytes: int = 8 << 30,
    bug: str = "",
) -> Campaign:
    """The campaign, or InputError with every fault, or Unsupported for what is well formed but not served. ``machine``
    and ``generation`` are those that the kernel declares if not given."""
    faults: list[Fault] = []
    try:
        check_request(
            kernel=kernel,
            on=on,
            flow=flow,
            problems=[],
            level="quick",
            machine=machine,
            generation=generation,
            edit_ptx=None,
            orders=orders,
            seed=seed,
        )
    except InputError as error:
        faults += error.faults
    for name in checks or ():
        if name not in PROPERTIES:
            faults.append(Fault("check", repr(name), "one of " + ", ".join(PROPERTIES)))
    if bug and bug not in BUGS:
        faults.append(Fault("bug", repr(bug), "one of " + ", ".join(BUGS)))
    elif bug and BUGS[bug].source and kernel != "builtin":
        faults.append(Fault("bug", repr(bug), "kernel 'builtin', whose source it is in"))
    if faults:
        raise InputError(faults)
    if on != "emulator" and orders:
        raise Unsupported(f"on={on!r} has no interleavings to choose")
    chosen = tuple(PROPERTIES) if checks is None else tuple(checks)
    declared = declared_by(kernel)
    with_options = kernel in WITH_OPTIONS
    serves = ANYTHING if kernel == NAME else resolve(kernel).serves
    left_out = {
        "options": not with_options,
        "interleaving": on != "emulator",
        **dict.fromkeys(("stale_schedule", "schedule"), serves.own_schedule),
    }
    chosen = tuple(name for name in chosen if not left_out.get(name))
    return Campaign(
        kernel=kernel,
        backend=on,
        flows=tuple(name for name in FLOWS if serves.takes_flow(name)) if flow == "all" else (flow,),
        machine=machine or declared.machine,
        generation=(BUGS[bug].generation if bug else "") or generation or declared.generation,
        seed=seed,
        options=with_options,
        orders=tuple(orders) if orders else (ORDERS if on == "emulator" else ORDERS[:1]),
        checks=chosen,
        pages=tuple(page for page in PAGES if serves.takes(page=page)),
        heads=tuple(pair for pair in HEADS if serves.takes(heads=pair[0], next_n=pair[1])),
        own_schedule=serves.own_schedule,
        known=known,
        seconds=seconds,
        memory_bytes=memory_bytes,
        bug=bug,
    )
