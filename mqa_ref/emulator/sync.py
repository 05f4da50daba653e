"""Waiting for the other lanes of a warp."""

from __future__ import annotations

from mqa_ref.emulator.ptx import Instruction
from mqa_ref.emulator.warp import BLOCKED, FULL, Mask, Wait, Warp


def converge(warp: Warp, member: Mask, instruction: Instruction) -> int | None:
    """None when every living lane of ``member`` is active here, else BLOCKED until the missing ones arrive or leave the
    kernel: lanes that have left are not waited for (CUDA C++, "Warp Shuffle Functions": all non-exited threads named in
    mask; standing: hw).
    """
    if warp.converged(member):
        return None
    if warp.gather_waiting() and warp.converged(member):
        return None
    here = warp.mask
    warp.waiting = Wait(
        lambda: not (member & warp.alive & ~here).any(),
        None,
        "lanes that wait for the rest of their warp",
        instruction,
    )
    return BLOCKED


def whole_warp(warp: Warp, instruction: Instruction) -> int | None:
    """The same for an instruction that must be executed by all lanes of the warp (.aligned)."""
    return converge(warp, FULL, instruction)
