"""Services: instructions that need more than registers and are still executed in machine code, in their usual case.

A service first makes sure that nothing unusual is going on. Where something is, it changes nothing and says so, and the
instruction goes its way as without the service: to its short cut (``quick``), and to the interpreter, which makes every
finding. ``loop`` calls a service with the frame, the constants of the instruction, how its operands were found, and the
active lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from llvmlite import ir

from mqa_ref.emulator.clocks import CLOCK_WORDS
from mqa_ref.emulator.compiled import loop
from mqa_ref.emulator.compiled.layout import IN_FLIGHT, NEVER_WRITTEN
from mqa_ref.emulator.compiled.vectors import (
    ALIGNMENT,
    BYTE,
    LANES,
    LONG,
    POINTER,
    WORD,
    Value,
    each,
    repeat,
    splat,
    vector,
)

DECLINED, EXECUTED, WAITS, LEAVES = range(4)
"""What a service says: nothing was done; go on behind the instruction; it is executed and the warp waits, or leaves."""
TRUTH = ir.IntType(1)
SHAPES = tuple((count, bits) for count in (1, 2, 4) for bits in (8, 16, 32, 64) if count * bits <= 128)
"""Loads and stores of one lane: how many elements, of how many bits."""
TARGET_WORDS = 2
"""Constants that name a destination: the offset of the register in the file, and its number."""


@dataclass(frozen=True)
class Target:
    """A destination: its slot, -1 for a result that is not wanted."""

    slot: int


@dataclass(frozen=True)
class Place:
    """A register whose offset in the file is a constant."""

    slot: int


@dataclass(frozen=True)
class Service:
    """A service by name, and its constants: numbers, offsets, and destinations, which become two numbers each."""

    name: str
    constants: tuple[int | Target | Place, ...] = ()


class Body:
    """A service while it is written."""

    def __init__(self, function: ir.Function) -> None:
        self.b = ir.IRBuilder(function.append_basic_block())
        self.frame, self.constants, self.found, self.active = function.args
        self.values = self.b.gep(self.frame, [LONG(loop.VALUES)], source_etype=LONG)

    def word(self, pointer: Value, number: int | Value, kind: ir.Type = LONG) -> Value:
        """A 64-bit word behind a pointer, as an integer or a pointer."""
        at = LONG(number) if isinstance(number, int) else number
        return self.b.load(self.b.gep(pointer, [at], source_etype=LONG), typ=kind)

    def set_word(self, pointer: Value, number: int, value: Value) -> None:
        """Write a 64-bit word."""
        self.b.store(value, self.b.gep(pointer, [LONG(number)], source_etype=LONG))

    def constant(self, number: int) -> Value:
        """A constant of the instruction."""
        return self.word(self.constants, number)

    def value(self, number: int) -> Value:
        """An operand in the first active lane."""
        return self.word(self.values, number)

    def active_lanes(self) -> Value:
        """How many lanes are active."""
        return self.b.zext(self.b.ctpop(self.active), LONG)

    def of_frame(self, word: int, kind: ir.Type = LONG) -> Value:
        """A word of the frame."""
        return self.word(self.frame, word, kind)

    def of_context(self, word: int, kind: ir.Type = LONG) -> Value:
        """A word of the CTA's context."""
        return self.word(self.of_frame(loop.CONTEXT, POINTER), word, kind)

    def decline_if(self, condition: Value) -> None:
        """Leave everything to Python."""
        with self.b.if_then(condition, likely=False):
            self.b.ret(LONG(DECLINED))

    def uniform_only(self) -> None:
        """Only operands that are the same in every active lane are served."""
        self.decline_if(self.b.icmp_unsigned("!=", self.found, LONG(loop.UNIFORM)))

    def done(self, what: int = EXECUTED) -> None:
        """The end of the service."""
        self.b.ret(LONG(what))

    # destinations

    def state(self, first: int) -> Value:
        """Where the state of the destination lies whose constants begin at ``first``."""
        states = self.of_frame(loop.STATES, POINTER)
        return self.b.gep(states, [self.constant(first + 1)], source_etype=LONG)

    def decline_taken(self, first: int) -> None:
        """A destination that something in flight will write is left to Python."""
        flying = self.b.and_(self.b.load(self.state(first), typ=LONG), LONG(IN_FLIGHT - (1 << 64)))
        self.decline_if(self.b.icmp_unsigned("!=", flying, LONG(0)))

    def written(self, first: int) -> None:
        """The active lanes of a destination have a value."""
        lanes = self.b.xor(self.b.zext(self.active, LONG), LONG(NEVER_WRITTEN))
        place = self.state(first)
        self.b.store(self.b.and_(self.b.load(place, typ=LONG), lanes), place)

    def register(self, first: int) -> Value:
        """Where the destination lies."""
        return self.b.gep(self.of_frame(loop.REGISTERS, POINTER), [self.constant(first)], source_etype=BYTE)

    def put_all(self, first: int, value: Value) -> None:
        """The same value in the active lanes of a destination."""
        b, place = self.b, self.register(first)
        bits = value.type.width
        kind = vector(bits, LANES)
        align = min(ALIGNMENT, LANES * bits // 8)
        mask = b.bitcast(self.active, ir.VectorType(TRUTH, LANES))
        old = b.load(place, typ=kind, align=align)
        b.store(b.select(mask, repeat(b, value, LANES), old), place, align=align)
        self.written(first)

    # clocks

    def clock(self) -> Value:
        """Where the warp's clock lies."""
        return self.of_frame(loop.CLOCK, POINTER)

    def time(self, clock: Value, agent: Value) -> Value:
        """A component of a clock, as 64 bits."""
        return self.b.sext(self.b.load(self.b.gep(clock, [agent], source_etype=WORD), typ=WORD), LONG)

    def join(self, into: Value, other: Value) -> None:
        """Take the later of each component of two clocks."""
        b, wide = self.b, 8
        with each(b, LONG(CLOCK_WORDS // wide)) as group:
            at = b.mul(group, LONG(wide))
            here = b.gep(into, [at], source_etype=WORD)
            mine = b.load(here, typ=vector(32, wide), align=4)
            theirs = b.load(b.gep(other, [at], source_etype=WORD), typ=vector(32, wide), align=4)
            later = b.select(b.icmp_signed(">", mine, theirs), mine, theirs)
            b.store(later, here, align=4)

    def stamp(self, clock: Value, begin: int) -> None:
        """Set the warp's component of a kind of times, which begins there, in a clock to its present time."""
        index = self.of_frame(loop.INDEX)
        now = self.b.load(self.b.gep(self.clock(), [index], source_etype=WORD), typ=WORD)
        self.b.store(now, self.b.gep(clock, [self.b.add(index, LONG(begin))], source_etype=WORD))

    def tick(self) -> None:
        """A new epoch of the warp."""
        place = self.b.gep(self.clock(), [self.of_frame(loop.INDEX)], source_etype=WORD)
        self.b.store(self.b.add(self.b.load(place, typ=WORD), WORD(1)), place)


assert CLOCK_WORDS % 8 == 0

Define = Callable[[Body], None]


@cache
def services() -> dict[str, Define]:
    """Every service by name."""
    from mqa_ref.emulator.compiled import barrier_services, global_services, shared_services

    return {**barrier_services.services(), **global_services.services(), **shared_services.services()}


def define(function: ir.Function, name: str) -> None:
    """i64 service(frame, constants, found, active)."""
    body = Body(function)
    services()[name](body)


def kind() -> ir.FunctionType:
    """The type of services."""
    return ir.FunctionType(LONG, [POINTER, POINTER, LONG, WORD])


def ones() -> Value:
    """True for every lane, as a predicate is kept."""
    return splat(1, 8, LANES)
