"""Is this thread's floating-point unit in the state that the arithmetic relies on?

The vectorised operations and the compiled ones compute in float32 and float64 of the CPU, whose control register each
thread owns: a library may have set it to flush subnormals (torch.set_flush_denormal, code built with -ffast-math) or
to another rounding, and every bit pattern would quietly be another one.
"""

from __future__ import annotations

import numpy as np

from mqa_ref.errors import OracleError

_LEAST = np.array([1, 0x80000001], np.uint32).view(np.float32)
_SMALLEST_NORMAL = np.array([0x00800000, 0x80800000], np.uint32).view(np.float32)
_ONE = np.array([1.0, -1.0], np.float32)
_MORE_THAN_HALF, _HALF = np.float32(1.5 * 2.0**-24), np.float32(2.0**-24)


def check_environment() -> None:
    """Raise OracleError when this thread flushes subnormals to zero or does not round to nearest even.

    Standing: doc. IEEE 754 binary32, sections 4.3.1 and 7.5; every value below is worked out by hand: twice the least
    subnormal is the second least, half the least normal is a subnormal, 1 + 2**-24 is a tie that goes to 1, and
    1 + 1.5 * 2**-24 is nearest to 1 + 2**-23.
    """
    kept = (_LEAST + _LEAST).view(np.uint32).tolist() == [2, 0x80000002]
    made = (_SMALLEST_NORMAL * np.float32(0.5)).view(np.uint32).tolist() == [0x00400000, 0x80400000]
    if not (kept and made):
        raise OracleError(
            "this thread flushes subnormal numbers to zero (torch.set_flush_denormal, -ffast-math?)"
        )
    ties = (_ONE + _ONE * _HALF).view(np.uint32).tolist() == [0x3F800000, 0xBF800000]
    nearest = (_ONE + _ONE * _MORE_THAN_HALF).view(np.uint32).tolist() == [0x3F800001, 0xBF800001]
    if not (ties and nearest):
        raise OracleError("this thread does not round to nearest even")
