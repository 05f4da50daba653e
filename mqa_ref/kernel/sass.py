"""The arithmetic in machine code: how many sums, products and fused multiply-adds of each format, counted by meaning.

The assembler writes some things in other words: a packed fp16 sum as a fused multiply-add with 1, a constant as one of
zeros, a conversion to fp32 as a sum with zero. They are counted as what they are. Standing: observed with ptxas 13.5.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from mqa_ref.errors import NotAvailable
from mqa_ref.kernel.cubin import listing, tool

ARITHMETIC = ("FFMA", "FMUL", "FADD", "FFMA2", "FMUL2", "FADD2", "HFMA2", "HMUL2", "HADD2")
"""Opcodes of machine code: fp32, packed fp32, and fp16 with bf16, single and packed alike."""

_LINE = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?\w+\s+)?([A-Z][\w.]*)\s*([^;]*);")
_TARGET = re.compile(r"^\.target\s+(\w+)", re.MULTILINE)
_ZERO, _ONE = re.compile(r"-?RZ(\.\w+)?"), re.compile(r"1(\.0)?")
_SECONDS = 300


def arithmetic(cubin: bytes) -> Mapping[str, int]:
    """How often each of ARITHMETIC stands in a cubin. Raises NotAvailable as ``cubin.listing`` does."""
    return count(listing(cubin))


def count(text: str) -> Mapping[str, int]:
    """The same of a listing by nvdisasm."""
    found: Counter[str] = Counter(dict.fromkeys(ARITHMETIC, 0))
    for opcode, operands in _LINE.findall(text):
        meaning = _meaning(opcode, [operand.strip() for operand in operands.split(",")])
        if meaning:
            found[meaning] += 1
    return found


def _meaning(opcode: str, operands: list[str]) -> str:
    """The entry of ARITHMETIC that an instruction counts for; empty for none."""
    base, *modifiers = opcode.split(".")
    if base not in ARITHMETIC or (base == "HADD2" and "F32" in modifiers):
        return ""
    if base == "HFMA2":
        factors = operands[1:3]
        if all(_ZERO.fullmatch(factor) for factor in factors):
            return ""
        if len(operands) == 5 and all(_ONE.fullmatch(factor) for factor in operands[2:4]):
            return "HADD2"
    return base


def assemble_apart(ptx: str) -> bytes:
    """A cubin of PTX text for its own target, made by ptxas under orders to fuse nothing.

    Raises NotAvailable without ptxas (package nvidia-cuda-nvcc), or when it does not take the text.
    """
    target = _TARGET.search(ptx)
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(ptx, encoding="utf-8")
        line = [str(tool("ptxas")), "--fmad", "false", "--output-file", str(made), str(source)]
        line += ["--gpu-name", target[1]] if target else []
        run = subprocess.run(line, capture_output=True, text=True, check=False, timeout=_SECONDS)
        if run.returncode != 0:
            raise NotAvailable(
                f"ptxas does not assemble this PTX: {(run.stderr or run.stdout).strip()[:500]}"
            )
        return made.read_bytes()
