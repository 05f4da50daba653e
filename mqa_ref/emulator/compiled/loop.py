"""The machine code that runs a table of instructions until one is met that Python must execute.

State of a register: a 64-bit word. The low half has the bit of each lane in which it was never written, the high half
is all ones while a tcgen05.ld is filling it. An instruction whose sources are not there for the active lanes, or whose
destination is being filled, is left to Python, which executes it as the interpreter does and makes the findings.

A warp that splits in two goes on here: the fragment with the lower counter runs until it meets or passes the other.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

PYTHON, NOTHING, COMPUTE, MOVE, EXCHANGE, BRANCH = range(6)
"""What an entry of the table is: left to Python, without effect, a kernel, a kernel that passes on what is in flight, a
kernel for 32 active lanes, a branch."""

ENTRY = np.dtype(
    [
        ("kernel", "u8"),
        ("kind", "i4"),
        ("target", "i4"),
        ("place", "i4", 6),
        ("register", "i4", 6),
        ("negated", "i4"),
        ("count", "i4"),
        ("first", "i4"),
        ("spare", "i4"),
        ("constants", "u8"),
    ]
)
"""``place`` and ``register``: byte offset and number of two destinations, three sources and the guard (number -1: no
guard). ``negated``: all ones for @!p. ``first`` and ``count``: the operands to look up for an instruction of Python,
``constants``: where those of its service lie, which is its ``kernel``."""
OPERAND = np.dtype([("place", "i4"), ("register", "i4"), ("width", "i4"), ("step", "i4")])
"""``step``: for an address, the bytes from one lane to the next if they are to follow each other; else 0."""

(
    REGISTERS,
    STATES,
    TABLE,
    OPERANDS,
    ACTIVE,
    COUNTER,
    LIMIT,
    STOP,
    SINK,
    OTHER_COUNTER,
    OTHER_ACTIVE,
    STATUS,
) = range(12)
CONTEXT, CLOCK, INDEX, OPEN, STORED, SIGNALS, ALL_ALIVE = range(STATUS + 1, STATUS + 8)
"""64-bit words of a frame: where the registers, their states, the table and its operands lie, the active lanes, the
program counter, the most instructions to execute, the counter at or past which to stop (where another fragment waits),
the number of the register that stands for no destination, counter and lanes of the one other fragment, why the loop was
left. For services: where the CTA's context and the warp's clock lie, the warp's number, may it read global memory, when
it last stored to shared memory, where its signals are noted, and whether no lane has left."""
NOWHERE = 1 << 40
"""The counter of a fragment that does not exist."""
VALUES = 24
"""The first of the words that the operands of an instruction of Python are put in: those of its first active lane."""
MOST_OPERANDS = 16
FRAME_WORDS = VALUES + MOST_OPERANDS
STOPPED, UNKNOWN, UNIFORM, VARIED, IN_A_ROW, WAITS, LEAVES = range(7)
"""Why the loop was left: the limit or another fragment; an instruction of Python of whose operands nothing is known;
one whose operands are there: the same in every active lane, or different, or addresses without a gap; one that a
service has executed, so that the warp waits, or its lanes leave."""


@cache
def entry_point() -> Any:
    """i64 run(frame): the instructions executed; the frame's counter is moved on."""
    from mqa_ref.emulator.compiled import native, operands

    engine = native.link(_text() + operands.text())
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(engine.get_function_address("run"))


def _text() -> str:
    sizes = {name: ENTRY.fields[name][1] for name in ENTRY.names or ()} if ENTRY.fields else {}
    lines = [_HEAD, *_frame()]
    lines.append(_FETCH.format(size=ENTRY.itemsize, **sizes))
    for name, base, count in (("p", sizes["place"], 6), ("n", sizes["register"], 6)):
        for number in range(count):
            lines.append(f"  %{name}{number}_at = getelementptr i8, ptr %entry, i64 {base + 4 * number}")
            lines.append(f"  %{name}{number} = load i32, ptr %{name}{number}_at")
            lines.append(f"  %{name}{number}_wide = sext i32 %{name}{number} to i64")
    for number in range(5):
        lines.append(f"  %r{number} = getelementptr i8, ptr %registers, i64 %p{number}_wide")
        lines.append(f"  %s{number} = getelementptr i64, ptr %states, i64 %n{number}_wide")
    lines.append(_BODY.replace("NOWHERE", str(NOWHERE)).replace("{constants}", str(sizes["constants"])))
    return "\n".join(lines)


def _frame() -> list[str]:
    """Loads the words of the frame."""
    lines: list[str] = []
    names = "registers states table operands active_wide first limit stop sink other_counter other_wide"
    for word, name in enumerate(names.split()):
        kind = "ptr" if word <= OPERANDS else "i64"
        lines.append(f"  %{name}_at = getelementptr i64, ptr %frame, i64 {word}")
        lines.append(f"  %{name} = load {kind}, ptr %{name}_at")
    lines.append(f"  %status_at = getelementptr i64, ptr %frame, i64 {STATUS}")
    lines.append(f"  %values = getelementptr i64, ptr %frame, i64 {VALUES}")
    lines.append("  %sink_state = getelementptr i64, ptr %states, i64 %sink")
    for name in ("active", "other"):
        lines.append(f"  %{name}_lanes = trunc i64 %{name}_wide to i32")
    lines.append(f"  %alone_allowed = icmp sge i64 %stop, {NOWHERE}")
    lines.append("  br label %fetch")
    return lines


