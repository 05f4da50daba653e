"""Where the outputs of two kernels differ, kind by kind of element, tail columns included."""

from __future__ import annotations

import numpy as np

from mqa_ref.compare.bits import hex_word
from mqa_ref.flow import Flow
from mqa_ref.launch import Launch
from mqa_ref.numerics import FORMATS, canonical_nan
from mqa_ref.problem import Problem
from mqa_ref.report.model import KINDS, VALID_KINDS, KindResult
from mqa_ref.verification.kinds import kinds


def differences(own: Launch, other: Launch, problem: Problem, flow: Flow) -> tuple[KindResult, ...]:
    """One result for each kind that the problem has.

    Valid columns are compared all; of the others those that a kernel wrote. NaN is one class. An element that one of
    the two did not write differs.
    """
    fmt = FORMATS[flow.out]
    got, against = (canonical_nan(launch.logits, fmt) for launch in (own, other))
    found = kinds(problem, flow)
    one, both = own.written | other.written, own.written & other.written
    alone = one & ~both
    differ = alone | (both & (got != against))
    looked = one | (found < len(VALID_KINDS))
    results = []
    for kind, name in enumerate(KINDS):
        here = looked & (found == kind)
        if not here.any():
            continue
        wrong = here & differ
        first = ""
        if wrong.any():
            row, column = (int(places[0]) for places in np.nonzero(wrong))
            words = [
                hex_word(int(bits[row, column]), fmt) if launch.written[row, column] else "not written"
                for bits, launch in ((got, own), (against, other))
            ]
            first = f"row {row} column {column}: {words[0]} against {words[1]}"
        compared, differing, lonely = (int(np.count_nonzero(where)) for where in (here, wrong, here & alone))
        results.append(KindResult(name, compared, differing, lonely, first))
    return tuple(results)
