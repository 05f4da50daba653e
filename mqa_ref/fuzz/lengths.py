"""Strategies for context lengths: at and around the places where kernels change their ways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from mqa_ref.errors import Fault, InputError
from mqa_ref.problem_rules import PAGES
from mqa_ref.schedule import SPLIT_TOKENS

WINDOW_ENTRIES = 64
"""Table entries that a warp of the kernel fetches at once: 32 for each of two groups."""
WINDOWS = tuple(WINDOW_ENTRIES * page for page in PAGES)
"""The same as tokens; with pages of 128 they are those of 64 tiles."""
MOST_LENGTH = 1300
MOST_SPLITS = 6
ZERO_BATCHES = (1, 2, 3, 31, 32, 33, 64)


def boundaries(*, max_length: int) -> tuple[int, ...]:
    """Lengths up to ``max_length``, ascending, at, one before and one after every multiple of a page, tile or split
    that is near the start of a row, a round number, or the end of the window."""
    steps = (0, 32, 64, 96, 128, 192, 256, 320, 384, 512, 640, 768, 1024, 1280, *WINDOWS)
    near = {step + shift for step in steps for shift in (-1, 0, 1)}
    return tuple(sorted(length for length in near if 0 <= length <= max_length))


def context_lengths(
    *,
    min_batch: int = 1,
    max_batch: int = 6,
    max_length: int = MOST_LENGTH,
    max_splits: int = MOST_SPLITS,
    zeros: bool = True,
) -> SearchStrategy[tuple[int, ...]]:
    """Lengths of ``min_batch`` to ``max_batch`` sequences, at most ``max_splits`` splits of 256 tokens in all.

    ``zeros``: whether there are sequences without tokens; then also batches without any token, of up to 64 sequences.
    """
    faults = _range("batch", min_batch, max_batch, least=1) + _range("length", int(not zeros), max_length)
    if type(max_splits) is not int or max_splits < (0 if zeros else min_batch):
        faults.append(Fault("max_splits", repr(max_splits), "an integer, room for every sequence"))
    refuse(faults)
    known = boundaries(max_length=max_length)[0 if zeros else 1 :]
    first = int(not zeros)
    one = st.one_of(st.sampled_from(known), st.integers(first, max_length))
    many = st.lists(one, min_size=min_batch, max_size=max_batch)
    drawn = many.map(lambda lengths: _within(lengths, max_splits, first))
    if not zeros or max_batch < 2:
        return drawn
    empty = st.sampled_from([n for n in ZERO_BATCHES if n >= min_batch]).map(lambda n: (0,) * n)
    sparse = st.builds(
        lambda lengths, batch, place: _scattered(lengths, batch, place),
        drawn,
        st.sampled_from(ZERO_BATCHES[3:]),
        st.integers(0, 63),
    )
    return mostly(drawn, empty, sparse)


def _within(lengths: Sequence[int], most: int, least: int) -> tuple[int, ...]:
    """The lengths, cut down where the splits of all would be more than ``most``."""
    kept, left = [], most
    for number, length in enumerate(lengths):
        room = left - least * (len(lengths) - number - 1)
        kept.append(min(length, max(least, room * SPLIT_TOKENS)))
        left -= -(-kept[-1] // SPLIT_TOKENS)
    return tuple(kept)


def _scattered(lengths: tuple[int, ...], batch: int, place: int) -> tuple[int, ...]:
    """The lengths among sequences without tokens, ``batch`` in all."""
    if len(lengths) >= batch:
        return lengths
    wide = [0] * batch
    for number, length in enumerate(lengths):
        wide[(place + number * 7) % batch] = length
    return tuple(wide)


_MORE_CHOICES = 40
_TURNS, _MORE = st.sampled_from(range(16)), st.booleans()


@st.composite
def mostly(draw: st.DrawFn, usual: SearchStrategy[Any], *rare: SearchStrategy[Any]) -> Any:
    """What ``usual`` draws, and one time in 16 each what one of ``rare`` does.

    Hypothesis takes the value of which the fewest choices were made for the simplest, so that a rare one, which may
    need a single choice, is given more of them than any usual one has.
    """
    turn = draw(_TURNS) - (16 - len(rare))
    if turn < 0:
        return draw(usual)
    value = draw(rare[turn])
    for _ in range(_MORE_CHOICES):
        draw(_MORE)
    return value


def launch_lengths(*, page: int = 64) -> SearchStrategy[tuple[int, ...]]:
    """Lengths for launches on pages of so many tokens, most of them of few tiles: what goes wrong shows in small
    launches, of which there is time for many; one in four has more, and one in 16 fills a window."""
    usual = context_lengths(max_batch=4, max_length=400, max_splits=3)
    return mostly(usual, *[context_lengths()] * 4, long_lengths(page=page))


def long_lengths(*, page: int = 64) -> SearchStrategy[tuple[int, ...]]:
    """One sequence that ends at, or up to a tile after, the end of a window of 64 table entries."""
    refuse([] if page in PAGES else [Fault("page", repr(page), f"one of {PAGES}")])
    window = WINDOW_ENTRIES * page
    return st.sampled_from([window + more for more in (0, 0, -1, 1, 128, 129)]).map(lambda length: (length,))


def refuse(faults: Sequence[Fault]) -> None:
    """Raise InputError for faults, if there are any."""
    if faults:
        raise InputError(faults)


def _range(name: str, low: object, high: object, *, least: int = 0) -> list[Fault]:
    if type(low) is not int or low < least:
        return [Fault(f"min_{name}", repr(low), f"an integer of {least} or more")]
    if type(high) is not int or high < low:
        return [Fault(f"max_{name}", repr(high), f"an integer of {low} or more")]
    return []


def subset(name: str, chosen: Sequence[Any], known: Sequence[Any] | None) -> list[Fault]:
    """What is wrong with a choice among ``known``, None for any names."""
    if isinstance(chosen, str) or not len(chosen):
        return [Fault(name, repr(chosen), "a sequence that is not empty")]
    unknown = [one for one in chosen if known is not None and one not in known]
    return [Fault(name, repr(one), "one of " + ", ".join(map(str, known or ()))) for one in unknown]
