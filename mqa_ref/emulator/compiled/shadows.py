"""The race check of ``clocks.Shadow`` in machine code, for granules that follow each other.

It looks for conflicts and records; where there is one, it leaves everything to ``clocks.Shadow``, which names it.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from mqa_ref.emulator.clocks import GATHERED, Clock, Conflict, Shadow, Where
from mqa_ref.emulator.compiled import native
from mqa_ref.emulator.compiled.shadow_code import BODIES
from mqa_ref.emulator.compiled.vectors import LONG, POINTER, WORD


class FastShadow(Shadow):
    """As ``Shadow``, with the same findings. It can be made new, for the next CTA: ``low`` and ``high`` bound the
    granules that were touched.
    """

    def __init__(self, granules: int, readers: int) -> None:
        super().__init__(granules, readers)
        self.granules = granules
        arrays = [array.ctypes.data for array in (self.writer, self.write_clock, self.reads)]
        self.latest = np.zeros(readers, np.int32)
        self._words = np.array([*arrays, granules, readers, self.latest.ctypes.data], np.int64)
        self.address = self._words.ctypes.data
        self._read, self._free, self._record, self._late, self._read_listed = functions()
        self._clocks: dict[int, tuple[Clock, int]] = {}
        self.low, self.high = granules, 0

    def clear(self) -> None:
        """Know nothing again."""
        self._clocks.clear()
        if self.low < self.high:
            super().forget(slice(self.low, self.high))
        self.low, self.high = self.granules, 0
        self.latest[:] = 0

    def touch(self, first: int, end: int) -> None:
        """These granules, and all between, may be known to somebody."""
        if first < self.low:
            self.low = first
        if end > self.high:
            self.high = end

    def _touch_any(self, where: Where) -> None:
        if isinstance(where, slice):
            first, end, _ = where.indices(self.granules)
            self.touch(first, end)
        elif len(where):
            self.touch(int(where.min()), int(where.max()) + 1)

    def _clock(self, agent: int, clock: Clock) -> int:
        """Where the clock of an agent lies; most agents keep theirs."""
        known = self._clocks.get(agent)
        if known is None or known[0] is not clock:
            known = self._clocks[agent] = (clock, address_of(clock))
        return known[1]

    def read(self, where: Where, agent: int, clock: Clock) -> Conflict | None:
        """See ``Shadow.read``."""
        if isinstance(where, slice) and where.start < where.stop <= self.granules:
            first = where.start
            self.touch(first, where.stop)
            if not self._read(self.address, first, where.stop - first, agent, self._clock(agent, clock)):
                return None
        elif self._listed(where, agent, clock):
            return None
        self._touch_any(where)
        self.latest[agent] = max(self.latest[agent], clock[agent])
        return super().read(where, agent, clock)

    def _listed(self, where: Where, agent: int, clock: Clock) -> bool:
        """A read of granules that need not follow each other, recorded if there is no conflict. They were all written
        then, so they are within the bounds."""
        if not isinstance(where, np.ndarray) or where.dtype != np.int64 or not where.flags.c_contiguous:
            return False
        found = self._read_listed(self.address, address_of(where), len(where), agent, address_of(clock))
        return bool(not found)

    def late(self, where: Where, clock: Clock, kind: str) -> Conflict | None:
        """See ``Shadow.late``."""
        if isinstance(where, slice) and where.start < where.stop <= self.granules:
            first = where.start
            if not self._late(self.address, first, where.stop - first, 0, address_of(clock)):
                return None
        return super().late(where, clock, kind)

    def write(self, where: Where, agent: int, clock: Clock) -> Conflict | None:
        """See ``Shadow.write``."""
        if isinstance(where, slice) and where.start < where.stop <= self.granules:
            first, pointer = where.start, self._clock(agent, clock)
            if not self._free(self.address, first, where.stop - first, agent, pointer + 4 * GATHERED):
                self.touch(first, where.stop)
                self._record(self.address, first, where.stop - first, agent, pointer)
                return None
        self._touch_any(where)
        return super().write(where, agent, clock)

    def free(self, where: Where, agent: int, clock: Clock) -> Conflict | None:
        """See ``Shadow.free``."""
        if self._quiet(where, address_of(clock) + 4 * GATHERED):
            return None
        return super().free(where, agent, clock)

    def unordered(self, where: Where, clock: Clock) -> Conflict | None:
        """See ``Shadow.unordered``."""
        return None if self._quiet(where, address_of(clock)) else super().unordered(where, clock)

    def _quiet(self, where: Where, clock: int) -> bool:
        """Is every access ordered before the times that lie there?"""
        if not isinstance(where, slice) or not where.start < where.stop <= self.granules:
            return False
        first, count = where.start, where.stop - where.start
        if first >= self.high or where.stop <= self.low:
            return True  # nobody was there
        return not self._free(self.address, first, count, 0, clock)

    def forget(self, where: Where) -> None:
        """See ``Shadow.forget``."""
        if not isinstance(where, slice) or (where.start < self.high and where.stop > self.low):
            super().forget(where)


def address_of(array: Any) -> int:
    """Where an array's data lie."""
    address: int = array.__array_interface__["data"][0]
    return address


@cache
def functions() -> tuple[Any, ...]:
    """read, free, record and late: (shadow, first granule, granules, agent, clock) -> 1 for a conflict.

    What read asks for are the gathered times of the clock; free and late are given the times that count.
    """
    module = ir.Module("shadows")
    kind = ir.FunctionType(WORD, [POINTER, LONG, LONG, LONG, POINTER])
    for name, body in BODIES.items():
        function = ir.Function(module, kind, name)
        b = ir.IRBuilder(function.append_basic_block())
        b.ret(body(b, *function.args))
    engine = native.link(str(module))
    prototype = ctypes.CFUNCTYPE(
        ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
    )
    return tuple(prototype(engine.get_function_address(name)) for name in BODIES)
