"""Schedule builders: the two published ways to share the splits of a batch among the CTAs of a launch.

Both cut the line of splits into as many consecutive pieces as there are CTAs, ``total = q*S + r``; they
differ in which CTAs get one split more. Standing: published (op.md, "Schedule metadata").
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mqa_ref.errors import Fault, InputError
from mqa_ref.schedule.lengths import cta_count_fault, split_line

Form = Literal["forward", "reversed"]

FORMS: tuple[Form, ...] = ("forward", "reversed")


def build(context_lens: ArrayLike, num_sms: int, form: Form = "forward") -> NDArray[np.int32]:
    """The schedule of one launch, int32 [num_sms + 1, 2].

    Row ``i`` is ``(row, split)`` of the first split of CTA ``i``, row ``i + 1`` its end; the last row is
    ``(B, 0)``. A CTA never starts in a row without tokens; a CTA that gets nothing has start == end, and with
    no token in the whole batch every entry is ``(B, 0)``.

    ``context_lens``: integers [B], or [B, next_n] of which the last column counts. ``num_sms``: CTAs,
    1..MAX_CTAS. ``form``: "forward" (the first ``r`` CTAs take one split more) or "reversed" (the last ``r``
    do). Raises InputError.
    """
    faults = []
    if (fault := cta_count_fault(num_sms)) is not None:
        faults.append(fault)
    if form not in FORMS:
        faults.append(Fault("form", repr(form), " or ".join(FORMS)))
    try:
        line = split_line(context_lens)
    except InputError as error:
        raise InputError([*faults, *error.faults]) from None
    if faults:
        raise InputError(faults)
    quotient, rest = divmod(line.total, num_sms)
    cta = np.arange(num_sms + 1, dtype=np.int64)
    first_with_more = 0 if form == "forward" else num_sms - rest
    start = cta * quotient + np.clip(cta - first_with_more, 0, rest)
    row = np.searchsorted(line.ends, start, side="right")
    inside = np.minimum(row, line.batch - 1)
    split = np.where(row < line.batch, start - (line.ends - line.per_row)[inside], 0)
    return np.stack([row, split], axis=1).astype(np.int32)


def cut(context_lens: ArrayLike, cuts: Sequence[int]) -> NDArray[np.int32]:
    """The schedule that cuts the line of splits at ``cuts``, int32 [len(cuts) + 2, 2].

    CTA 0 starts at split 0 of the line, CTA ``i`` at ``cuts[i - 1]``, counted over all rows; CTAs with equal cuts have
    no work. Any such cutting gives every split to one CTA. Raises InputError for cuts that descend or lie outside the
    line, and for bad lengths.
    """
    line = split_line(context_lens)
    starts = [0, *cuts, line.total]
    if any(later < earlier for earlier, later in itertools.pairwise(starts)):
        raise InputError([Fault("cuts", repr(tuple(cuts)), f"ascending numbers in 0..{line.total}")])
    return np.array([line.entry(start) for start in starts], np.int32)
