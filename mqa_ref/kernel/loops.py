"""Finding one loop in a listing of instructions, machine code and PTX alike.

A loop is a jump back to an instruction that dominates it: whatever way the jump is reached leads through its target.
(A jump that merely goes up is none, such as the return from a barrier's retry path behind the kernel.) Its body is
every instruction between target and jump that can reach the jump without passing the target again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Instruction:
    """One instruction: its opcode, where it may jump to (indices into the listing), and whether it may go on."""

    opcode: str
    jumps: tuple[int, ...] = ()
    goes_on: bool = True


def innermost_loop(code: Sequence[Instruction], wanted: Callable[[str], bool]) -> tuple[Instruction, ...]:
    """The body of the innermost loop that holds a ``wanted`` opcode; the longest of several; empty if there is none."""
    bodies = []
    for at, instruction in enumerate(code):
        for head in instruction.jumps:
            if head <= at and _reaches(code, head) and not _reaches(code, at, without=head):
                bodies.append(_body(code, head, at))
    holding = [body for body in bodies if any(wanted(code[at].opcode) for at in body)]
    inner = [body for body in holding if not any(other < body for other in holding)]
    longest = max(inner, key=_length, default=frozenset[int]())
    return tuple(code[at] for at in sorted(longest))


def _length(body: frozenset[int]) -> int:
    return len(body)


def _successors(code: Sequence[Instruction], at: int) -> list[int]:
    onward = [at + 1] if code[at].goes_on and at + 1 < len(code) else []
    return [*onward, *code[at].jumps]


def _reaches(code: Sequence[Instruction], goal: int, without: int | None = None) -> bool:
    """Whether a path leads from the first instruction to ``goal`` that avoids ``without``."""
    seen = {0} if without != 0 else set()
    todo = list(seen)
    while todo:
        for onward in _successors(code, todo.pop()):
            if onward != without and onward not in seen:
                seen.add(onward)
                todo.append(onward)
    return goal in seen


def _body(code: Sequence[Instruction], head: int, jump: int) -> frozenset[int]:
    before: dict[int, list[int]] = {}
    for at in range(len(code)):
        for onward in _successors(code, at):
            before.setdefault(onward, []).append(at)
    body = {head, jump}
    todo = [jump] if jump != head else []
    while todo:
        for at in before.get(todo.pop(), []):
            if at not in body:
                body.add(at)
                todo.append(at)
    return frozenset(at for at in body if head <= at <= jump)
