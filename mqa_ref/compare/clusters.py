"""What the wrong elements have in common, in plain words: one row, one tile, one CTA, one warp group, one
page, one lane."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mqa_ref.compare.place import Index, Places

_FEW = 4
_SAID = 6
_TILES = 1 << 32
_PAIR = "tile of one row"

# A coordinate of one value and of several in words, and its value for each element.
_AXES: tuple[tuple[str, str, Callable[[Places], Index]], ...] = (
    ("sequence {}", "sequences {}", lambda at: at.b),
    ("row {}", "rows {}", lambda at: at.row),
    ("next_n position {}", "next_n positions {}", lambda at: at.t),
    ("tile {}", "tiles {}", lambda at: at.tile),
    (_PAIR, _PAIR, lambda at: at.row * _TILES + at.tile),
    ("CTA {}", "CTAs {}", lambda at: at.cta),
    ("warp group {}", "warp groups {}", lambda at: at.warp_group),
    ("page {}", "pages {}", lambda at: at.page_id),
    ("token {} of the page", "tokens {} of the page", lambda at: at.page_token),
    ("token {} of the tile", "tokens {} of the tile", lambda at: at.tile_token),
    ("lane {} of the warps", "lanes {} of the warps", lambda at: at.tile_token % 32),
    ("warp {} of the warp group", "warps {} of the warp group", lambda at: at.tile_token // 32),
)

_SPREAD = ("row {}", "tile {}", "CTA {}", "warp group {}")


def _join(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _subject(axis: tuple[str, str], values: list[int]) -> str:
    """The elements at these values of a coordinate, in words."""
    if axis[0] == _PAIR:
        return _join([f"tile {value % _TILES} of row {value // _TILES}" for value in values])
    return axis[len(values) > 1].format(_join([str(value) for value in values]))


def _statement(axis: tuple[str, str], values: Index, wrong: Index, total: Index) -> tuple[int, str] | None:
    """A sentence about one coordinate, with its rank (0 is the most telling), or None when there is nothing
    to say.

    ``values`` [k]: those that occur among the compared elements; ``wrong``, ``total`` [k]: elements of each.
    """
    hit, spared = np.flatnonzero(wrong), np.flatnonzero(wrong == 0)
    if values.size == 1 or spared.size == 0:
        return None
    complete = bool((wrong[hit] == total[hit]).all())
    if complete and hit.size <= _FEW:
        return 0, f"every compared element of {_subject(axis, values[hit].tolist())} and no other"
    if complete and spared.size <= _FEW:
        return 0, f"every compared element except those of {_subject(axis, values[spared].tolist())}"
    if hit.size == 1:
        share = f"{int(wrong[hit[0]])} of its {int(total[hit[0]])} compared elements"
        return 1, f"all in {_subject(axis, values[hit].tolist())} ({share})"
    return None


def where(compared: Places, wrong: NDArray[np.bool_]) -> tuple[str, ...]:
    """Sentences that name what the wrong ones (``wrong``, bool [n]) among the compared elements share, most
    telling first.

    Empty when nothing is wrong.
    """
    count = int(wrong.sum())
    if count == 0:
        return ()
    if count == wrong.size:
        return ("every compared element",)
    if count == 1:
        return (f"one element: {compared.one(int(np.flatnonzero(wrong)[0]))}",)
    said: list[tuple[int, str]] = []
    spread: list[str] = []
    for singular, plural, read in _AXES:
        values, inverse = np.unique(read(compared), return_inverse=True)
        total = np.bincount(inverse, minlength=values.size)
        bad = np.bincount(inverse[wrong], minlength=values.size)
        sentence = _statement((singular, plural), values, bad, total)
        if sentence is not None:
            said.append(sentence)
        elif values.size > 1 and singular in _SPREAD:
            spread.append(f"{np.count_nonzero(bad)} of {values.size} {plural.removesuffix(' {}')}")
    said.sort(key=lambda item: item[0])
    if said:
        return tuple(sentence for _, sentence in said[:_SAID])
    return (f"spread over {_join(spread)}, no common place",) if spread else ("no common place",)
