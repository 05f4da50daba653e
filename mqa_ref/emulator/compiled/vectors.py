"""What every vector kernel is written with: LLVM vectors of lanes, of integers, floats or truth values.

A kernel works on eight lanes at a time, four times over; one in which lanes read each other works on all 32 at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

LANES, GROUP = 32, 8
POINTER = ir.PointerType()
BYTE, WORD, LONG = ir.IntType(8), ir.IntType(32), ir.IntType(64)
FLOATS = {16: ir.HalfType(), 32: ir.FloatType(), 64: ir.DoubleType()}
ALIGNMENT = 64
"""Bytes; every register of the flat file starts at a multiple of it."""

Value = Any
Emit = Callable[..., Any]


@dataclass(frozen=True)
class Kernel:
    """One operation on whole registers: the bits of its results and sources (1 stands for a predicate) and ``emit``,
    which turns the sources' vectors into the results'. ``moves``: the sources may still be in flight, and the results
    then are. ``exchanges``: lanes read each other, so all 32 must be active. ``broadcasts``:
    the results are scalars that lie one behind the other where the first source points.
    """

    results: tuple[int, ...]
    sources: tuple[int, ...]
    emit: Emit
    moves: bool = False
    exchanges: bool = False
    broadcasts: bool = False


def vector(bits: int, count: int = GROUP) -> ir.VectorType:
    """The type of ``count`` integers."""
    return ir.VectorType(ir.IntType(bits), count)


def splat(value: int, bits: int, count: int = GROUP) -> ir.Constant:
    """The same integer in every lane."""
    return ir.Constant(vector(bits, count), [value & ((1 << bits) - 1)] * count)


def floats(b: ir.IRBuilder, bits: Value) -> Value:
    """Bit patterns as floating-point numbers of their width."""
    return b.bitcast(bits, ir.VectorType(FLOATS[bits.type.element.width], bits.type.count))


def integers(b: ir.IRBuilder, numbers: Value) -> Value:
    """Floating-point numbers as bit patterns."""
    width = {ir.HalfType(): 16, ir.FloatType(): 32, ir.DoubleType(): 64}[numbers.type.element]
    return b.bitcast(numbers, vector(width, numbers.type.count))


def load_lanes(b: ir.IRBuilder, pointer: Value, bits: int, count: int = GROUP) -> Value:
    """A register, or a part of it; predicates are bytes in memory and truth values here."""
    if bits == 1:
        stored = b.load(pointer, typ=vector(8, count), align=min(count, ALIGNMENT))
        return b.icmp_unsigned("!=", stored, splat(0, 8, count))
    return b.load(pointer, typ=vector(bits, count), align=min(count * bits // 8, ALIGNMENT))


def store_lanes(b: ir.IRBuilder, pointer: Value, value: Value, bits: int, active: Value | None) -> None:
    """Write a register in the lanes that the truth values ``active`` choose, or in all of them."""
    count = value.type.count
    if bits == 1:
        value, bits = b.zext(value, vector(8, count)), 8
    align = min(count * bits // 8, ALIGNMENT)
    if active is not None:
        value = b.select(active, value, b.load(pointer, typ=vector(bits, count), align=align))
    b.store(value, pointer, align=align)


def call_intrinsic(b: ir.IRBuilder, name: str, arguments: Sequence[Value]) -> Value:
    """Call an LLVM intrinsic whose arguments and result have one type."""
    kind = arguments[0].type
    element = {ir.HalfType(): "f16", ir.FloatType(): "f32", ir.DoubleType(): "f64"}.get(kind.element)
    full = f"llvm.{name}.v{kind.count}{element or f'i{kind.element.width}'}"
    function = b.module.globals.get(full)
    if function is None:
        function = ir.Function(b.module, ir.FunctionType(kind, [a.type for a in arguments]), full)
    return b.call(function, arguments)


def repeat(b: ir.IRBuilder, value: Value, count: int = GROUP) -> Value:
    """One number in every place of a vector."""
    nothing = ir.Constant(ir.VectorType(value.type, count), ir.Undefined)
    return b.shuffle_vector(b.insert_element(nothing, value, WORD(0)), nothing, splat(0, 32, count))


def scratch(b: ir.IRBuilder, kind: ir.Type) -> Value:
    """An aligned place on the stack."""
    with b.goto_entry_block():
        place = b.alloca(kind)
    place.align = ALIGNMENT
    place.type = POINTER
    return place


@contextmanager
def each(b: ir.IRBuilder, count: int | Value) -> Iterator[Value]:
    """A loop whose body runs with the numbers 0 to ``count`` - 1, at least once."""
    most = WORD(count) if isinstance(count, int) else count
    one = most.type(1)
    before = b.block
    body, after = b.append_basic_block(), b.append_basic_block()
    b.branch(body)
    b.position_at_end(body)
    number = b.phi(most.type)
    number.add_incoming(most.type(0), before)
    yield number
    following = b.add(number, one)
    number.add_incoming(following, b.block)
    b.cbranch(b.icmp_unsigned("<", following, most), body, after)
    b.position_at_end(after)
