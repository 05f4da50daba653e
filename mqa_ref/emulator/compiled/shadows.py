"""The race check of ``clocks.Shadow`` in machine code, for granules that follow each other.

It looks for conflicts and records; where there is one, it leaves everything to ``clocks.Shadow``, which names it.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from mqa_ref.emulator.clocks import Clock, Conflict, Shadow, Where
from mqa_ref.emulator.compiled import native
from mqa_ref.emulator.compiled.vectors import (
    GROUP,
    LONG,
    POINTER,
    WORD,
    Value,
    each,
    repeat,
    scratch,
    vector,
)

SHORT, TRUTH = ir.IntType(16), ir.IntType(1)
_FIELDS = 5
"""64-bit words that describe a shadow: where writers, write clocks and reads lie, granules, readers."""


class FastShadow(Shadow):
    """As ``Shadow``, with the same findings. It can be made new, for the next CTA: ``low`` and ``high`` bound the
    granules that were touched.
    """

    def __init__(self, granules: int, readers: int) -> None:
        super().__init__(granules, readers)
        self.granules = granules
        arrays = [array.ctypes.data for array in (self.writer, self.write_clock, self.reads)]
        self._words = np.array([*arrays, granules, readers], np.int64)
        self._address = self._words.ctypes.data
        self._read, self._free, self._record = functions()
        self._clocks: dict[int, tuple[Clock, int]] = {}
        self.low, self.high = granules, 0

    def clear(self) -> None:
        """Know nothing again."""
        self._clocks.clear()
        if self.low < self.high:
            super().forget(slice(self.low, self.high))
        self.low, self.high = self.granules, 0

    def _touch(self, first: int, end: int) -> None:
        if first < self.low:
            self.low = first
        if end > self.high:
            self.high = end

    def _touch_any(self, where: Where) -> None:
        if isinstance(where, slice):
            first, end, _ = where.indices(self.granules)
            self._touch(first, end)
        elif len(where):
            self._touch(int(where.min()), int(where.max()) + 1)

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
            self._touch(first, where.stop)
            if not self._read(self._address, first, where.stop - first, agent, self._clock(agent, clock)):
                return None
        self._touch_any(where)
        return super().read(where, agent, clock)

    def write(self, where: Where, agent: int, clock: Clock) -> Conflict | None:
        """See ``Shadow.write``."""
        if isinstance(where, slice) and where.start < where.stop <= self.granules:
            first, pointer = where.start, self._clock(agent, clock)
            if not self._free(self._address, first, where.stop - first, agent, pointer):
                self._touch(first, where.stop)
                self._record(self._address, first, where.stop - first, agent, pointer)
                return None
        self._touch_any(where)
        return super().write(where, agent, clock)

    def free(self, where: Where, clock: Clock) -> Conflict | None:
        """See ``Shadow.free``."""
        if isinstance(where, slice) and where.start < where.stop <= self.granules:
            first = where.start
            if not self._free(self._address, first, where.stop - first, 0, address_of(clock)):
                return None
        return super().free(where, clock)


def address_of(array: Any) -> int:
    """Where an array's data lie."""
    address: int = array.__array_interface__["data"][0]
    return address


@cache
def functions() -> tuple[Any, Any, Any]:
    """read, free and record: (shadow, first granule, granules, agent, clock) -> 1 for a conflict."""
    module = ir.Module("shadows")
    kind = ir.FunctionType(WORD, [POINTER, LONG, LONG, LONG, POINTER])
    names = {"shadow_read": _read, "shadow_free": _free, "shadow_record": _record}
    for name, body in names.items():
        function = ir.Function(module, kind, name)
        b = ir.IRBuilder(function.append_basic_block())
        b.ret(body(b, *function.args))
    engine = native.link(str(module))
    prototype = ctypes.CFUNCTYPE(
        ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
    )
    read, free, record = (prototype(engine.get_function_address(name)) for name in names)
    return read, free, record


def _field(b: ir.IRBuilder, shadow: Value, number: int, kind: ir.Type) -> Value:
    return b.load(b.gep(shadow, [LONG(number)], source_etype=LONG), typ=kind)


def _at(b: ir.IRBuilder, array: Value, index: Value, kind: ir.Type) -> Value:
    return b.gep(array, [index], source_etype=kind)


