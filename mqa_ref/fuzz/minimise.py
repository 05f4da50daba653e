"""The smallest launch that fails in the same way.

A few plainer descriptions are tried first, since every one that still fails saves many launches. What is not small then
is shrunk by Hypothesis: the block is drawn again up to the example that failed, without launching anything, so that
Hypothesis holds its draws. At the end the plainer ones are tried again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from mqa_ref.errors import MqaRefError
from mqa_ref.fuzz.block import replay_block
from mqa_ref.fuzz.campaign import Campaign, Found
from mqa_ref.fuzz.description import Description
from mqa_ref.fuzz.session import Session
from mqa_ref.fuzz.shapes import Shape

EVALUATIONS = 120
SECONDS = 60.0
SHORTER = (1, 2, 65, 129, 257, 513, 2049)
SMALL = 2
"""Sequences and tiles of a launch that is small enough."""


class _StillFailsError(Exception):
    """The description that is looked at fails in the way that is minimised."""


@dataclass
class _Search:
    """Descriptions that were judged, and the smallest that fails as wanted."""

    session: Session
    name: str
    seconds: float
    most: int
    best: Description
    begun: float = field(default_factory=time.monotonic)
    known: dict[Description, bool] = field(default_factory=dict)

    def fails(self, description: Description) -> bool:
        """Whether a description fails as wanted; False for what is new once the budget is used up."""
        if description not in self.known:
            if len(self.known) >= self.most or time.monotonic() - self.begun > self.seconds:
                return False
            try:
                names = self.session.judge(description, brief=self.name.startswith("bits:")).outcome.names
            except MqaRefError:
                names = frozenset()
            self.known[description] = self.name in names
        if self.known[description] and size(description) < size(self.best):
            self.best = description
        return self.known[description]


@dataclass(frozen=True)
class Minimal:
    """``found``: the failure at its smallest; ``also``: the classes of all failures of that launch; ``evaluations``,
    ``seconds``: what it took."""

    found: Found
    also: frozenset[str]
    evaluations: int
    seconds: float


def size(description: Description) -> tuple[int, ...]:
    """What small means: sequences, tiles, tokens, CTAs, then how much else is out of the ordinary."""
    shape, plain = description.shape, Description()
    odd = sum(getattr(description, name) != getattr(plain, name) for name in Description.__dataclass_fields__)
    numbers = (shape.num_sms, shape.heads * shape.next_n, len(shape.options), odd, description.seed)
    return (len(description.lengths), description.tiles, sum(description.lengths), *numbers)


def minimise(
    campaign: Campaign,
    found: Found,
    session: Session,
    *,
    evaluations: int = EVALUATIONS,
    seconds: float = SECONDS,
) -> Minimal:
    """Shrink one failure of a block. What cannot be shrunk within the budget comes back as it was."""
    first = Description.from_plain(found.description)
    search = _Search(session, found.name, seconds, evaluations, first, known={first: True})
    _simplify(search)
    if len(search.best.lengths) > SMALL or search.best.tiles > SMALL:
        _shrink(campaign, found, first, search)
        _simplify(search)
    smaller = search.best
    judged = session.judge(smaller)
    told = {one.name: one for one in session.found(smaller, judged, found.block, found.number)}
    least = told.get(found.name, found)
    taken = time.monotonic() - search.begun
    return Minimal(least, frozenset(told) or frozenset({found.name}), len(search.known), taken)


def _simplify(search: _Search) -> None:
    """Take plainer descriptions as long as one fails as wanted."""
    before = None
    while before != search.best:
        before = search.best
        for candidate in _plainer(before):
            if search.fails(candidate) and search.best != before:
                break


def _shrink(campaign: Campaign, found: Found, first: Description, search: _Search) -> None:
    reached = False

    def body(description: Description) -> None:
        nonlocal reached
        reached = reached or description == first
        if reached and search.fails(description):
            raise _StillFailsError

    try:
        replay_block(campaign, found.block, body, shrink=True)
    except _StillFailsError:
        return


def _plainer(description: Description) -> Iterator[Description]:
    """Descriptions that are plainer in one way; those that are cheap to try come first."""
    plain, shape = Description(), description.shape
    yield replace(plain, lengths=description.lengths, shape=shape, data=description.data)
    yield replace(description, lengths=(1,), cuts=())
    yield replace(description, lengths=(1, 1), cuts=())
    ones = tuple(min(length, 1) for length in description.lengths)
    for lengths in dict.fromkeys([_collapsed(ones), ones, *_fewer(description.lengths)]):
        if lengths != description.lengths:
            yield replace(description, lengths=lengths, cuts=())
    longest = max(description.lengths)
    row = description.lengths.index(longest)
    for length in SHORTER if len(description.lengths) <= SMALL else ():
        if length < longest:
            shorter = (*description.lengths[:row], length, *description.lengths[row + 1 :])
            yield replace(description, lengths=shorter, cuts=())
    if description.check:
        yield replace(description, check="", check_seed=0)
    for name in (
        "cuts",
        "overrides",
        "columns",
        "interleaving",
        "order",
        "rest",
        "form",
        "poison",
        "data",
        "seed",
    ):
        if getattr(description, name) != getattr(plain, name):
            yield replace(description, **{name: getattr(plain, name)})
    default = Shape()
    if shape.options:
        yield replace(description, shape=replace(shape, options=()))
    if shape.num_sms > 2:
        yield replace(description, shape=replace(shape, num_sms=2), cuts=())
    if (shape.heads, shape.next_n) != (default.heads, default.next_n):
        plainer = replace(shape, heads=default.heads, next_n=default.next_n)
        yield replace(description, shape=plainer)
    for name in ("page", "flow"):
        if getattr(shape, name) != getattr(default, name):
            yield replace(description, shape=replace(shape, **{name: getattr(default, name)}))


def _collapsed(lengths: tuple[int, ...]) -> tuple[int, ...]:
    """Of each stretch of sequences without tokens one, and of those before and after all others none; a batch without
    tokens stays."""
    full = [row for row, length in enumerate(lengths) if length]
    if not full:
        return lengths
    inner = lengths[full[0] : full[-1] + 1]
    return tuple(length for row, length in enumerate(inner) if length or inner[row - 1])


def _fewer(lengths: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Batches with fewer sequences: single ones, pairs with an empty one, those with tokens, stretches of empty ones as
    one, halves, all but one."""
    if len(lengths) < 2:
        return
    full = tuple(length for length in lengths if length)
    count = len(lengths)
    singles = [(length,) for length in dict.fromkeys(full[:4])]
    pairs = [pair for length in full[:2] for pair in ((length, 0), (0, length))]
    halves = [lengths[: count // 2], lengths[count // 2 :]]
    others = [lengths[:row] + lengths[row + 1 :] for row in range(count if count <= 8 else 0)]
    for fewer in dict.fromkeys([*singles, (0,), *pairs, (0, 0), full, _collapsed(lengths), *halves, *others]):
        if 0 < len(fewer) < count or (len(fewer) == count and sum(fewer) < sum(lengths)):
            yield fewer
