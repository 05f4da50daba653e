"""Reading a cubin: registers and stack from its ELF attributes, instructions from its disassembly.

The attributes are those the driver reads when it loads the kernel (section ``.nv.info``), so they describe the very
code that would run; a second run of ptxas could differ. Attribute numbers and formats: observed, and the same as in
public readers of the format (standing: published).
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mqa_ref.errors import NotAvailable
from mqa_ref.kernel.loops import Instruction

_REGISTERS, _FRAME_BYTES = 0x2F, 0x11
_SIZED = 4
_NV_INFO_TYPE = 0x70000000
_INSTRUCTION = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(@!?\w+\s+)?([A-Z][\w.]*)(.*)")
_LABEL = re.compile(r"^(\.\w+):")
_TARGET = re.compile(r"(\.L_x_\w+)")
_UNIFORM_PREDICATE = re.compile(r"\bUP\d")
_JUMPS, _ENDS = ("BRA", "BRX"), ("BRA", "BRX", "EXIT", "RET")


def registers_and_frame(cubin: bytes) -> tuple[int, int]:
    """Registers a thread and bytes of stack frame a thread, the largest of all functions in the cubin.

    Raises ValueError if the bytes are no 64-bit ELF with a ``.nv.info`` section.
    """
    found: dict[int, int] = {}
    for attribute, payload in _attributes(cubin):
        if attribute in (_REGISTERS, _FRAME_BYTES):
            found[attribute] = max(found.get(attribute, 0), struct.unpack("<II", payload)[1])
    if _REGISTERS not in found:
        raise ValueError("the cubin states no register count")
    return found[_REGISTERS], found.get(_FRAME_BYTES, 0)


def disassemble(cubin: bytes) -> tuple[Instruction, ...]:
    """The instructions of a cubin by nvdisasm. Raises NotAvailable if there is no nvdisasm, or it cannot read it."""
    return parse_sass(listing(cubin))


def listing(cubin: bytes) -> str:
    """What ``nvdisasm -c`` prints of a cubin. Raises NotAvailable if there is no nvdisasm, or it cannot read it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        run = subprocess.run(
            [str(tool("nvdisasm")), "-c", str(path)], capture_output=True, text=True, check=False
        )
    if run.returncode != 0:
        raise NotAvailable(f"nvdisasm cannot read this cubin: {run.stderr.strip()}")
    return run.stdout


def parse_sass(text: str) -> tuple[Instruction, ...]:
    """The instructions of what ``nvdisasm -c`` prints; opcodes are without their modifiers."""
    found: list[re.Match[str]] = []
    labels: dict[str, int] = {}
    for line in text.splitlines():
        label = _LABEL.match(line)
        if label:
            labels[label[1]] = len(found)
        elif instruction := _INSTRUCTION.search(line):
            found.append(instruction)
    return tuple(_instruction(match, labels) for match in found)


def _instruction(match: re.Match[str], labels: dict[str, int]) -> Instruction:
    """An indirect jump (BRX) lists its targets in a comment of the disassembler."""
    predicate, name, operands = match[2], match[3], match[4]
    opcode = name.split(".")[0]
    targets = _TARGET.findall(operands) if opcode in _JUMPS else []
    conditional = predicate is not None or (
        opcode == "BRA" and _UNIFORM_PREDICATE.search(operands) is not None
    )
    return Instruction(
        opcode, tuple(labels[target] for target in targets), conditional or opcode not in _ENDS
    )


_PACKAGES = {"nvdisasm": "nvidia-cuda-nvdisasm", "ptxas": "nvidia-cuda-nvcc"}


def tool(name: str) -> Path:
    """nvdisasm or ptxas, of its package or of a CUDA toolkit on the PATH. Raises NotAvailable where neither is."""
    for folder in sys.path:
        for path in sorted(Path(folder or ".").glob(f"nvidia/cu*/bin/{name}")):
            return path
    on_path = shutil.which(name)
    if on_path is None:
        raise NotAvailable(
            f"instruction counts need {name} of the package {_PACKAGES[name]}: pip install 'mqa-ref[sass]'"
        )
    return Path(on_path)


def _attributes(cubin: bytes) -> Iterator[tuple[int, bytes]]:
    if cubin[:5] != b"\x7fELF\x02":
        raise ValueError("not a 64-bit ELF file")
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count = struct.unpack_from("<HH", cubin, 0x3A)
    for index in range(count):
        _, kind, _, _, offset, length = struct.unpack_from("<IIQQQQ", cubin, table + index * size)
        if kind == _NV_INFO_TYPE:
            yield from _entries(cubin[offset : offset + length])


def _entries(section: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(section):
        form, attribute, length = struct.unpack_from("<BBH", section, at)
        at += 4
        if form == _SIZED:
            yield attribute, section[at : at + length]
            at += length
