"""What differs between a stored and a computed entry, bit by bit, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.golden.entry import Entry
from mqa_ref.golden.record import Places, Recorded

SHOWN = 3
"""Elements shown of each difference."""


@dataclass(frozen=True)
class Difference:
    """``what`` differs (views, a partition, the inputs ...) in ``changed`` elements; ``first``: the first of them, as
    ``[row, column] old -> new``."""

    what: str
    changed: int
    first: tuple[str, ...]

    def __str__(self) -> str:
        count = f"{self.changed} element{'s' if self.changed != 1 else ''} changed"
        return f"{self.what}: {count}: {'; '.join(self.first)}"


def differences(old: Entry, new: Recorded) -> tuple[Difference, ...]:
    """Everything in which the stored entry ``old`` is not what was computed."""
    entry = new.entry
    found = [
        Difference(what, 1, (f"{before} -> {after}",))
        for what, before, after in (
            ("name", old.name, entry.name),
            ("kind", old.kind, entry.kind),
            ("inputs (case_id)", old.case_id, entry.case_id),
            ("tiles", old.tiles, entry.tiles),
            ("faults", old.faults, entry.faults),
        )
        if before != after
    ]
    found += _views(old, entry, new.places)
    viewed = {*old.views.values(), *entry.views.values()}
    for name in sorted({*old.tensors, *entry.tensors} - viewed):
        found += _tensor(name, old.tensors.get(name), entry.tensors.get(name), None)
    for name in sorted({*old.whole, *entry.whole}):
        one, other = old.whole.get(name), entry.whole.get(name)
        if one != other and not (name in viewed and found):
            found.append(Difference(f"whole array behind {name}", 1, (f"{one} -> {other}",)))
    return tuple(found)


def _views(old: Entry, new: Entry, places: Places) -> list[Difference]:
    """Views that changed in the same way are told together."""
    groups: dict[tuple[str | None, str | None], list[str]] = {}
    for view in sorted({*old.views, *new.views}):
        groups.setdefault((old.views.get(view), new.views.get(view)), []).append(view)
    found = []
    for (before, after), views in groups.items():
        more = f" and {len(views) - 1} more view{'s' if len(views) > 2 else ''}" if len(views) > 1 else ""
        found += _tensor(
            views[0] + more,
            None if before is None else old.tensors[before],
            None if after is None else new.tensors[after],
            places,
        )
    return found


def _tensor(
    what: str, old: NDArray[Any] | None, new: NDArray[Any] | None, places: Places | None
) -> list[Difference]:
    if old is None or new is None:
        present = new if old is None else old
        assert present is not None
        return [
            Difference(what, present.size, ("not there before" if old is None else "not there any more",))
        ]
    if old.dtype != new.dtype or old.shape != new.shape:
        told = f"{old.dtype} {list(old.shape)} -> {new.dtype} {list(new.shape)}"
        return [Difference(what, max(old.size, new.size), (told,))]
    changed = np.flatnonzero((old != new).reshape(-1))
    if changed.size == 0:
        return []
    first = []
    for at in changed[:SHOWN].tolist():
        if places is None:
            place = ", ".join(str(index) for index in np.unravel_index(at, old.shape))
            first.append(f"[{place}] {old.reshape(-1)[at]} -> {new.reshape(-1)[at]}")
        else:
            digits = 2 * old.dtype.itemsize
            before, after = int(old[at]), int(new[at])
            first.append(f"[{places[0][at]}, {places[1][at]}] 0x{before:0{digits}x} -> 0x{after:0{digits}x}")
    return [Difference(what, int(changed.size), tuple(first))]
