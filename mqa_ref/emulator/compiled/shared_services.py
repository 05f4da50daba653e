"""Services for loads from shared memory; see ``accesses``."""

from __future__ import annotations

from llvmlite import ir

from mqa_ref.emulator.compiled import context as c
from mqa_ref.emulator.compiled import loop
from mqa_ref.emulator.compiled.services import SHAPES, TARGET_WORDS, Body, Define
from mqa_ref.emulator.compiled.shadow_code import at, field, gathered, now, unready
from mqa_ref.emulator.compiled.vectors import BYTE, LANES, LONG, POINTER, WORD, Value, each
from mqa_ref.emulator.memory import SHARED_BASE


def _load(count: int, bits: int) -> Define:
    """All lanes load from one place, or from places that follow each other. Constants: the offset of the address, the
    destinations."""
    size, kind = count * bits // 8, ir.IntType(bits)
    places = [1 + TARGET_WORDS * number for number in range(count)]

    def define(body: Body) -> None:
        b = body.b
        body.decline_if(b.icmp_signed("!=", body.active, WORD(-1)))
        uniform = b.icmp_unsigned("==", body.found, LONG(loop.UNIFORM))
        in_a_row = b.icmp_unsigned("==", body.found, LONG(loop.IN_A_ROW))
        body.decline_if(b.not_(b.or_(uniform, in_a_row)))
        for first in places:
            body.decline_taken(first)
        address = b.add(body.value(0), body.constant(0))
        offset = b.sub(address, LONG(SHARED_BASE))
        length = b.select(uniform, LONG(size), LONG(size * LANES))
        end = b.add(offset, length)
        body.decline_if(b.icmp_unsigned("!=", b.and_(address, LONG(size - 1)), LONG(0)))
        for place in (offset, end):  # both: an address in a 64-bit register can be so high that the end wraps
            body.decline_if(b.icmp_unsigned(">", place, body.of_context(c.SHARED_BYTES)))
        _check(body, offset, end)
        data = b.gep(body.of_context(c.SHARED, POINTER), [offset], source_etype=BYTE)
        with b.if_then(uniform):
            for number, first in enumerate(places):
                one = b.gep(data, [LONG(number)], source_etype=kind)
                body.put_all(first, b.load(one, typ=kind, align=1))
            body.done()
        with each(b, LONG(LANES)) as lane:
            for number, first in enumerate(places):
                one = b.gep(data, [b.add(b.mul(lane, LONG(count)), LONG(number))], source_etype=kind)
                into = b.gep(body.register(first), [lane], source_etype=kind)
                b.store(b.load(one, typ=kind, align=1), into)
        for first in places:
            body.written(first)
        body.done()

    return define


def _check(body: Body, offset: Value, end: Value) -> None:
    """Decline what is a barrier, or a conflict; record the read of everything else."""
    b, bits = body.b, body.of_context(c.GRANULE_BITS)
    first = b.lshr(offset, bits)
    count = b.sub(b.add(b.lshr(b.sub(end, LONG(1)), bits), LONG(1)), first)
    barriers = body.of_context(c.BARRIER_BYTES, POINTER)
    with each(b, count) as number:
        barrier = b.load(at(b, barriers, b.add(first, number), BYTE), typ=BYTE)
        body.decline_if(b.icmp_unsigned("!=", barrier, BYTE(0)))
    shadow = body.of_context(c.SHADOW, POINTER)
    with b.if_then(b.icmp_unsigned("!=", body.of_context(c.SHADOW), LONG(0))):
        agent, every = body.of_frame(loop.INDEX), gathered(b, body.clock())
        known = body.time(every, agent)
        body.decline_if(b.icmp_signed(">", body.of_frame(loop.STORED), known))
        with each(b, count) as number:
            body.decline_if(unready(b, shadow, b.add(first, number), every))
        row = at(b, field(b, shadow, 2, POINTER), b.mul(agent, field(b, shadow, 3, LONG)), WORD)
        own = now(b, shadow, agent, body.clock())
        with each(b, count) as number:
            b.store(own, at(b, row, b.add(first, number), WORD))


def services() -> dict[str, Define]:
    """Name -> how it is written."""
    return {f"ld.shared.{count}x{bits}": _load(count, bits) for count, bits in SHAPES}
