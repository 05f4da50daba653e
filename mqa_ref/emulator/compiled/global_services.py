"""Services for loads from and stores to global memory; see ``accesses``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from llvmlite import ir

from mqa_ref.emulator.compiled import context as c
from mqa_ref.emulator.compiled import loop
from mqa_ref.emulator.compiled.services import SHAPES, TARGET_WORDS, TRUTH, Body, Define
from mqa_ref.emulator.compiled.vectors import BYTE, LANES, LONG, POINTER, WORD, Value, each
from mqa_ref.emulator.memory import FIRST_ADDRESS, SPACING

_SPACING_BITS = SPACING.bit_length() - 1
_SHORT = ir.IntType(16)
STORE_LINE, DATA = 1, 2
OFFSET, BASE, TARGETS = 0, 1, 2
"""Constants of a load: the offset of the address, where the register with the address lies, the destinations."""


def _buffer(body: Body, address: Value) -> Value:
    """The record of the buffer that an address lies in."""
    b = body.b
    number = b.lshr(b.sub(address, LONG(FIRST_ADDRESS)), LONG(_SPACING_BITS))
    body.decline_if(b.icmp_unsigned(">=", number, body.of_context(c.BUFFER_COUNT)))
    at = b.mul(number, LONG(c.BUFFER_WORDS))
    return b.gep(body.of_context(c.BUFFERS, POINTER), [at], source_etype=LONG)


class _Check:
    """Are accesses of ``size`` bytes whole within a buffer, at their alignment, and of a part that the CTA may read?"""

    def __init__(self, body: Body, record: Value, size: int) -> None:
        self.body, self.size = body, size
        self.start, self.end = (body.word(record, number) for number in (c.START, c.END))
        self.data = body.word(record, c.DATA)
        self.share = body.word(record, c.SHARE)

    def bad(self, address: Value) -> Value:
        """Is the access out of bounds or misaligned? Differences, for a sum could pass the top of the addresses."""
        b = self.body.b
        low = b.icmp_unsigned("<", address, self.start)
        past = b.icmp_unsigned(">", address, self.end)
        high = b.or_(past, b.icmp_unsigned("<", b.sub(self.end, address), LONG(self.size)))
        odd = b.icmp_unsigned("!=", b.and_(address, LONG(self.size - 1)), LONG(0))
        return b.or_(b.or_(low, high), odd)

    def decline_others(self, address: Value) -> None:
        """A part that belongs to other CTAs is Python's to report."""
        body, b = self.body, self.body.b
        with b.if_then(b.icmp_unsigned("!=", self.share, LONG(c.EVERYTHING))):
            at = b.inttoptr(b.add(self.share, b.sub(address, self.start)), POINTER)
            with each(b, LONG(self.size)) as number:
                mine = b.load(b.gep(at, [number], source_etype=BYTE), typ=BYTE)
                body.decline_if(b.icmp_unsigned("==", mine, BYTE(0)))

    def place(self, address: Value) -> Value:
        """Where the bytes at an address lie."""
        b = self.body.b
        return b.inttoptr(b.add(self.data, b.sub(address, self.start)), POINTER)


def _load(count: int, bits: int) -> Define:
    """Lanes may name any places of one buffer that no kernel writes."""
    size, kind = count * bits // 8, ir.IntType(bits)

    def define(body: Body) -> None:
        b = body.b
        places = [TARGETS + TARGET_WORDS * number for number in range(count)]
        body.decline_if(b.icmp_unsigned("==", body.of_frame(loop.OPEN), LONG(0)))
        for first in places:
            body.decline_taken(first)
        address = b.add(body.value(0), body.constant(OFFSET))
        record = _buffer(body, address)
        body.decline_if(b.icmp_unsigned("!=", body.word(record, c.WRITABLE), LONG(0)))
        check = _Check(body, record, size)
        body.decline_if(b.icmp_signed("==", check.share, LONG(c.NOT_KNOWN)))
        with b.if_then(b.icmp_unsigned("==", body.found, LONG(loop.UNIFORM))):
            body.decline_if(check.bad(address))
            check.decline_others(address)
            for number, first in enumerate(places):
                at = b.gep(check.place(address), [LONG(number)], source_etype=kind)
                body.put_all(first, b.load(at, typ=kind, align=1))
            body.done()
        with _lanes(body) as (_, address):
            body.decline_if(check.bad(address))
            check.decline_others(address)
        with _lanes(body) as (lane, address):
            for number, first in enumerate(places):
                at = b.gep(check.place(address), [LONG(number)], source_etype=kind)
                into = b.gep(body.register(first), [lane], source_etype=kind)
                b.store(b.load(at, typ=kind, align=1), into)
        for first in places:
            body.written(first)
        body.done()

    return define


