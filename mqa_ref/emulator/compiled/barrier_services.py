"""Services for barriers of all kinds, ``griddepcontrol.wait`` and the end of a warp; see ``synchronise``."""

from __future__ import annotations

from mqa_ref.emulator.barriers import MAX_COUNT
from mqa_ref.emulator.clocks import CLOCK_WORDS, FENCED, GATHERED
from mqa_ref.emulator.compiled import context as c
from mqa_ref.emulator.compiled import loop
from mqa_ref.emulator.compiled.services import (
    EXECUTED,
    LEAVES,
    WAITS,
    Body,
    Define,
)
from mqa_ref.emulator.compiled.vectors import BYTE, LANES, LONG, POINTER, Value, each
from mqa_ref.emulator.compiled.warp import MOST_SIGNALS, SIGNAL_WORDS
from mqa_ref.emulator.memory import SHARED_BASE


def _clocks(body: Body, record: Value) -> tuple[Value, Value]:
    """Where the clocks of a barrier lie: of arrivals, and of what a thread acquires."""
    start = c.HEAD_WORDS * 8
    places = (start, start + 4 * CLOCK_WORDS)
    first, second = (body.b.gep(record, [LONG(at)], source_etype=BYTE) for at in places)
    return first, second


def _slot(body: Body) -> tuple[Value, Value]:
    """The place of the mbarrier that the first operand names, in units, and where its number is kept."""
    b = body.b
    offset = b.sub(b.add(body.value(0), body.constant(0)), LONG(SHARED_BASE))
    slot = b.lshr(offset, LONG(3))
    apart = b.icmp_unsigned("!=", b.and_(offset, LONG(c.UNIT - 1)), LONG(0))
    body.decline_if(b.or_(apart, b.icmp_unsigned(">=", slot, body.of_context(c.SLOT_COUNT))))
    return slot, b.gep(body.of_context(c.SLOTS, POINTER), [slot], source_etype=BYTE)


def _record(body: Body, number: Value) -> Value:
    """Where a record of an mbarrier lies."""
    at = body.b.mul(number, LONG(c.RECORD_WORDS))
    return body.b.gep(body.of_context(c.MBARRIERS, POINTER), [at], source_etype=LONG)


def _mbarrier(body: Body) -> Value:
    """The record of the mbarrier that the first operand names, which the warp may use."""
    b = body.b
    number = b.zext(b.load(_slot(body)[1], typ=BYTE), LONG)
    body.decline_if(b.icmp_unsigned("==", number, LONG(0)))
    record = _record(body, b.sub(number, LONG(1)))
    seen = body.time(body.clock(), body.word(record, c.INITIALISER))
    body.decline_if(b.icmp_signed(">", body.word(record, c.INIT_CLOCK), seen))
    return record


def _init(body: Body) -> None:
    """Constant: the offset of the address."""
    body.uniform_only()
    b, count = body.b, body.value(1)
    body.decline_if(b.icmp_unsigned(">=", b.sub(count, LONG(1)), LONG(MAX_COUNT)))
    slot, place = _slot(body)
    used = body.of_context(c.USED)
    body.decline_if(b.icmp_unsigned("!=", b.load(place, typ=BYTE), BYTE(0)))
    body.decline_if(b.icmp_signed("==", used, LONG(c.MOST_MBARRIERS)))
    record, now = _record(body, used), b.add(used, LONG(1))
    index = body.of_frame(loop.INDEX)
    written = {
        c.PENDING: count,
        c.COUNT: count,
        c.INITIALISER: index,
        c.INIT_CLOCK: body.time(body.clock(), index),
    }
    for word, value in written.items():
        body.set_word(record, word, value)
    b.store(b.trunc(now, BYTE), place)
    body.set_word(body.of_frame(loop.CONTEXT, POINTER), c.USED, now)
    granules = body.of_context(c.UNIT_GRANULES)
    noted = b.gep(body.of_context(c.BARRIER_BYTES, POINTER), [b.mul(slot, granules)], source_etype=BYTE)
    with each(b, granules) as number:
        b.store(BYTE(1), b.gep(noted, [number], source_etype=BYTE))
    body.done()


def _init_fence(body: Body) -> None:
    """fence.mbarrier_init: the warp's mbarriers may be signalled by asynchronous operations."""
    b, used, index = body.b, body.of_context(c.USED), body.of_frame(loop.INDEX)
    body.decline_if(b.icmp_signed("==", used, LONG(c.MOST_MBARRIERS)))
    body.decline_if(b.icmp_signed("==", used, LONG(0)))
    now = b.add(body.time(body.clock(), index), LONG(1))
    with each(b, used) as number:
        record = _record(body, number)
        mine = b.icmp_signed("==", body.word(record, c.INITIALISER), index)
        first = b.icmp_signed("==", body.word(record, c.FENCED), LONG(0))
        with b.if_then(b.and_(mine, first)):
            body.set_word(record, c.FENCED, now)
    body.done()


def _wait(body: Body) -> None:
    """Constants: the offset of the address, the predicate. A phase that is not over is Python's."""
    body.uniform_only()
    body.decline_taken(1)
    record = _mbarrier(body)
    b = body.b
    differ = b.xor(body.word(record, c.PHASE), body.value(1))
    body.decline_if(b.icmp_unsigned("==", b.and_(differ, LONG(1)), LONG(0)))
    body.join(body.clock(), _clocks(body, record)[1])
    body.put_all(1, BYTE(1))
    body.done()


