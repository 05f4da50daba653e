"""What a compiled kernel costs: registers, spills, instructions in all and in the epilogue loop.

The epilogue loop is the innermost loop that reads accumulators out of TMEM: LDTM in machine code, ``tcgen05.ld`` in
PTX; ``loops`` says what a loop is. The retry paths of barrier waits, which the assembler puts behind the kernel, are
not in it. Where a kernel has several such loops (one a warp group), the longest counts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mqa_ref.kernel.compile import CompiledKernel
from mqa_ref.kernel.cubin import disassemble, registers_and_frame
from mqa_ref.kernel.loops import Instruction, innermost_loop

_LABEL = re.compile(r"^\s*(\$L\w+):")
_INSTRUCTION = re.compile(r"^\s*(@!?%?\w+\s+)?([a-z][\w.:]*)(.*);\s*$")


@dataclass(frozen=True)
class Resources:
    """Counts for one kernel. ``sass`` maps opcodes (without modifiers) to how often they stand in the code."""

    registers: int
    frame_bytes: int
    spill_instructions: int
    sass: Mapping[str, int]
    epilogue_sass: Mapping[str, int]
    epilogue_ptx: Mapping[str, int]

    @property
    def instructions(self) -> int:
        """Machine instructions of the kernel."""
        return sum(self.sass.values())

    @property
    def epilogue_instructions(self) -> int:
        """Machine instructions of the epilogue loop, one pass of which scores one tile."""
        return sum(self.epilogue_sass.values())

    @property
    def epilogue_ptx_instructions(self) -> int:
        """PTX instructions of the epilogue loop."""
        return sum(self.epilogue_ptx.values())


def measure(kernel: CompiledKernel) -> Resources:
    """Count. ``spill_instructions`` are loads and stores of local memory.

    Raises NotAvailable without nvdisasm (package nvidia-cuda-nvdisasm).
    """
    registers, frame = registers_and_frame(kernel.cubin)
    code = disassemble(kernel.cubin)
    opcodes = Counter(instruction.opcode for instruction in code)
    return Resources(
        registers=registers,
        frame_bytes=frame,
        spill_instructions=opcodes["STL"] + opcodes["LDL"],
        sass=opcodes,
        epilogue_sass=_count(innermost_loop(code, lambda opcode: opcode == "LDTM")),
        epilogue_ptx=ptx_epilogue(kernel.ptx),
    )


def ptx_epilogue(ptx: str) -> Mapping[str, int]:
    """The instructions of the epilogue loop in PTX text, by full opcode; empty if there is no such loop."""
    found: list[re.Match[str]] = []
    labels: dict[str, int] = {}
    for line in ptx.splitlines():
        label = _LABEL.match(line)
        if label:
            labels[label[1]] = len(found)
        elif instruction := _INSTRUCTION.match(line):
            found.append(instruction)
    return _count(innermost_loop([_ptx(match, labels) for match in found], _is_tmem_load))


def _ptx(match: re.Match[str], labels: Mapping[str, int]) -> Instruction:
    """Jumps to labels inside one inline assembly block, as in the wait on a barrier, count as going on."""
    predicate, opcode, operand = match[1], match[2], match[3].strip()
    jumps = (labels[operand],) if operand in labels else ()
    ends = opcode in ("ret", "exit") or (opcode.startswith("bra") and bool(jumps))
    return Instruction(opcode, jumps, predicate is not None or not ends)


def _is_tmem_load(opcode: str) -> bool:
    return opcode.startswith("tcgen05.ld.")


def _count(code: Iterable[Instruction]) -> Mapping[str, int]:
    return Counter(instruction.opcode for instruction in code)
