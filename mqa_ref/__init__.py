"""Bit-exact reference, CPU emulation and verification of the FP8 paged MQA logits kernel on SM100.

Importing this package is cheap: every public name is loaded on first use, so that nothing here pulls in the compiler.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqa_ref.flow import Flow
    from mqa_ref.problem import Problem
    from mqa_ref.reference import reference_logits
    from mqa_ref.verification.verify import verify

__version__ = "0.1.0.dev0"

__all__ = ["Flow", "Problem", "__version__", "reference_logits", "verify"]

_HOMES = {
    "Flow": "mqa_ref.flow",
    "Problem": "mqa_ref.problem",
    "reference_logits": "mqa_ref.reference",
    "verify": "mqa_ref.verification.verify",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_HOMES))
