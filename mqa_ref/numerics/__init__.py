"""The arithmetic of the kernel, bit by bit: number formats, the PTX operations of the epilogues, the tensor-core
steps.

Everything works on bit patterns: uint8 e4m3fn codes, uint16 fp16 and bf16 codes, uint32 fp32 codes. Each operation
exists twice, vectorised here and, under the same name on plain ints, slow and obvious in
``mqa_ref.numerics.scalar``; ``selfcheck.run`` runs one against the other. Results are correctly rounded and NaN
results are canonical (0x7fffffff fp32, 0x7fff fp16 and bf16). Every rule states its standing: hw, proof, doc or
published.

* formats: ``E4M3FN``, ``FP16``, ``BF16``, ``FP32`` (``decode``, ``encode``), whole-array questions ``is_nan``,
  ``is_inf``, ``is_zero``, ``canonical_nan``, ``to_float64``
* fp32: ``fma_f32``, ``add_f32``, ``mul_f32``, ``abs_f32``, ``max_f32``, ``max_nan_f32``
* fp16: ``fma_f16``, ``add_f16``, ``mul_f16``, ``max_f16``
* conversions: ``cvt_f16_f32``, ``cvt_bf16_f32``, ``cvt_f32_f16``
* tensor core: ``mma``, ``MachineModel``, ``MACHINES`` ("sm90", "sm100", "exact")
"""

from mqa_ref.numerics import scalar, selfcheck
from mqa_ref.numerics.conversions import cvt_bf16_f32, cvt_f16_f32, cvt_f32_f16
from mqa_ref.numerics.formats import BF16, E4M3FN, FORMATS, FP16, FP32, RNE, RZ, Format
from mqa_ref.numerics.machines import MACHINES, MachineModel
from mqa_ref.numerics.ops16 import add_f16, fma_f16, max_f16, mul_f16
from mqa_ref.numerics.ops32 import abs_f32, add_f32, fma_f32, max_f32, max_nan_f32, mul_f32
from mqa_ref.numerics.tables import (
    E4M3_EXPONENT,
    E4M3_SIGNIFICAND,
    E4M3_VALUE,
    canonical_nan,
    is_inf,
    is_nan,
    is_zero,
    to_float64,
)
from mqa_ref.numerics.tensorcore import mma

__all__ = [
    "BF16",
    "E4M3FN",
    "E4M3_EXPONENT",
    "E4M3_SIGNIFICAND",
    "E4M3_VALUE",
    "FORMATS",
    "FP16",
    "FP32",
    "MACHINES",
    "RNE",
    "RZ",
    "Format",
    "MachineModel",
    "abs_f32",
    "add_f16",
    "add_f32",
    "canonical_nan",
    "cvt_bf16_f32",
    "cvt_f16_f32",
    "cvt_f32_f16",
    "fma_f16",
    "fma_f32",
    "is_inf",
    "is_nan",
    "is_zero",
    "max_f16",
    "max_f32",
    "max_nan_f32",
    "mma",
    "mul_f16",
    "mul_f32",
    "scalar",
    "selfcheck",
    "to_float64",
]
