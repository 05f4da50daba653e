"""The fences that two accesses of tensor memory by different threads need between them.

Barriers order the threads; the asynchronous tcgen05 operations of a thread (mma, ld, st) are not ordered with them.
Source: PTX ISA 9.1, 9.7.16.6.1 to 9.7.16.6.4 and 9.7.16.11.1 (in 9.3: 9.7.17). Standing: doc. The rules:

* 9.7.16.6.3: an operation before ``tcgen05.fence::before_thread_sync`` is ordered before all execution ordering
  operations after the fence (mbarrier operations, barriers); one after ``::after_thread_sync`` is ordered after all of
  those before the fence. So both lie between two accesses that a barrier orders (9.7.16.6.4.4, first example).
* 9.7.16.6.4.2: ``tcgen05.commit`` does implicitly what ``::before_thread_sync`` does, for the products that it tracks.
  A load that waits for its mbarrier still needs ``::after_thread_sync``, in the thread that issued the product, too.
* 9.7.16.6.2: products of one thread into one accumulator, and ld or st with its wait, need neither.
* 9.7.16.6.1: alloc and dealloc are synchronous, so a free needs no ``::after_thread_sync``; what it must come after
  still needs ``::before_thread_sync``.
* Shared memory that a product reads is no tensor memory, and what fills it no tcgen05 operation: barriers are enough.

9.7.16.6.3 says, too, that synchronisation mechanisms of the standard memory consistency model apply, and the examples
use relaxed mbarrier operations: read so that a release and an acquire are enough, a kernel without any fence is right.
CuTe DSL's own examples are such kernels (NVIDIA/cutlass issue 2974, open). So in a program with no tcgen05.fence the
finding is information; one that has some follows the protocol, and a gap in it is an error.

How: the second component of a warp, ``clock[FENCED + warp]``, is the epoch of its last ``before`` fence, that of a pipe
the time of its last commit; they travel with the clock. An ``after`` fence keeps the clock as it then is, and what it
says there is what an access of the warp is ordered after. A warp counts as one thread: a fence of one lane counts for
all.
"""

from __future__ import annotations

import numpy as np

from mqa_ref.emulator.clocks import FENCED, NOTHING_SEEN, TENSOR_AGENTS, Clock, Conflict

ALWAYS = np.iinfo(np.int32).max
BEFORE, AFTER = "tcgen05.fence::before_thread_sync", "tcgen05.fence::after_thread_sync"


def _ordered(clock: Clock, own: int) -> Clock:
    found: Clock = clock[FENCED : FENCED + TENSOR_AGENTS].copy()
    found[own] = ALWAYS
    return found


class TensorOrder:
    """What the last ``after`` fence of warp ``index`` knew (``fenced``), and for each agent the time up to which its
    accesses are ordered before the warp's own (``ordered``).
    """

    def __init__(self, index: int, fenced: Clock = NOTHING_SEEN) -> None:
        self.index, self.fenced = index, fenced
        self.ordered = _ordered(fenced, index)
        self._product: TensorOrder | None = None

    def after(self, clock: Clock) -> None:
        """tcgen05.fence::after_thread_sync by the warp, whose clock is ``clock``."""
        self.fenced = clock.copy()
        self.ordered = _ordered(self.fenced, self.index)
        self._product = None

    def of_product(self, pipe: int) -> TensorOrder:
        """The same for a product issued now to the warp's pipe."""
        if self._product is None:
            self._product = TensorOrder(self.index, self.fenced)
            self._product.ordered[pipe] = ALWAYS
        return self._product

    def of_free(self, clock: Clock) -> TensorOrder:
        """The same for a synchronous operation, which needs no ``after`` fence."""
        return TensorOrder(self.index, clock)

    def missing(self, conflict: Conflict, clock: Clock) -> str:
        """Which fence is not there, in words. ``clock``: the one of the later access."""
        lacking = []
        if conflict.clock > clock[FENCED + conflict.agent]:
            lacking.append(f"{BEFORE} follows the earlier one")
        if conflict.clock > self.fenced[conflict.agent] or not lacking:
            lacking.append(f"{AFTER} precedes this one")
        return "no " + " and no ".join(lacking)


def before(clock: Clock, agent: int) -> None:
    """All accesses of an agent up to now are ordered before what it signals next."""
    clock[FENCED + agent] = clock[agent]