def _store(count: int, bits: int) -> Define:
    """One lane, or lanes that follow each other. Constants: the offset of the address, the PTX line, where the
    registers with the data lie. Bytes that others wrote or read are Python's to judge.
    """
    size, kind = count * bits // 8, ir.IntType(bits)

    def define(body: Body) -> None:
        b = body.b
        lanes = body.active_lanes()
        apart = b.icmp_unsigned("!=", body.found, LONG(loop.IN_A_ROW))
        body.decline_if(b.and_(apart, b.icmp_unsigned(">", lanes, LONG(1))))
        address = b.add(body.value(0), body.constant(OFFSET))
        record = _buffer(body, address)
        check = _Check(body, record, size)
        body.decline_if(check.bad(address))
        length = b.mul(lanes, LONG(size))
        body.decline_if(b.icmp_unsigned(">", b.add(address, length), check.end))
        other = b.icmp_unsigned("==", body.word(record, c.WRITABLE), LONG(0))
        body.decline_if(b.or_(other, b.icmp_unsigned("!=", body.word(record, c.READ), LONG(0))))
        first = b.sub(address, check.start)
        shadow = _Written(body, record)
        checks = b.icmp_unsigned("!=", body.of_context(c.CHECKS), LONG(0))
        with b.if_then(checks), each(b, length) as number:
            body.decline_if(shadow.clashes(b.add(first, number)))
        begin = b.zext(b.cttz(body.active, TRUTH(0)), LONG)
        registers = body.of_frame(loop.REGISTERS, POINTER)
        with each(b, lanes) as lane:
            for number in range(count):
                file = b.gep(registers, [body.constant(DATA + number)], source_etype=BYTE)
                value = b.load(b.gep(file, [b.add(begin, lane)], source_etype=kind), typ=kind)
                into = b.gep(
                    check.place(address), [b.add(b.mul(lane, LONG(count)), LONG(number))], source_etype=kind
                )
                b.store(value, into, align=1)
        with each(b, length) as number:
            shadow.count(b.add(first, number))
        with b.if_then(checks), each(b, length) as number:
            shadow.record(b.add(first, number), body.constant(STORE_LINE))
        body.done()

    return define


class _Written:
    """What is known of the stores to the bytes of a buffer; see ``Allocation`` and ``global_shadow``."""

    def __init__(self, body: Body, record: Value) -> None:
        self.body, self.b = body, body.b
        self.arrays = {word: body.word(record, word, POINTER) for word in range(c.STORES, c.BUFFER_WORDS)}
        self.mine = self.b.trunc(body.of_context(c.NUMBER), WORD)
        self.agent, self.clock = body.of_frame(loop.INDEX), body.clock()

    def _at(self, word: int, byte: Value, kind: ir.Type) -> Value:
        return self.b.gep(self.arrays[word], [byte], source_etype=kind)

    def clashes(self, byte: Value) -> Value:
        """Was the byte written by another CTA, or by this one in no order with the store?"""
        b = self.b
        cta = b.load(self._at(c.WRITER_CTA, byte, WORD), typ=WORD)
        agent = b.sext(b.load(self._at(c.WRITER, byte, _SHORT), typ=_SHORT), LONG)
        then = b.load(self._at(c.TIME, byte, WORD), typ=WORD)
        late = b.icmp_signed(">", then, b.load(b.gep(self.clock, [agent], source_etype=WORD), typ=WORD))
        other = b.icmp_unsigned("!=", cta, b.add(self.mine, WORD(1)))
        return b.and_(b.icmp_unsigned("!=", cta, WORD(0)), b.or_(other, late))

    def count(self, byte: Value) -> None:
        """One more store to the byte, by this CTA."""
        b, place = self.b, self._at(c.STORES, byte, BYTE)
        before = b.load(place, typ=BYTE)
        most = b.icmp_unsigned("==", before, BYTE(255))
        b.store(b.select(most, before, b.add(before, BYTE(1))), place)
        b.store(self.mine, self._at(c.OWNER, byte, WORD))

    def record(self, byte: Value, line: Value) -> None:
        """The store is the last one."""
        b = self.b
        b.store(b.add(self.mine, WORD(1)), self._at(c.WRITER_CTA, byte, WORD))
        b.store(b.trunc(self.agent, _SHORT), self._at(c.WRITER, byte, _SHORT))
        now = b.load(b.gep(self.clock, [self.agent], source_etype=WORD), typ=WORD)
        b.store(now, self._at(c.TIME, byte, WORD))
        b.store(b.trunc(line, WORD), self._at(c.LINE, byte, WORD))


@contextmanager
def _lanes(body: Body) -> Iterator[tuple[Value, Value]]:
    """A loop over the active lanes: the number of each and its address."""
    b = body.b
    bases = b.gep(body.of_frame(loop.REGISTERS, POINTER), [body.constant(BASE)], source_etype=BYTE)
    with each(b, LONG(LANES)) as lane:
        bit = b.and_(b.lshr(body.active, b.trunc(lane, WORD)), WORD(1))
        with b.if_then(b.trunc(bit, TRUTH)):
            base = b.load(b.gep(bases, [lane], source_etype=LONG), typ=LONG)
            yield lane, b.add(base, body.constant(OFFSET))


def services() -> dict[str, Define]:
    """Name -> how it is written."""
    rows = {f"ld.global.{count}x{bits}": _load(count, bits) for count, bits in SHAPES}
    return rows | {f"st.global.{count}x{bits}": _store(count, bits) for count, bits in SHAPES}
