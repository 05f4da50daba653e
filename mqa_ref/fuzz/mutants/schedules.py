"""Wrong builders of schedules: each is given to the properties that every schedule must have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mqa_ref.fuzz.always import Builder, schedules_partition
from mqa_ref.fuzz.mutants.judge import Verdict
from mqa_ref.fuzz.mutants.mutant import Mutant
from mqa_ref.schedule import Form, build
from mqa_ref.schedule.lengths import split_line

TURNS = 200
"""Batches that a builder is tried on."""


def _made(change: Callable[[NDArray[np.int32], Any], object]) -> Builder:
    def builder(lengths: ArrayLike, num_sms: int, form: Form) -> NDArray[np.int32]:
        made = build(lengths, num_sms, form).copy()
        change(made, split_line(lengths))
        return made

    return builder


def _from_starts(starts: Callable[[int, int], NDArray[np.int64]]) -> Builder:
    """A builder from where each CTA starts on the line of splits."""

    def builder(lengths: ArrayLike, num_sms: int, form: Form) -> NDArray[np.int32]:
        del form
        line = split_line(lengths)
        return np.array([line.entry(int(one)) for one in starts(line.total, num_sms)], np.int32)

    return builder


def _later_start(made: NDArray[np.int32], _: Any) -> None:
    made[1:-1, 1] += made[1:-1, 1] > 0


def _earlier_start(made: NDArray[np.int32], _: Any) -> None:
    made[:-1, 1] -= made[:-1, 1] > 0


def _first_starts_late(made: NDArray[np.int32], line: Any) -> None:
    if line.total > 1:
        made[0] = line.entry(1)


def _zero_row_start(made: NDArray[np.int32], line: Any) -> None:
    """A CTA that starts at a row's beginning is put at the row without tokens before it."""
    for entry in made[1:-1]:
        row = int(entry[0])
        if entry[1] == 0 and 0 < row < line.batch and line.per_row[row - 1] == 0:
            entry[0] -= 1


def _no_remainder(total: int, ctas: int) -> NDArray[np.int64]:
    return np.append(np.arange(ctas, dtype=np.int64) * (total // ctas), total // ctas * ctas)


def _all_to_last(total: int, ctas: int) -> NDArray[np.int64]:
    return np.append(np.arange(ctas, dtype=np.int64) * (total // ctas), total)


def _rounded_up(total: int, ctas: int) -> NDArray[np.int64]:
    return np.minimum(np.arange(ctas + 1, dtype=np.int64) * -(-total // ctas), total)


def _from_half(total: int, ctas: int) -> NDArray[np.int64]:
    """Shares computed in half precision."""
    shares = np.arange(ctas + 1) * np.float16(total / ctas) if ctas else np.zeros(1)
    return np.clip(np.floor(shares), 0, total).astype(np.int64)


def _lengths_in_tiles(lengths: ArrayLike, num_sms: int, form: Form) -> NDArray[np.int32]:
    """A split is taken for 128 tokens."""
    return build(np.asarray(lengths) * 2, num_sms, form)


def _rounded_down(lengths: ArrayLike, num_sms: int, form: Form) -> NDArray[np.int32]:
    """The last, partial split of a row is forgotten."""
    return build(np.asarray(lengths) // 256 * 256, num_sms, form)


def _zero_is_one(lengths: ArrayLike, num_sms: int, form: Form) -> NDArray[np.int32]:
    """A row without tokens has one split."""
    return build(np.maximum(np.asarray(lengths), 1), num_sms, form)


def _same_form(lengths: ArrayLike, num_sms: int, form: Form) -> NDArray[np.int32]:
    """The reversed form is the forward one with CTAs in reverse."""
    made = build(lengths, num_sms, form)
    return made if form == "forward" else made[::-1].copy()


def _end_is_last_row(made: NDArray[np.int32], line: Any) -> None:
    made[-1] = (line.batch - 1, line.per_row[-1])


def _end_short(made: NDArray[np.int32], line: Any) -> None:
    if line.total:
        made[-1] = line.entry(line.total - 1)


def _overlap(made: NDArray[np.int32], line: Any) -> None:
    if len(made) > 2 and line.total > 2:
        made[1] = line.entry(0)
        made[2] = line.entry(max(1, line.total // 2))
        made[1], made[2] = made[2].copy(), made[1].copy()


BUILDERS: Mapping[str, tuple[str, Builder]] = {
    "later-start": ("a CTA that starts inside a row starts one split late", _made(_later_start)),
    "earlier-start": ("a CTA that starts inside a row starts one split early", _made(_earlier_start)),
    "first-late": ("the first split belongs to nobody", _made(_first_starts_late)),
    "end-short": ("the last split belongs to nobody", _made(_end_short)),
    "end-in-last-row": (
        "the end is told as the last split of the last row, not (B, 0)",
        _made(_end_is_last_row),
    ),
    "zero-row-start": ("a CTA starts in a row without tokens", _made(_zero_row_start)),
    "overlap": ("the second CTA starts after the third", _made(_overlap)),
    "no-remainder": ("the splits that do not divide are dropped", _from_starts(_no_remainder)),
    "all-to-last": ("the last CTA gets all that does not divide", _from_starts(_all_to_last)),
    "rounded-up": ("shares are rounded up, the last CTAs get nothing", _from_starts(_rounded_up)),
    "half-precision": ("shares are computed in half precision", _from_starts(_from_half)),
    "tiles": ("a split is taken for 128 tokens", _lengths_in_tiles),
    "rounded-down": ("the last partial split of a row is forgotten", _rounded_down),
    "zero-is-one": ("a row without tokens counts as one split", _zero_is_one),
    "backwards": ("the reversed form lists the CTAs backwards", _same_form),
}


def mutants() -> tuple[Mutant, ...]:
    """One for each builder."""
    return tuple(Mutant("schedule", name, "", 0, "build", what) for name, (what, _) in BUILDERS.items())


def judge(mutant: Mutant) -> Verdict:
    """Try its builder on batches until a property is broken."""
    _, builder = BUILDERS[mutant.operator]
    for turn in range(TURNS):
        failures = schedules_partition(f"mutants/{turn}", builder)
        if failures:
            signs = tuple(dict.fromkeys(one.name for one in failures))
            return Verdict(mutant.id, "value", f"batch {turn}", signs, failures[0].message[:240], turn + 1)
    return Verdict(mutant.id, "survived", launches=TURNS)
