"""Machine code that looks up the operands of an instruction of Python: their values in the first active lane, and
whether every active lane has the same, or addresses follow each other.
"""

from __future__ import annotations

from llvmlite import ir

from mqa_ref.emulator.compiled import loop
from mqa_ref.emulator.compiled.vectors import (
    BYTE,
    LANES,
    LONG,
    POINTER,
    WORD,
    Value,
    each,
    repeat,
    scratch,
    vector,
)


def text() -> str:
    """LLVM text of i64 operands(registers, states, table, first, count, active, values): one of ``loop.UNKNOWN``,
    ``UNIFORM``, ``VARIED`` and ``IN_A_ROW``. ``count`` may be zero."""
    module = ir.Module("operands")
    arguments = [POINTER, POINTER, POINTER, WORD, WORD, WORD, POINTER]
    function = ir.Function(module, ir.FunctionType(LONG, arguments), "operands")
    registers, states, table, first, count, active, values = function.args
    b = ir.IRBuilder(function.append_basic_block())
    varied, gaps = scratch(b, WORD), scratch(b, WORD)
    b.store(WORD(0), varied)
    b.store(WORD(1), gaps)
    lane = b.cttz(active, ir.IntType(1)(0))
    need = b.or_(b.zext(active, LONG), LONG(-1 << LANES))
    present, done = b.append_basic_block(), b.append_basic_block()
    b.cbranch(b.icmp_signed("==", count, WORD(0)), done, present)
    b.position_at_end(present)
    with each(b, count) as number:
        record = b.gep(table, [b.mul(b.add(first, number), WORD(loop.OPERAND.itemsize))], source_etype=BYTE)
        place, register, width, step = (
            b.load(b.gep(record, [WORD(4 * field)], source_etype=BYTE), typ=WORD) for field in range(4)
        )
        state = b.load(b.gep(states, [register], source_etype=LONG), typ=LONG)
        with b.if_then(b.icmp_unsigned("!=", b.and_(state, need), LONG(0)), likely=False):
            b.ret(LONG(loop.UNKNOWN))
        pointer = b.gep(registers, [place], source_etype=BYTE)
        out = b.gep(values, [number], source_etype=LONG)
        for bits in (8, 16, 32, 64):
            with b.if_then(b.icmp_unsigned("==", width, WORD(bits))):
                same, lanes = _one(b, pointer, bits, lane, active, out, varied)
                if bits >= 32:
                    with b.if_then(b.icmp_unsigned("!=", step, WORD(0))):
                        b.store(_gaps(b, lanes, same, lane, active, step), gaps)
    b.branch(done)
    b.position_at_end(done)
    some = b.icmp_unsigned("!=", b.load(varied, typ=WORD), WORD(0))
    apart = b.icmp_unsigned("!=", b.load(gaps, typ=WORD), WORD(0))
    different = b.select(apart, LONG(loop.VARIED), LONG(loop.IN_A_ROW))
    b.ret(b.select(some, different, LONG(loop.UNIFORM)))
    return "\n".join(line for line in str(module).splitlines() if not line.startswith(("target", ";")))


def _one(
    b: ir.IRBuilder, pointer: Value, bits: int, lane: Value, active: Value, out: Value, varied: Value
) -> tuple[Value, Value]:
    """Store the value of the first active lane and note others; returns it in every lane, and the lanes."""
    kind = ir.IntType(bits)
    value = b.load(b.gep(pointer, [lane], source_etype=kind), typ=kind)
    b.store(value if bits == 64 else b.zext(value, LONG), out)
    lanes = b.load(pointer, typ=vector(bits, LANES), align=32)
    same = repeat(b, value, LANES)
    other = b.bitcast(b.icmp_unsigned("!=", lanes, same), WORD)
    b.store(b.or_(b.load(varied, typ=WORD), b.and_(other, active)), varied)
    return same, lanes


def _gaps(b: ir.IRBuilder, lanes: Value, first: Value, lane: Value, active: Value, step: Value) -> Value:
    """Not zero where an active lane does not hold the value of the one before it plus ``step``."""
    kind = lanes.type
    numbers = ir.Constant(kind, list(range(LANES)))
    start = b.zext(lane, kind.element) if kind.element != WORD else lane
    pitch = b.zext(step, kind.element) if kind.element != WORD else step
    ahead = b.mul(b.sub(numbers, repeat(b, start, LANES)), repeat(b, pitch, LANES))
    wrong = b.bitcast(b.icmp_unsigned("!=", b.sub(lanes, first), ahead), WORD)
    shifted = b.lshr(active, lane)
    holes = b.and_(shifted, b.add(shifted, WORD(1)))
    return b.or_(b.and_(wrong, active), holes)