_HEAD = "define i64 @run(ptr %frame) {\nentry_block:"
_FETCH = """fetch:
  %pc = phi i64 [ %first, %entry_block ], [ %to, %go ]
  %count = phi i64 [ 0, %entry_block ], [ %counted, %go ]
  %now = phi i32 [ %active_lanes, %entry_block ], [ %to_active, %go ]
  %there = phi i64 [ %other_counter, %entry_block ], [ %to_there, %go ]
  %resting = phi i32 [ %other_lanes, %entry_block ], [ %to_resting, %go ]
  %now_wide = zext i32 %now to i64
  %offset = mul i64 %pc, {size}
  %entry = getelementptr i8, ptr %table, i64 %offset
  %kernel = load ptr, ptr %entry
  %kind_at = getelementptr i8, ptr %entry, i64 {kind}
  %kind = load i32, ptr %kind_at
  %target_at = getelementptr i8, ptr %entry, i64 {target}
  %target = load i32, ptr %target_at
  %negated_at = getelementptr i8, ptr %entry, i64 {negated}
  %negated = load i32, ptr %negated_at
  %first_operand_at = getelementptr i8, ptr %entry, i64 {first}
  %first_operand = load i32, ptr %first_operand_at
  %operand_count_at = getelementptr i8, ptr %entry, i64 {count}
  %operand_count = load i32, ptr %operand_count_at
  %following = add i64 %pc, 1"""
