"""``mqa-ref compile --compare``: what two kernels cost, flow by flow, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from mqa_ref.kernel.resources import Resources
    from mqa_ref.verification.worker import Limits

Row = tuple[str, int, int]


def compile_both(
    kernels: tuple[str, str], flow: str, shape: Mapping[str, int], limits: Limits, options: Mapping[str, Any]
) -> int:
    """Print a table for each flow: registers, frame, spills, and machine instructions by opcode. ``options`` are those
    of the first kernel. Raises NotAvailable without nvdisasm."""
    from mqa_ref.flow import FLOWS, Flow
    from mqa_ref.kernel.resources import measure
    from mqa_ref.verification.runner import compile_target

    for name in FLOWS if flow == "all" else (flow,):
        parsed = Flow.parse(name)
        first, second = (
            measure(compile_target(kernel, shape, parsed, limits, chosen))
            for kernel, chosen in zip(kernels, (options, None), strict=True)
        )
        click.echo(f"{name:32} {kernels[0]:>12} {kernels[1]:>12}")
        for what, left, right in rows(first, second):
            click.echo(f"  {what:30} {left:12} {right:12}{'' if left <= right else '  more'}")
    return 0


def rows(first: Resources, second: Resources) -> list[Row]:
    """What is printed of two kernels: name, the first one's number, the second one's. Opcodes are those of the epilogue
    loop, the most frequent first."""
    found: list[Row] = [
        ("registers a thread", first.registers, second.registers),
        ("stack frame a thread, bytes", first.frame_bytes, second.frame_bytes),
        ("spill loads and stores", first.spill_instructions, second.spill_instructions),
        ("machine instructions", first.instructions, second.instructions),
        ("of the epilogue loop", first.epilogue_instructions, second.epilogue_instructions),
    ]
    left, right = first.epilogue_sass, second.epilogue_sass
    names = sorted(
        set(left) | set(right), key=lambda name: (-max(left.get(name, 0), right.get(name, 0)), name)
    )
    return found + [(f"  {name}", left.get(name, 0), right.get(name, 0)) for name in names]