def _late(b: ir.IRBuilder, clock: Value, writer: Value, written: Value) -> Value:
    """Is the last write, if there was one, not ordered before ``clock``?"""
    known = b.icmp_signed(">=", writer, SHORT(0))
    index = b.zext(b.select(known, writer, SHORT(0)), LONG)
    return b.and_(known, b.icmp_signed(">", written, b.load(_at(b, clock, index, WORD), typ=WORD)))


def _read(b: ir.IRBuilder, shadow: Value, first: Value, count: Value, agent: Value, clock: Value) -> Value:
    writers, clocks, reads = (_field(b, shadow, number, POINTER) for number in range(3))
    row = _at(b, reads, b.mul(agent, _field(b, shadow, 3, LONG)), WORD)
    own = b.load(_at(b, clock, agent, WORD), typ=WORD)
    bad = scratch(b, TRUTH)
    b.store(TRUTH(0), bad)
    with each(b, count) as number:
        index = b.add(first, number)
        b.store(own, _at(b, row, index, WORD))
        writer = b.load(_at(b, writers, index, SHORT), typ=SHORT)
        written = b.load(_at(b, clocks, index, WORD), typ=WORD)
        never = b.icmp_signed("<", writer, SHORT(0))
        wrong = b.or_(never, _late(b, clock, writer, written))
        _note(b, bad, wrong)
    return b.zext(b.load(bad, typ=TRUTH), WORD)


def _free(b: ir.IRBuilder, shadow: Value, first: Value, count: Value, _: Value, clock: Value) -> Value:
    writers, clocks, reads = (_field(b, shadow, number, POINTER) for number in range(3))
    granules, readers = _field(b, shadow, 3, LONG), _field(b, shadow, 4, LONG)
    bad = scratch(b, TRUTH)
    b.store(TRUTH(0), bad)
    with each(b, count) as number:
        index = b.add(first, number)
        writer = b.load(_at(b, writers, index, SHORT), typ=SHORT)
        wrong = _late(b, clock, writer, b.load(_at(b, clocks, index, WORD), typ=WORD))
        _note(b, bad, wrong)
    with each(b, readers) as reader:
        row = _at(b, reads, b.add(b.mul(reader, granules), first), WORD)
        seen = b.load(_at(b, clock, reader, WORD), typ=WORD)
        _later(b, row, count, seen, bad)
    return b.zext(b.load(bad, typ=TRUTH), WORD)


def _later(b: ir.IRBuilder, row: Value, count: Value, seen: Value, bad: Value) -> None:
    """Sets ``bad`` when one of ``count`` clocks is later than ``seen``: eight at a time, then the rest."""
    limits = repeat(b, seen)
    groups = b.udiv(count, LONG(GROUP))
    with b.if_then(b.icmp_unsigned(">", groups, LONG(0))), each(b, groups) as group:
        clocks = b.load(_at(b, row, b.mul(group, LONG(GROUP)), WORD), typ=vector(32), align=4)
        late = b.bitcast(b.icmp_signed(">", clocks, limits), ir.IntType(GROUP))
        _note(b, bad, b.icmp_unsigned("!=", late, ir.IntType(GROUP)(0)))
    rest = b.and_(count, LONG(GROUP - 1))
    with b.if_then(b.icmp_unsigned(">", rest, LONG(0))), each(b, rest) as number:
        index = b.add(b.mul(groups, LONG(GROUP)), number)
        _note(b, bad, b.icmp_signed(">", b.load(_at(b, row, index, WORD), typ=WORD), seen))


def _note(b: ir.IRBuilder, bad: Value, wrong: Value) -> None:
    b.store(b.or_(b.load(bad, typ=TRUTH), wrong), bad)


def _record(b: ir.IRBuilder, shadow: Value, first: Value, count: Value, agent: Value, clock: Value) -> Value:
    writers, clocks = (_field(b, shadow, number, POINTER) for number in range(2))
    own = b.load(_at(b, clock, agent, WORD), typ=WORD)
    with each(b, count) as number:
        index = b.add(first, number)
        b.store(b.trunc(agent, SHORT), _at(b, writers, index, SHORT))
        b.store(own, _at(b, clocks, index, WORD))
    return WORD(0)
