"""The dtype flows of the kernel: accumulator, epilogue and output format of one launch, written ``acc-epi-out``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mqa_ref.errors import Fault, InputError, Unsupported

AccFormat = Literal["fp32", "fp16"]
EpiFormat = Literal["fp32", "fp16"]
OutFormat = Literal["fp32", "fp16", "bf16"]

_STAGES: tuple[tuple[AccFormat, EpiFormat], ...] = (("fp32", "fp32"), ("fp32", "fp16"), ("fp16", "fp16"))
_OUTPUTS: tuple[OutFormat, ...] = ("fp32", "fp16", "bf16")

FLOWS: tuple[str, ...] = tuple(f"{acc}-{epi}-{out}" for acc, epi in _STAGES for out in _OUTPUTS)
"""The names of all flows there are (op.md, "Dtype flows")."""


@dataclass(frozen=True)
class Flow:
    """One dtype flow. ``acc``: what the tensor core accumulates in; ``epi``: what ReLU, weights and sums are computed
    in; ``out``: what is stored. ``str(flow)`` is the name ``parse`` reads.

    Raises InputError for a format there is not, Unsupported for an fp16 accumulator under an fp32 epilogue, which no
    kernel has (op.md, "Dtype flows").
    """

    acc: AccFormat
    epi: EpiFormat
    out: OutFormat

    def __post_init__(self) -> None:
        known = {"fp32", "fp16"}
        if self.acc not in known or self.epi not in known or self.out not in _OUTPUTS:
            raise _unknown(str(self))
        if (self.acc, self.epi) not in _STAGES:
            raise Unsupported(
                f"flow {self}: no kernel widens an {self.acc} accumulator for an {self.epi} epilogue; "
                f"the flows are {', '.join(FLOWS)}"
            )

    @classmethod
    def parse(cls, name: str) -> Flow:
        """The flow called ``name``, such as ``"fp32-fp16-bf16"``. Errors as for the class."""
        parts = str(name).split("-")
        if len(parts) != 3:
            raise _unknown(name)
        return cls(*parts)  # type: ignore[arg-type]  # what is no format is refused by the class

    @property
    def bits_dtype(self) -> np.dtype[np.unsignedinteger]:
        """The unsigned dtype that holds one output bit pattern: uint32 for fp32, uint16 for fp16 and bf16."""
        return np.dtype(np.uint32 if self.out == "fp32" else np.uint16)

    def __str__(self) -> str:
        return f"{self.acc}-{self.epi}-{self.out}"


def _unknown(name: object) -> InputError:
    return InputError([Fault("flow", repr(name), "one of " + ", ".join(FLOWS))])
