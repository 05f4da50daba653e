"""What is asked of a shadow in machine code: LLVM text for ``shadows``, ``tensor_checks`` and services."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from mqa_ref.emulator.clocks import GATHERED
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
LATEST = 5
"""64-bit words that describe a shadow: where writers, write clocks and reads lie, granules, readers, and where the time
of the latest read of each reader lies, which tells of most readers that they need not be looked at."""


def field(b: ir.IRBuilder, shadow: Value, number: int, kind: ir.Type) -> Value:
    """A word of a shadow."""
    return b.load(b.gep(shadow, [LONG(number)], source_etype=LONG), typ=kind)


def at(b: ir.IRBuilder, array: Value, index: Value, kind: ir.Type) -> Value:
    """Where an element lies."""
    return b.gep(array, [index], source_etype=kind)


def gathered(b: ir.IRBuilder, clock: Value) -> Value:
    """Where the times lie up to which accesses are ordered for all lanes, see ``lanes_of_warps``."""
    return at(b, clock, LONG(GATHERED), WORD)


def late(b: ir.IRBuilder, clock: Value, writer: Value, written: Value) -> Value:
    """Is the last write, if there was one, not ordered before ``clock``?"""
    known = b.icmp_signed(">=", writer, SHORT(0))
    index = b.zext(b.select(known, writer, SHORT(0)), LONG)
    return b.and_(known, b.icmp_signed(">", written, b.load(at(b, clock, index, WORD), typ=WORD)))


def read(b: ir.IRBuilder, shadow: Value, first: Value, count: Value, agent: Value, clock: Value) -> Value:
    """Record a read; 1 where something was never written, or not ordered before ``clock`` for all lanes."""
    writers, clocks, reads = (field(b, shadow, number, POINTER) for number in range(3))
    row = at(b, reads, b.mul(agent, field(b, shadow, 3, LONG)), WORD)
    own = now(b, shadow, agent, clock)
    bad = scratch(b, TRUTH)
    b.store(TRUTH(0), bad)
    with each(b, count) as number:
        index = b.add(first, number)
        b.store(own, at(b, row, index, WORD))
        writer = b.load(at(b, writers, index, SHORT), typ=SHORT)
        written = b.load(at(b, clocks, index, WORD), typ=WORD)
        never = b.icmp_signed("<", writer, SHORT(0))
        wrong = b.or_(never, late(b, gathered(b, clock), writer, written))
        _note(b, bad, wrong)
    return b.zext(b.load(bad, typ=TRUTH), WORD)


def _read_listed(
    b: ir.IRBuilder, shadow: Value, listed: Value, count: Value, agent: Value, clock: Value
) -> Value:
    """The same for granules whose numbers lie where ``listed`` says; nothing is recorded where it gives 1."""
    places = b.inttoptr(listed, POINTER)
    bad = scratch(b, TRUTH)
    b.store(TRUTH(0), bad)
    with b.if_then(b.icmp_unsigned("!=", count, LONG(0))):
        with each(b, count) as number:
            place = b.load(at(b, places, number, LONG), typ=LONG)
            _note(b, bad, unready(b, shadow, place, gathered(b, clock)))
        with b.if_then(b.not_(b.load(bad, typ=TRUTH))):
            row = at(b, field(b, shadow, 2, POINTER), b.mul(agent, field(b, shadow, 3, LONG)), WORD)
            own = now(b, shadow, agent, clock)
            with each(b, count) as number:
                b.store(own, at(b, row, b.load(at(b, places, number, LONG), typ=LONG), WORD))
    return b.zext(b.load(bad, typ=TRUTH), WORD)


def now(b: ir.IRBuilder, shadow: Value, agent: Value, clock: Value) -> Value:
    """The time of a read by an agent, which is noted as its latest."""
    own = b.load(at(b, clock, agent, WORD), typ=WORD)
    place = at(b, field(b, shadow, LATEST, POINTER), agent, WORD)
    last = b.load(place, typ=WORD)
    b.store(b.select(b.icmp_signed(">", own, last), own, last), place)
    return own


def unready(b: ir.IRBuilder, shadow: Value, index: Value, clock: Value) -> Value:
    """Was a granule never written, or written without being ordered before ``clock``?"""
    writer = b.load(at(b, field(b, shadow, 0, POINTER), index, SHORT), typ=SHORT)
    written = b.load(at(b, field(b, shadow, 1, POINTER), index, WORD), typ=WORD)
    return b.or_(b.icmp_signed("<", writer, SHORT(0)), late(b, clock, writer, written))


def free(b: ir.IRBuilder, shadow: Value, first: Value, count: Value, _: Value, clock: Value) -> Value:
    """1 where an access is not ordered before ``clock``; nothing is recorded."""
    reads = field(b, shadow, 2, POINTER)
    granules, readers = field(b, shadow, 3, LONG), field(b, shadow, 4, LONG)
    bad = _late_writes(b, shadow, first, count, clock)
    with each(b, readers) as reader:
        row = at(b, reads, b.add(b.mul(reader, granules), first), WORD)
        seen = b.load(at(b, clock, reader, WORD), typ=WORD)
        last = b.load(at(b, field(b, shadow, LATEST, POINTER), reader, WORD), typ=WORD)
        with b.if_then(b.icmp_signed(">", last, seen), likely=False):
            _later(b, row, count, seen, bad)
    return b.zext(b.load(bad, typ=TRUTH), WORD)


def _written(b: ir.IRBuilder, shadow: Value, first: Value, count: Value, _: Value, clock: Value) -> Value:
    return b.zext(b.load(_late_writes(b, shadow, first, count, clock), typ=TRUTH), WORD)


def _late_writes(b: ir.IRBuilder, shadow: Value, first: Value, count: Value, clock: Value) -> Value:
    """Where it is noted whether one of the last writes is not ordered before ``clock``."""
    writers, clocks = (field(b, shadow, number, POINTER) for number in range(2))
    bad = scratch(b, TRUTH)
    b.store(TRUTH(0), bad)
    with each(b, count) as number:
        index = b.add(first, number)
        writer = b.load(at(b, writers, index, SHORT), typ=SHORT)
        wrong = late(b, clock, writer, b.load(at(b, clocks, index, WORD), typ=WORD))
        _note(b, bad, wrong)
    return bad


def _later(b: ir.IRBuilder, row: Value, count: Value, seen: Value, bad: Value) -> None:
    """Sets ``bad`` when one of ``count`` clocks is later than ``seen``: eight at a time, then the rest."""
    limits = repeat(b, seen)
    groups = b.udiv(count, LONG(GROUP))
    with b.if_then(b.icmp_unsigned(">", groups, LONG(0))), each(b, groups) as group:
        clocks = b.load(at(b, row, b.mul(group, LONG(GROUP)), WORD), typ=vector(32), align=4)
        late = b.bitcast(b.icmp_signed(">", clocks, limits), ir.IntType(GROUP))
        _note(b, bad, b.icmp_unsigned("!=", late, ir.IntType(GROUP)(0)))
    rest = b.and_(count, LONG(GROUP - 1))
    with b.if_then(b.icmp_unsigned(">", rest, LONG(0))), each(b, rest) as number:
        index = b.add(b.mul(groups, LONG(GROUP)), number)
        _note(b, bad, b.icmp_signed(">", b.load(at(b, row, index, WORD), typ=WORD), seen))


def _note(b: ir.IRBuilder, bad: Value, wrong: Value) -> None:
    b.store(b.or_(b.load(bad, typ=TRUTH), wrong), bad)


def record(b: ir.IRBuilder, shadow: Value, first: Value, count: Value, agent: Value, clock: Value) -> Value:
    """Record a write."""
    writers, clocks = (field(b, shadow, number, POINTER) for number in range(2))
    own = b.load(at(b, clock, agent, WORD), typ=WORD)
    with each(b, count) as number:
        index = b.add(first, number)
        b.store(b.trunc(agent, SHORT), at(b, writers, index, SHORT))
        b.store(own, at(b, clocks, index, WORD))
    return WORD(0)


BODIES: dict[str, Callable[..., Value]] = {
    "shadow_read": read,
    "shadow_free": free,
    "shadow_record": record,
    "shadow_late": _written,
    "shadow_read_listed": _read_listed,
}
"""How each function of ``shadows.functions`` is written, in their order."""
