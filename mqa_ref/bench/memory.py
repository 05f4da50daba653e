"""A program: the reference on one launch of BATCH sequences of CONTEXT tokens; prints GiB and seconds.

The sequences share the pages of one, so that the inputs are small. The GiB are the largest resident size of the process
(interpreter and libraries included) less the result.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from mqa_ref.bench.work import standard
from mqa_ref.flow import Flow
from mqa_ref.problem import Problem
from mqa_ref.reference import reference_logits

_UNIT = 1024 if sys.platform == "linux" else 1


def main(batch: int, context: int) -> tuple[float, float]:
    """GiB and seconds."""
    one = standard("rms", 1, context)
    problem = Problem(
        np.repeat(one.q, batch, axis=0),
        one.kv_fused,
        np.repeat(one.weights, batch, axis=0),
        np.repeat(one.block_table, batch, axis=0),
        np.repeat(one.context_lens, batch),
        page=one.page,
        num_sms=one.num_sms,
    )
    flow = Flow.parse("fp32-fp32-fp32")
    begun = time.perf_counter()
    bits, mask = reference_logits(problem, flow)
    seconds = time.perf_counter() - begun
    used = _UNIT * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - bits.nbytes - mask.nbytes
    return used / 2**30, seconds


if __name__ == "__main__":
    sys.stdout.write(" ".join(map(str, main(int(sys.argv[1]), int(sys.argv[2])))) + "\n")
