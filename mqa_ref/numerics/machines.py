"""What a tensor-core instruction does to e4m3fn products: one model per machine, each with its standing.

Per output element and K = 32 step there are 33 terms, 32 products and the accumulator:

1. The significand of a product is s_a*s_b, not normalised, its exponent e_a + e_b; a subnormal keeps e = -6 with s
   < 1. The accumulator's exponent is that of its own format (-126 or -14 for subnormals). Zero terms have no
   exponent.
2. Every term is cut toward zero to ``fraction_bits`` bits below the largest exponent.
3. The cut terms are added exactly and the sum is rounded once; a zero is +0, also one that the rounding makes of a
   negative sum (which no machine here can: "rz13" keeps all that F = 13 does).
4. A NaN operand or accumulator gives the canonical NaN; an infinite accumulator stays (e4m3fn has no inf, so
   nothing can cancel it).

The machine "exact" adds all products of all K and the accumulator exactly and rounds once to nearest even: no
hardware.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from mqa_ref.errors import Fault, InputError
from mqa_ref.numerics.formats import FP16, FP32, RNE, RZ, Format, Rounding

Accumulator: TypeAlias = Literal["fp32", "fp16"]
Standing: TypeAlias = Literal["hw", "proof", "doc", "published"]
Final32: TypeAlias = Literal["rz", "rz13", "rne"]

STEP_K = 32
"""Products per output element of one instruction."""

MAX_FRACTION_BITS = 40
"""The largest ``fraction_bits`` for which the vectorised step is proved exact (see ``tensorcore``)."""

ACCUMULATORS: dict[str, Format] = {"fp32": FP32, "fp16": FP16}
"""The accumulator formats by the name ``mma`` takes."""


@dataclass(frozen=True)
class FinalRounding:
    """The one rounding at the end of a step: to ``fraction_bits`` bits in direction ``rounding``, stored as
    ``stored``."""

    stored: Format
    fraction_bits: int
    rounding: Rounding

    def encode(self, total: Fraction | int) -> int:
        """The code of the exact number ``total`` in the stored format."""
        narrow = Format(
            "final",
            exponent_bits=self.stored.exponent_bits,
            fraction_bits=self.fraction_bits,
            has_inf=True,
            canonical_nan=self.stored.canonical_nan,
        )
        return narrow.encode(total, self.rounding) << (self.stored.fraction_bits - self.fraction_bits)


_FINAL: dict[str, FinalRounding] = {
    "rz": FinalRounding(FP32, 23, RZ),
    "rz13": FinalRounding(FP32, 13, RZ),
    "rne": FinalRounding(FP32, 23, RNE),
    "fp16": FinalRounding(FP16, 10, RNE),
}


@dataclass(frozen=True)
class MachineModel:
    """How one machine adds e4m3fn products.

    ``fraction_bits``: bits kept below the largest exponent of a step, 1..40, or None for an exact sum over all K.
    ``final32``: the final rounding into fp32, "rz" (toward zero), "rz13" (toward zero to 13 fraction bits) or
    "rne"; into fp16 it is always to nearest even. ``standing32``, ``standing16``: how well that is known per
    accumulator format. ``source``: where it is known from. InputError when a value is out of range;
    ``dataclasses.replace`` makes variants.
    """

    name: str
    fraction_bits: int | None
    final32: Final32
    standing32: Standing
    standing16: Standing
    source: str

    def __post_init__(self) -> None:
        faults = []
        bits: object = self.fraction_bits  # a caller without a type checker can pass anything
        if bits is not None and not (type(bits) is int and 1 <= bits <= MAX_FRACTION_BITS):
            faults.append(Fault("fraction_bits", repr(self.fraction_bits), f"None or 1..{MAX_FRACTION_BITS}"))
        if self.final32 not in ("rz", "rz13", "rne"):
            faults.append(Fault("final32", repr(self.final32), "'rz', 'rz13' or 'rne'"))
        if faults:
            raise InputError(faults)

    def final(self, acc: str) -> FinalRounding:
        """The final rounding for accumulator format ``acc``."""
        return _FINAL["fp16" if acc == "fp16" else self.final32]

    def standing(self, acc: str) -> Standing:
        """The standing of this model for accumulator format ``acc``: "hw", "proof", "doc" or "published"."""
        return self.standing16 if acc == "fp16" else self.standing32


MACHINES: dict[str, MachineModel] = {
    model.name: model
    for model in (
        MachineModel(
            name="sm90",
            fraction_bits=13,
            final32="rz13",
            standing32="hw",
            standing16="hw",
            source="wgmma on an H200: 307,200 values, six input classes with NaN, four chained steps, 0 differ",
        ),
        MachineModel(
            name="sm100",
            fraction_bits=25,
            final32="rz",
            standing32="published",
            standing16="published",
            source="tcgen05 kind::f8f6f4: MMA-Sim; for fp32 also Khattak & Mikaitis, arXiv 2512.07004 "
            "(hw on B200 for fp16, bf16 and tf32 inputs only)",
        ),
        MachineModel(
            name="exact",
            fraction_bits=None,
            final32="rne",
            standing32="proof",
            standing16="proof",
            source="the definition of a correctly rounded dot product; no hardware",
        ),
    )
}
"""The machines by name."""
