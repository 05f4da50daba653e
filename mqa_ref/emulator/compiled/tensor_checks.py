"""The race and fence checks of a product, of a load from tensor memory and of its wait, each in one call.

Each looks first and records only when it found nothing; else the interpreter's code looks again, records and reports.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from llvmlite import ir

from mqa_ref.emulator.compiled import native
from mqa_ref.emulator.compiled.shadow_code import at, field, free, gathered, now, read, record, unready
from mqa_ref.emulator.compiled.vectors import LONG, POINTER, WORD, Value, each
from mqa_ref.emulator.tmem import COLUMNS, PARTS

BAD, GOOD = 1, 0


def _refuse_if(b: ir.IRBuilder, condition: Value) -> None:
    with b.if_then(condition, likely=False):
        b.ret(WORD(BAD))


def _refuse(b: ir.IRBuilder, found: Value) -> None:
    _refuse_if(b, b.icmp_unsigned("!=", found, WORD(0)))


def _listed(b: ir.IRBuilder, lists: Value, number: int) -> tuple[Value, Value]:
    """Where a list of granules lies and how many there are."""
    count = b.load(b.gep(lists, [LONG(2 * number + 1)], source_etype=LONG), typ=LONG)
    return b.load(b.gep(lists, [LONG(2 * number)], source_etype=LONG), typ=POINTER), count


def _granule(b: ir.IRBuilder, listed: Value, number: Value) -> Value:
    return b.load(b.gep(listed, [number], source_etype=LONG), typ=LONG)


def _product(b: ir.IRBuilder, arguments: list[Value]) -> None:
    """(shared, tensor, lists, agent, clock, ordered, start, columns, accumulate): reads the listed granules of shared
    memory, and writes columns of all lanes, which it reads before where it accumulates."""
    shared, tensor, lists, agent, clock, ordered, start, columns, accumulate = arguments
    every = gathered(b, clock)
    for operand in range(2):
        listed, count = _listed(b, lists, operand)
        with each(b, count) as number:
            _refuse_if(b, unready(b, shared, _granule(b, listed, number), every))
    adds = b.icmp_unsigned("!=", accumulate, LONG(0))
    with each(b, LONG(PARTS)) as part:
        first = b.add(b.mul(part, LONG(COLUMNS)), start)
        with b.if_then(adds), each(b, columns) as number:
            _refuse_if(b, unready(b, tensor, b.add(first, number), every))
        for seen in (ordered, every):
            _refuse(b, free(b, tensor, first, columns, agent, seen))
    own = now(b, shared, agent, clock)
    row = at(b, field(b, shared, 2, POINTER), b.mul(agent, field(b, shared, 3, LONG)), WORD)
    for operand in range(2):
        listed, count = _listed(b, lists, operand)
        with each(b, count) as number:
            b.store(own, at(b, row, _granule(b, listed, number), WORD))
    with each(b, LONG(PARTS)) as part:
        first = b.add(b.mul(part, LONG(COLUMNS)), start)
        with b.if_then(adds):
            read(b, tensor, first, columns, agent, clock)
        record(b, tensor, first, columns, agent, clock)


def _load(b: ir.IRBuilder, arguments: list[Value]) -> None:
    """(tensor, first, count, agent, clock, ordered, stamp): a read, and the times of the last writes into ``stamp``."""
    tensor, first, count, agent, clock, ordered, stamp = arguments
    for seen in (gathered(b, clock), ordered):
        with each(b, count) as number:
            _refuse_if(b, unready(b, tensor, b.add(first, number), seen))
    read(b, tensor, first, count, agent, clock)
    times = at(b, field(b, tensor, 1, POINTER), first, WORD)
    with each(b, count) as number:
        b.store(b.load(at(b, times, number, WORD), typ=WORD), at(b, stamp, number, WORD))


def _wait(b: ir.IRBuilder, arguments: list[Value]) -> None:
    """(tensor, first, count, agent, clock, stamp): a read again, of what was not written since the stamp was taken."""
    tensor, first, count, agent, clock, stamp = arguments
    times = at(b, field(b, tensor, 1, POINTER), first, WORD)
    with each(b, count) as number:
        last, then = (b.load(at(b, array, number, WORD), typ=WORD) for array in (times, stamp))
        changed = b.icmp_unsigned("!=", last, then)
        _refuse_if(b, b.or_(changed, unready(b, tensor, b.add(first, number), gathered(b, clock))))
    read(b, tensor, first, count, agent, clock)


_KINDS: dict[str, tuple[Callable[[ir.IRBuilder, list[Value]], None], str]] = {
    "product": (_product, "ppplpplll"),
    "load": (_load, "plllppp"),
    "wait": (_wait, "plllpp"),
}
"""How each is written, and its arguments: pointers and 64-bit integers."""
_TYPES: dict[str, tuple[ir.Type, Any]] = {"p": (POINTER, ctypes.c_void_p), "l": (LONG, ctypes.c_int64)}


@cache
def checks() -> dict[str, Callable[..., int]]:
    """Name -> function; 0 says that the access is in order and recorded."""
    module = ir.Module("tensor-checks")
    for name, (body, kinds) in _KINDS.items():
        kind = ir.FunctionType(WORD, [_TYPES[one][0] for one in kinds])
        function = ir.Function(module, kind, f"check_{name}")
        b = ir.IRBuilder(function.append_basic_block())
        body(b, list(function.args))
        b.ret(WORD(GOOD))
    engine = native.link(str(module))
    return {
        name: ctypes.CFUNCTYPE(ctypes.c_int32, *(_TYPES[one][1] for one in kinds))(
            engine.get_function_address(f"check_{name}")
        )
        for name, (_, kinds) in _KINDS.items()
    }
