"""The opcode table, one module per family. ``load`` fills ``decode.OPCODES``."""

from __future__ import annotations

import importlib

_FAMILIES = ("arith", "floats", "moves", "control", "memory", "mbarrier", "bulk", "tensor", "more")


def load() -> None:
    """Import every family once; importing registers its opcodes."""
    for family in _FAMILIES:
        importlib.import_module(f"{__name__}.{family}")
