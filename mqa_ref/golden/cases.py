"""The table of all golden cases."""

from __future__ import annotations

from collections.abc import Sequence

from mqa_ref.errors import Fault, InputError
from mqa_ref.golden.cases_bookkeeping import REFUSED, SCHEDULES, STALE
from mqa_ref.golden.cases_contexts import CONTEXTS
from mqa_ref.golden.cases_peers import PEERS
from mqa_ref.golden.cases_shapes import SHAPES
from mqa_ref.golden.cases_values import VALUES
from mqa_ref.golden.model import Case

CASES: tuple[Case, ...] = (*CONTEXTS, *PEERS, *VALUES, *SHAPES, *SCHEDULES, *STALE, *REFUSED)
"""All cases in the order in which they are listed and checked; each has a file of its name."""

UNCOVERED: dict[int, str] = {}
"""Reports of peers.md that no case stands for, with the reason. Empty: each has at least one case, and what a Problem
cannot say of it (a guard page, 20 runs, strides, a pool of 2 GB, a dependent launch) is the case's ``launch`` text."""


def by_name(names: Sequence[str]) -> tuple[Case, ...]:
    """The cases of these names, in the table's order; all of them for none. InputError naming every unknown name."""
    known = {case.name: case for case in CASES}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError(
            Fault("case", repr(name), "a golden case, see `mqa-ref golden list`") for name in unknown
        )
    return tuple(case for case in CASES if not names or case.name in names)