def _note(body: Body, signals: Value) -> None:
    """These lanes signal something, not their whole warp; see ``lanes_of_warps``."""
    b, count = body.b, body.word(signals, 0)
    entry = b.gep(signals, [b.add(b.mul(count, LONG(SIGNAL_WORDS)), LONG(1))], source_etype=LONG)
    now = body.time(body.clock(), body.of_frame(loop.INDEX))
    for word, value in enumerate((now, b.zext(body.active, LONG), body.constant(3))):
        body.set_word(entry, word, value)
    body.set_word(signals, 0, b.add(count, LONG(1)))


def _arrive(*, expects: bool, counted: bool) -> Define:
    """Constants: the offset of the address, the state that it returns (two words), the PTX line."""

    def define(body: Body) -> None:
        body.uniform_only()
        body.decline_taken(1)
        b = body.b
        some = b.icmp_signed("!=", body.active, body.active.type(-1))
        checks = b.icmp_unsigned("!=", body.of_context(c.CHECKS), LONG(0))
        notes = b.and_(some, checks)
        signals = body.of_frame(loop.SIGNALS, POINTER)
        full = b.icmp_signed("==", body.word(signals, 0), LONG(MOST_SIGNALS))
        some_left = b.icmp_unsigned("==", body.of_frame(loop.ALL_ALIVE), LONG(0))
        body.decline_if(b.and_(notes, b.or_(full, some_left)))
        record = _mbarrier(body)
        lanes = body.active_lanes()
        argument = body.value(1) if counted else LONG(1)
        count = lanes if expects else b.mul(lanes, argument)
        pending, tx = body.word(record, c.PENDING), body.word(record, c.TX)
        if expects:
            tx = b.add(tx, b.mul(argument, lanes))
        body.decline_if(b.icmp_signed(">", count, pending))
        for bound, sign in ((MAX_COUNT, ">"), (-MAX_COUNT, "<")):
            body.decline_if(b.icmp_signed(sign, tx, LONG(bound)))
        left = b.sub(pending, count)
        arriving, released = _clocks(body, record)
        body.set_word(record, c.PENDING, left)
        body.set_word(record, c.TX, tx)
        body.join(arriving, body.clock())
        with b.if_else(notes) as (part, whole):
            with part:
                _note(body, signals)
            with whole:
                body.stamp(arriving, GATHERED)
        with b.if_then(b.icmp_signed("==", b.or_(left, tx), LONG(0))):
            body.set_word(record, c.PHASE, b.add(body.word(record, c.PHASE), LONG(1)))
            body.set_word(record, c.PENDING, body.word(record, c.COUNT))
            body.join(released, arriving)
        body.put_all(1, LONG(0))
        body.tick()
        body.done()

    return define


def _meet(*, counted: bool) -> Define:
    """bar.sync of a whole warp. The last to arrive goes on, others wait in Python."""

    def define(body: Body) -> None:
        body.uniform_only()
        b = body.b
        body.decline_if(b.icmp_signed("!=", body.active, body.active.type(-1)))
        which, threads = body.value(0), body.of_context(c.THREADS)
        expected = body.value(1) if counted else threads
        body.decline_if(b.icmp_unsigned(">=", which, LONG(c.NAMED_BARRIERS)))
        body.decline_if(b.icmp_unsigned("!=", b.and_(expected, LONG(LANES - 1)), LONG(0)))
        body.decline_if(b.icmp_unsigned(">=", b.sub(expected, LONG(1)), threads))
        at = b.mul(which, LONG(c.RECORD_WORDS))
        record = b.gep(body.of_context(c.NAMED, POINTER), [at], source_etype=LONG)
        arrived = body.word(record, c.ARRIVED)
        other = b.icmp_unsigned("!=", body.word(record, c.EXPECTED), expected)
        body.decline_if(b.and_(b.icmp_unsigned("!=", arrived, LONG(0)), other))
        now = b.add(arrived, LONG(LANES))
        arriving, released = _clocks(body, record)
        body.set_word(record, c.EXPECTED, expected)
        body.join(arriving, body.clock())
        body.stamp(arriving, GATHERED)
        body.tick()
        with b.if_then(b.icmp_signed("<", now, expected)):
            body.set_word(record, c.ARRIVED, now)
            b.ret(LONG(WAITS))
        body.set_word(record, c.ARRIVED, LONG(0))
        body.set_word(record, c.GENERATION, b.add(body.word(record, c.GENERATION), LONG(1)))
        body.join(released, arriving)
        body.join(body.clock(), released)
        body.done()

    return define


def _stamped(begin: int) -> Define:
    """What all lanes of a warp did is noted in the warp's own clock."""

    def define(body: Body) -> None:
        body.decline_if(body.b.icmp_signed("!=", body.active, body.active.type(-1)))
        body.stamp(body.clock(), begin)
        body.tick()
        body.done()

    return define


def _grid_wait(body: Body) -> None:
    body.set_word(body.frame, loop.OPEN, LONG(1))
    body.done(EXECUTED)


def _leave(body: Body) -> None:
    body.done(LEAVES)


def services() -> dict[str, Define]:
    """Name -> how it is written."""
    rows: dict[str, Define] = {"mbarrier.wait": _wait, "grid.wait": _grid_wait, "leave": _leave}
    rows |= {"warp.sync": _stamped(GATHERED), "tensor.before": _stamped(FENCED)}
    rows |= {"mbarrier.init": _init, "mbarrier.init_fence": _init_fence}
    rows |= {f"bar.sync.{int(counted)}": _meet(counted=counted) for counted in (False, True)}
    for expects in (False, True):
        for counted in (False, True):
            rows[f"mbarrier.arrive.{int(expects)}{int(counted)}"] = _arrive(expects=expects, counted=counted)
    return rows
