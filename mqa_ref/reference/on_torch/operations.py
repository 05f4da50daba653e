"""Operations of the epilogues on float64 tensors that hold fp32 or fp16 numbers; results are such numbers again.

``+`` and ``*`` of torch are IEEE 754 operations of the tensors' own format, each kernel rounding once; nothing is
contracted, for torch runs them one by one. A NaN is any NaN: payloads are made canonical at the end.
"""

from __future__ import annotations

from typing import Any

import torch

Tensor = Any
_LOW29 = (1 << 29) - 1


def round32(x: Tensor) -> Tensor:
    """To fp32, to nearest even."""
    return x.float().double()


def round16(x: Tensor) -> Tensor:
    """To fp16, to nearest even.

    Proof. torch goes through float32, so the 53-bit number is first rounded to odd in 24 bits: the lower 29 fraction
    bits go and the last kept one is set when any of them was. 24 >= 11 + 2, so the second rounding is as one alone
    (``numerics.rounding.odd_sum``). Below 2**-126 float32 keeps fewer bits, but there the fp16 result is a zero.
    """
    bits = x.view(torch.int64)
    sticky = ((bits & _LOW29) != 0).to(torch.int64) << 29
    return ((bits & ~_LOW29) | sticky).view(torch.float64).float().half().double()


def odd_sum(x: Tensor, y: Tensor) -> Tensor:
    """x + y rounded to odd; see ``numerics.rounding.odd_sum``."""
    x, y = torch.broadcast_tensors(x, y)
    total = (x + y).contiguous()
    part = total - x
    error = (x - (total - part)) + (y - part)
    bits = total.view(torch.int64)
    odd = (bits + ((error.contiguous().view(torch.int64) ^ bits) >> 63)) | 1
    return torch.where(error.abs() > 0, odd, bits).view(torch.float64)


def fma32(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """fma.rn.f32: the product of two 24-bit numbers is exact in float64 (``numerics.ops32.fma_f32``)."""
    return round32(odd_sum(a * b, c))


def fma16(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """fma.rn.f16: the product is exact, the sum is rounded to odd."""
    return round16(odd_sum(a * b, c))


def add32(a: Tensor, b: Tensor) -> Tensor:
    """add.rn.f32."""
    return (a.float() + b.float()).double()


def mul32(a: Tensor, b: Tensor) -> Tensor:
    """mul.rn.f32."""
    return (a.float() * b.float()).double()


def add16(a: Tensor, b: Tensor) -> Tensor:
    """add.rn.f16: fp16 numbers are multiples of 2**-24 below 2**16, so float64 adds them exactly."""
    return round16(a + b)


def mul16(a: Tensor, b: Tensor) -> Tensor:
    """mul.rn.f16: the product of two 11-bit numbers is exact in float64."""
    return round16(a * b)


def relu(x: Tensor) -> Tensor:
    """max of x and +0 without .NaN: a NaN gives +0, and so does -0."""
    return torch.where(x > 0, x, torch.zeros((), dtype=x.dtype, device=x.device))


def relu_nan(x: Tensor) -> Tensor:
    """The same with .NaN: a NaN stays."""
    return torch.where(torch.isnan(x), x, relu(x))


def twice_relu32(x: Tensor) -> Tensor:
    """x + abs(x) in fp32."""
    return add32(x, x.abs())
