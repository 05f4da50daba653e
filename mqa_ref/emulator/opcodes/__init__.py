"""The opcode table, one module per family. ``load`` fills ``decode.OPCODES``."""

from __future__ import annotations

import importlib
from functools import lru_cache

_FAMILIES = (
    "arith",
    "floats",
    "bits",
    "moves",
    "lanes",
    "control",
    "memory",
    "mbarrier",
    "bulk",
    "tensor",
    "tensor_store",
    "wgmma",
    "more",
    "integers",
    "conversions",
    "selection",
    "carry",
    "halves",
)


@lru_cache(maxsize=1)
def load() -> None:
    """Import every family once; importing registers its opcodes."""
    for family in _FAMILIES:
        importlib.import_module(f"{__name__}.{family}")
