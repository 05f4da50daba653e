"""The number formats of the kernel, as bit patterns: what a code means and which code a number rounds to.

A number is an exact ``fractions.Fraction``; a code is the unsigned integer whose bits are the stored number.
Nothing here is fast: this is what the fast code is held against.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from mqa_ref.errors import Fault, InputError

Rounding: TypeAlias = Literal["rne", "rz"]
Overflow: TypeAlias = Literal["inf", "saturate", "nan"]

RNE: Rounding = "rne"
"""To nearest, ties to even (``.rn`` in PTX)."""
RZ: Rounding = "rz"
"""Toward zero (``.rz`` in PTX)."""


@dataclass(frozen=True)
class Format:
    """A binary floating-point format: sign bit, exponent field, fraction field, most significant first.

    ``has_inf`` says whether the highest exponent field is reserved for inf and NaN as in IEEE 754; without it
    (e4m3fn) that field holds numbers too and only the code with all fraction bits set is NaN. ``canonical_nan`` is
    the NaN an operation produces: 0x7fffffff and 0x7fff are what an H200 gave for every NaN result (standing: hw),
    for bfloat16 too. Subnormals exist in every format and are never flushed.
    """

    name: str
    exponent_bits: int
    fraction_bits: int
    has_inf: bool
    canonical_nan: int

    @property
    def bits(self) -> int:
        """Width of a code in bits."""
        return 1 + self.exponent_bits + self.fraction_bits

    @property
    def bias(self) -> int:
        """What the exponent field exceeds the exponent by."""
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def min_exponent(self) -> int:
        """Exponent of the smallest normal number, which subnormals keep."""
        return 1 - self.bias

    @property
    def sign_mask(self) -> int:
        """The code whose only set bit is the sign; it is also minus zero."""
        return 1 << (self.bits - 1)

    @property
    def exponent_mask(self) -> int:
        """The exponent field with all bits set; the code of +inf where there is one."""
        return ((1 << self.exponent_bits) - 1) << self.fraction_bits

    @property
    def fraction_mask(self) -> int:
        """The fraction field with all bits set."""
        return (1 << self.fraction_bits) - 1

    @property
    def max_finite_code(self) -> int:
        """The code of the largest finite number."""
        return self.exponent_mask - 1 if self.has_inf else (self.exponent_mask | self.fraction_mask) - 1

    @property
    def max_finite(self) -> Fraction:
        """The largest finite number."""
        return self.value(self.max_finite_code)

    def sign(self, code: int) -> int:
        """1 where the sign bit of the code is set, else 0; meaningful for zeros, infinities and NaN too."""
        return self._checked(code) >> (self.bits - 1)

    def is_nan(self, code: int) -> bool:
        """Whether the code is a NaN of any payload and sign."""
        magnitude = self._checked(code) & ~self.sign_mask
        return (
            magnitude > self.exponent_mask
            if self.has_inf
            else magnitude == self.exponent_mask | self.fraction_mask
        )

    def is_inf(self, code: int) -> bool:
        """Whether the code is plus or minus infinity; never in a format without infinities."""
        return self.has_inf and self._checked(code) & ~self.sign_mask == self.exponent_mask

    def is_zero(self, code: int) -> bool:
        """Whether the code is plus or minus zero."""
        return self._checked(code) & ~self.sign_mask == 0

    def inf(self, sign: int) -> int:
        """The code of infinity with the given sign (0 or 1). ValueError where the format has none."""
        if not self.has_inf:
            raise ValueError(f"{self.name} has no infinity")
        return self.exponent_mask | (self.sign_mask if sign else 0)

    def zero(self, sign: int) -> int:
        """The code of zero with the given sign (0 or 1)."""
        return self.sign_mask if sign else 0

    def exponent(self, code: int) -> int:
        """The exponent a finite code is written with: floor(log2 |x|) of a normal number, min_exponent of the
        others."""
        field = (self._checked(code) & self.exponent_mask) >> self.fraction_bits
        return max(field, 1) - self.bias

    def value(self, code: int) -> Fraction:
        """The exact value of a finite code (0 for both zeros). ValueError for inf and NaN."""
        if self.is_nan(code) or self.is_inf(code):
            raise ValueError(f"{self.name} code {code:#x} is not finite")
        hidden = 0 if code & self.exponent_mask == 0 else 1 << self.fraction_bits
        significand = hidden | (code & self.fraction_mask)
        magnitude = Fraction(significand) * Fraction(2) ** (self.exponent(code) - self.fraction_bits)
        return -magnitude if self.sign(code) else magnitude

    def decode(self, code: int) -> Fraction | float:
        """The exact value of a code as a Fraction, or the float nan, inf or -inf; no finite code decodes to a
        float."""
        if self.is_nan(code):
            return math.nan
        if self.is_inf(code):
            return -math.inf if self.sign(code) else math.inf
        return self.value(code)

    def encode(
        self, value: Fraction | int, rounding: Rounding = RNE, overflow: Overflow | None = None
    ) -> int:
        """The code of the exact number ``value`` after one rounding; subnormal results are kept.

        Zero gives +0; a negative number that rounds to zero gives -0. A number overflows when its magnitude,
        rounded as if there were no largest exponent, exceeds the largest finite number: from 65520 on for RNE to
        fp16, above 464 for RNE to e4m3fn (464 itself is a tie that goes to 448). ``overflow`` says what comes then:
        "inf", "saturate" (the largest finite number of that sign) or "nan" (the canonical NaN with the sign added).
        Default: "saturate" for RZ (IEEE 754-2019, 4.3.2; doc) and for a format without inf (PTX ISA, cvt to e4m3x2
        exists with .satfinite only; doc), else "inf". ValueError when "inf" is asked of a format without it.
        """
        if overflow is None:
            overflow = "saturate" if rounding == RZ or not self.has_inf else "inf"
        value = Fraction(value)
        sign = self.sign_mask if value < 0 else 0
        magnitude = abs(value)
        exponent = max(_floor_log2(magnitude), self.min_exponent) if magnitude else self.min_exponent
        scaled = magnitude / Fraction(2) ** (exponent - self.fraction_bits)
        significand = (
            round(scaled) if rounding == RNE else math.floor(scaled)
        )  # Fraction.__round__ is ties to even
        # A significand that was rounded up to the next power of two carries into the exponent field by itself.
        code = ((exponent + self.bias - 1) << self.fraction_bits) + significand
        if code <= self.max_finite_code:
            return sign | code
        if overflow == "saturate":
            return sign | self.max_finite_code
        return sign | self.canonical_nan if overflow == "nan" else self.inf(1 if sign else 0)

    def _checked(self, code: int) -> int:
        if not 0 <= code < 1 << self.bits:
            raise InputError([Fault("code", str(code), f"an integer of {self.bits} bits ({self.name})")])
        return code


def _floor_log2(magnitude: Fraction) -> int:
    """floor(log2(magnitude)) of a positive Fraction, exactly."""
    guess = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    return guess if Fraction(2) ** guess <= magnitude else guess - 1


E4M3FN = Format("e4m3fn", exponent_bits=4, fraction_bits=3, has_inf=False, canonical_nan=0x7F)
FP16 = Format("fp16", exponent_bits=5, fraction_bits=10, has_inf=True, canonical_nan=0x7FFF)
BF16 = Format("bf16", exponent_bits=8, fraction_bits=7, has_inf=True, canonical_nan=0x7FFF)
FP32 = Format("fp32", exponent_bits=8, fraction_bits=23, has_inf=True, canonical_nan=0x7FFFFFFF)

FORMATS: dict[str, Format] = {fmt.name: fmt for fmt in (E4M3FN, FP16, BF16, FP32)}
"""The four formats by name."""
