"""Epilogue arithmetic: ReLU, weighting and summing over heads, scaling; one class per epilogue format.

The order of operations is the same in both: head *h* goes to partial sum *h % 4*, heads ascending, the four sums
being two packed pairs; then the sums are combined and scaled. The fp32 form adds ``x + |x|``, twice the ReLU, on the
packed FMA pipe and takes the factor back at the end with ``* 0.5``. Every step rounds to nearest even and says so
(``.rn``) wherever a compiler stage might otherwise fuse a multiply with an add.
"""

from collections.abc import Sequence
from typing import Any

import cutlass.cute as cute
from cutlass import Float16, Float32, Int32
from cutlass._mlir import ir
from cutlass._mlir.dialects import llvm, vector
from cutlass.cutlass_dsl import dsl_user_op

Fp32Pair = tuple[Float32, Float32]


class Fp32Sums:
    """Partial sums of one query token in fp32."""

    def __init__(self) -> None:
        self.low: Fp32Pair = (Float32(0.0), Float32(0.0))
        self.high: Fp32Pair = self.low

    def add(self, dots: Sequence[Float32], weights: Sequence[Float32]) -> None:
        """Take in the next four heads: their dot products and weights, fp32."""
        self.low = _weigh_f32x2(dots[0:2], weights[0:2], self.low)
        self.high = _weigh_f32x2(dots[2:4], weights[2:4], self.high)

    def logit(self, scale: Float32) -> Float32:
        """The sums combined, halved and scaled, fp32."""
        total = _add_f32(_add_f32(_add_f32(self.low[0], self.low[1]), self.high[0]), self.high[1])
        return _mul_f32(_mul_f32(total, Float32(0.5)), scale)


class Fp16Sums:
    """Partial sums of one query token in fp16, two to a register."""

    def __init__(self) -> None:
        self.zero = _pack(Float16(0.0), Float16(0.0))
        self.low = self.zero
        self.high = self.zero

    def add(self, dots: Sequence[Any], weights: Sequence[Float16]) -> None:
        """Take in the next four heads: dot products (rounded to fp16 if they are fp32) and fp16 weights."""
        self.low = self._weigh(dots[0:2], weights[0:2], self.low)
        self.high = self._weigh(dots[2:4], weights[2:4], self.high)

    def logit(self, scale: Float32) -> Float16:
        """The sums combined and scaled by the fp32 scale rounded to fp16, fp16."""
        low, high = _unpack(_asm(Int32, "add.rn.f16x2 $0, $1, $2;", "=r,r,r", self.low, self.high))
        return (low + high) * Float16(scale)

    def _weigh(self, dots: Sequence[Any], weights: Sequence[Float16], sums: Int32) -> Int32:
        halves = _pack(*(Float16(dot) for dot in dots))
        relu = _asm(Int32, "max.f16x2 $0, $1, $2;", "=r,r,r", halves, self.zero)
        return _asm(Int32, "fma.rn.f16x2 $0, $1, $2, $3;", "=r,r,r,r", relu, _pack(*weights), sums)


def _weigh_f32x2(dots: Sequence[Float32], weights: Sequence[Float32], sums: Fp32Pair) -> Fp32Pair:
    doubled = cute.arch.add_packed_f32x2(dots, tuple(cute.math.absf(dot) for dot in dots), rnd="rn")
    return cute.arch.fma_packed_f32x2(doubled, weights, sums, rnd="rn")


def _add_f32(a: Float32, b: Float32) -> Float32:
    return _asm(Float32, "add.rn.f32 $0, $1, $2;", "=f,f,f", a, b)


def _mul_f32(a: Float32, b: Float32) -> Float32:
    return _asm(Float32, "mul.rn.f32 $0, $1, $2;", "=f,f,f", a, b)


@dsl_user_op
def _asm(result: Any, text: str, constraints: str, *operands: Any, loc: Any = None, ip: Any = None) -> Any:
    values = [operand.ir_value(loc=loc, ip=ip) for operand in operands]
    return result(llvm.inline_asm(result.mlir_type, values, text, constraints, loc=loc, ip=ip))


@dsl_user_op
def _pack(low: Float16, high: Float16, *, loc: Any = None, ip: Any = None) -> Int32:
    values = [Float16(value).ir_value(loc=loc, ip=ip) for value in (low, high)]
    pair = vector.from_elements(ir.VectorType.get([2], Float16.mlir_type), values, loc=loc, ip=ip)
    return Int32(llvm.bitcast(Int32.mlir_type, pair, loc=loc, ip=ip))


@dsl_user_op
def _unpack(pair: Int32, *, loc: Any = None, ip: Any = None) -> tuple[Float16, ...]:
    kind = ir.VectorType.get([2], Float16.mlir_type)
    both = llvm.bitcast(kind, pair.ir_value(loc=loc, ip=ip), loc=loc, ip=ip)
    halves = (
        vector.extract(both, dynamic_position=[], static_position=[i], loc=loc, ip=ip) for i in range(2)
    )
    return tuple(Float16(half) for half in halves)