_BODY = """  switch i32 %kind, label %guard [ i32 0, label %python  i32 1, label %step ]
python:
  %unknown = icmp slt i32 %operand_count, 0
  br i1 %unknown, label %leave, label %guard
guard:
  %unguarded = icmp slt i32 %n5, 0
  br i1 %unguarded, label %chosen, label %guarded
guarded:
  %guard_state_at = getelementptr i64, ptr %states, i64 %n5_wide
  %guard_state = load i64, ptr %guard_state_at
  %guard_need = or i64 %now_wide, -4294967296
  %guard_missing = and i64 %guard_state, %guard_need
  %guard_bad = icmp ne i64 %guard_missing, 0
  br i1 %guard_bad, label %leave, label %guard_known
guard_known:
  %guard_at = getelementptr i8, ptr %registers, i64 %p5_wide
  %truth_bytes = load <32 x i8>, ptr %guard_at, align 32
  %truth = icmp ne <32 x i8> %truth_bytes, zeroinitializer
  %truth_bits = bitcast <32 x i1> %truth to i32
  %truth_flipped = xor i32 %truth_bits, %negated
  %truth_active = and i32 %truth_flipped, %now
  br label %chosen
chosen:
  %taken = phi i32 [ %now, %guard ], [ %truth_active, %guard_known ]
  %none = icmp eq i32 %taken, 0
  br i1 %none, label %step, label %some
some:
  %taken_wide = zext i32 %taken to i64
  switch i32 %kind, label %check [ i32 0, label %look_up  i32 5, label %branch ]
look_up:
  %as_active = icmp eq i32 %taken, %now
  br i1 %as_active, label %operands_of, label %leave
operands_of:
  %found = call i64 @operands(ptr %registers, ptr %states, ptr %operands, i32 %first_operand, i32 %operand_count,
    i32 %taken, ptr %values)
  %unserved = icmp eq ptr %kernel, null
  %unfound = icmp eq i64 %found, 1
  %unasked = or i1 %unserved, %unfound
  br i1 %unasked, label %leave, label %serve
serve:
  %constants_at = getelementptr i8, ptr %entry, i64 {constants}
  %constants = load ptr, ptr %constants_at
  %said = call i64 %kernel(ptr %frame, ptr %constants, i64 %found, i32 %taken)
  %declined = icmp eq i64 %said, 0
  %told = add i64 %said, 3
  %served = select i1 %declined, i64 %found, i64 %told
  switch i64 %said, label %leave [ i64 1, label %step ]
branch:
  %uniform = icmp eq i32 %taken, %now
  %target_wide = sext i32 %target to i64
  br i1 %uniform, label %step, label %diverge
diverge:
  %nobody = icmp sge i64 %there, NOWHERE
  %forward = icmp slt i64 %following, %target_wide
  %backward = icmp slt i64 %target_wide, %following
  %apart_by = or i1 %forward, %backward
  %may = and i1 %nobody, %alone_allowed
  %can_split = and i1 %may, %apart_by
  br i1 %can_split, label %split, label %leave
split:
  %others = xor i32 %taken, %now
  %lower = select i1 %backward, i64 %target_wide, i64 %following
  %upper = select i1 %backward, i64 %following, i64 %target_wide
  %lower_lanes = select i1 %backward, i32 %taken, i32 %others
  %upper_lanes = select i1 %backward, i32 %others, i32 %taken
  br label %step
check:
  %is_move = icmp eq i32 %kind, 3
  %strict = or i64 %taken_wide, -4294967296
  %need = select i1 %is_move, i64 %taken_wide, i64 %strict
  %a = load i64, ptr %s2
  %b = load i64, ptr %s3
  %c = load i64, ptr %s4
  %ab = or i64 %a, %b
  %abc = or i64 %ab, %c
  %missing = and i64 %abc, %need
  %d = load i64, ptr %s0
  %e = load i64, ptr %s1
  %de = or i64 %d, %e
  %taken_away = and i64 %de, -4294967296
  %unready = or i64 %missing, %taken_away
  %bad = icmp ne i64 %unready, 0
  br i1 %bad, label %leave, label %whole
whole:
  %is_exchange = icmp eq i32 %kind, 4
  %all = icmp eq i32 %taken, -1
  %partial = xor i1 %all, true
  %apart = and i1 %is_exchange, %partial
  br i1 %apart, label %leave, label %execute
execute:
  call void %kernel(ptr %r0, ptr %r1, ptr %r2, ptr %r3, ptr %r4, i32 %taken)
  %lanes_kept = xor i64 %taken_wide, -1
  %kept = select i1 %all, i64 0, i64 %lanes_kept
  %d_new = and i64 %d, %kept
  store i64 %d_new, ptr %s0
  %e_new = and i64 %e, %kept
  store i64 %e_new, ptr %s1
  br i1 %is_move, label %pass_on, label %step
pass_on:
  %a2 = load i64, ptr %s2
  %b2 = load i64, ptr %s3
  %ab2 = or i64 %a2, %b2
  %flying = and i64 %ab2, -4294967296
  %lands = icmp eq i64 %flying, 0
  br i1 %lands, label %step, label %fly
fly:
  store i64 %flying, ptr %s0
  store i64 %flying, ptr %s1
  store i64 0, ptr %sink_state
  br label %step
step:
  %next = phi i64 [ %following, %fetch ], [ %following, %serve ], [ %following, %chosen ], [ %target_wide, %branch ],
    [ %following, %execute ], [ %following, %pass_on ], [ %following, %fly ], [ %lower, %split ]
  %next_active = phi i32 [ %now, %fetch ], [ %now, %serve ], [ %now, %chosen ], [ %now, %branch ], [ %now, %execute ],
    [ %now, %pass_on ], [ %now, %fly ], [ %lower_lanes, %split ]
  %next_there = phi i64 [ %there, %fetch ], [ %there, %serve ], [ %there, %chosen ], [ %there, %branch ],
    [ %there, %execute ], [ %there, %pass_on ], [ %there, %fly ], [ %upper, %split ]
  %next_resting = phi i32 [ %resting, %fetch ], [ %resting, %serve ], [ %resting, %chosen ], [ %resting, %branch ],
    [ %resting, %execute ], [ %resting, %pass_on ], [ %resting, %fly ], [ %upper_lanes, %split ]
  %counted = add i64 %count, 1
  %met = icmp sge i64 %next, %next_there
  br i1 %met, label %meet, label %go
meet:
  %same = icmp eq i64 %next, %next_there
  %joined = or i32 %next_active, %next_resting
  %meet_active = select i1 %same, i32 %joined, i32 %next_resting
  %meet_there = select i1 %same, i64 NOWHERE, i64 %next
  %meet_resting = select i1 %same, i32 0, i32 %next_active
  br label %go
go:
  %to = phi i64 [ %next, %step ], [ %next_there, %meet ]
  %to_active = phi i32 [ %next_active, %step ], [ %meet_active, %meet ]
  %to_there = phi i64 [ %next_there, %step ], [ %meet_there, %meet ]
  %to_resting = phi i32 [ %next_resting, %step ], [ %meet_resting, %meet ]
  %spent = icmp sge i64 %counted, %limit
  %past = icmp sge i64 %to, %stop
  %over = or i1 %spent, %past
  br i1 %over, label %left, label %fetch
leave:
  %why = phi i64 [ 1, %python ], [ 1, %guarded ], [ 1, %look_up ], [ %found, %operands_of ], [ %served, %serve ],
    [ 1, %diverge ], [ 1, %check ], [ 1, %whole ]
  br label %left
left:
  %at = phi i64 [ %pc, %leave ], [ %to, %go ]
  %at_active = phi i32 [ %now, %leave ], [ %to_active, %go ]
  %at_there = phi i64 [ %there, %leave ], [ %to_there, %go ]
  %at_resting = phi i32 [ %resting, %leave ], [ %to_resting, %go ]
  %reason = phi i64 [ %why, %leave ], [ 0, %go ]
  %executed = phi i64 [ %count, %leave ], [ %counted, %go ]
  %at_active_wide = zext i32 %at_active to i64
  %at_resting_wide = zext i32 %at_resting to i64
  store i64 %at, ptr %first_at
  store i64 %at_active_wide, ptr %active_wide_at
  store i64 %at_there, ptr %other_counter_at
  store i64 %at_resting_wide, ptr %other_wide_at
  store i64 %reason, ptr %status_at
  ret i64 %executed
}
"""
