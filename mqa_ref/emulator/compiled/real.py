"""Vector kernels of the floating-point instructions, with the results of ``mqa_ref.numerics`` bit for bit.

They rest on IEEE 754 arithmetic of the CPU in its default environment, on its fused multiply-add and on its
conversions between fp16 and fp32 (``native.available`` asks for both). Every result that is NaN is made canonical.
"""

from __future__ import annotations

from llvmlite import ir

from mqa_ref.emulator.compiled.integers import COMPARISONS
from mqa_ref.emulator.compiled.vectors import (
    FLOATS,
    GROUP,
    Emit,
    Kernel,
    Value,
    call_intrinsic,
    floats,
    integers,
    splat,
    vector,
)

_NAN = {16: 0x7FFF, 32: 0x7FFFFFFF}
_INF = {16: 0x7C00, 32: 0x7F800000}


def canonical(b: ir.IRBuilder, numbers: Value) -> Value:
    """Bit patterns of results."""
    bits = integers(b, numbers)
    width, count = bits.type.element.width, bits.type.count
    return b.select(b.fcmp_unordered("uno", numbers, numbers), splat(_NAN[width], width, count), bits)


def _is_nan(b: ir.IRBuilder, bits: Value) -> Value:
    width, count = bits.type.element.width, bits.type.count
    return b.icmp_unsigned(
        ">", b.and_(bits, splat(_NAN[width], width, count)), splat(_INF[width], width, count)
    )


def _widened(b: ir.IRBuilder, bits: Value) -> Value:
    """Numbers in the format that the operation is computed in: fp16 in fp32 (see ``numerics.ops16``)."""
    numbers = floats(b, bits)
    if bits.type.element.width == 16:
        return b.fpext(numbers, ir.VectorType(FLOATS[32], bits.type.count))
    return numbers


def _narrowed(b: ir.IRBuilder, numbers: Value, bits: int) -> Value:
    """The rounded result."""
    if bits == 16:
        numbers = b.fptrunc(numbers, ir.VectorType(FLOATS[16], numbers.type.count))
    return canonical(b, numbers)


def _add(b: ir.IRBuilder, x: Value, y: Value) -> Value:
    return _narrowed(b, b.fadd(_widened(b, x), _widened(b, y)), x.type.element.width)


def _multiply(b: ir.IRBuilder, x: Value, y: Value) -> Value:
    return _narrowed(b, b.fmul(_widened(b, x), _widened(b, y)), x.type.element.width)


def _fused32(b: ir.IRBuilder, x: Value, y: Value, z: Value) -> Value:
    return canonical(b, call_intrinsic(b, "fma", [floats(b, part) for part in (x, y, z)]))


def narrowed_to_f16(b: ir.IRBuilder, total: Value) -> Value:
    """Bit patterns in fp16 of float64 numbers, rounded once: to odd in fp32, and then to fp16.

    Rounding to odd: the nearest fp32 number, one step nearer to zero where that is greater in magnitude, with its last
    bit set where it is not the number itself. fp32 has more than two bits more than fp16, subnormal or not, so the
    second rounding acts as if it were the only one.
    """
    count = total.type.count
    near = b.fptrunc(total, ir.VectorType(FLOATS[32], count))
    back = b.fpext(near, total.type)
    bits = integers(b, near)
    beyond = b.fcmp_ordered(">", call_intrinsic(b, "fabs", (back,)), call_intrinsic(b, "fabs", (total,)))
    lower = b.select(beyond, b.sub(bits, splat(1, 32, count)), bits)
    odd = b.select(b.fcmp_ordered("!=", back, total), b.or_(lower, splat(1, 32, count)), bits)
    return _narrowed(b, floats(b, odd), 16)


def _fused16(b: ir.IRBuilder, x: Value, y: Value, z: Value) -> Value:
    """The float64 sum of ``numerics.fma_f16``, rounded once more."""
    double = ir.VectorType(FLOATS[64], x.type.count)
    p, q, r = (b.fpext(_widened(b, part), double) for part in (x, y, z))
    return narrowed_to_f16(b, b.fadd(b.fmul(p, q), r))


def _negate(b: ir.IRBuilder, x: Value) -> Value:
    width, count = x.type.element.width, x.type.count
    return b.xor(x, splat(1 << (width - 1), width, count))


def _negative(b: ir.IRBuilder, x: Value) -> Value:
    width, count = x.type.element.width, x.type.count
    return b.select(_is_nan(b, x), splat(_NAN[width], width, count), _negate(b, x))


def _absolute(b: ir.IRBuilder, x: Value) -> Value:
    width, count = x.type.element.width, x.type.count
    magnitude = b.and_(x, splat(_NAN[width], width, count))
    return b.select(_is_nan(b, x), splat(_NAN[width], width, count), magnitude)


def _maximum(b: ir.IRBuilder, x: Value, y: Value) -> Value:
    """A NaN gives way; of two equal numbers, which differ in the sign of zero at most, the bitwise and."""
    width, count = x.type.element.width, x.type.count
    p, q = _widened(b, x), _widened(b, y)
    found = b.select(b.fcmp_ordered(">", p, q), x, y)
    found = b.select(b.fcmp_ordered("==", p, q), b.and_(x, y), found)
    found = b.select(_is_nan(b, y), x, found)
    both = b.and_(_is_nan(b, x), _is_nan(b, y))
    return b.select(both, splat(_NAN[width], width, count), found)


def _minimum(b: ir.IRBuilder, x: Value, y: Value) -> Value:
    found = _maximum(b, _negate(b, x), _negate(b, y))
    return b.select(_is_nan(b, found), found, _negate(b, found))


def _with_nan(function: Emit) -> Emit:
    def emit(b: ir.IRBuilder, x: Value, y: Value) -> Value:
        width, count = x.type.element.width, x.type.count
        nan = b.or_(_is_nan(b, x), _is_nan(b, y))
        return b.select(nan, splat(_NAN[width], width, count), function(b, x, y))

    return emit


def _compare(name: str, *, unordered: bool) -> Emit:
    symbol = COMPARISONS[name]
    if unordered:
        return lambda b, x, y: b.fcmp_unordered(symbol, floats(b, x), floats(b, y))
    return lambda b, x, y: b.fcmp_ordered(symbol, floats(b, x), floats(b, y))


def _ordered(symbol: str) -> Emit:
    compare = "fcmp_ordered" if symbol == "ord" else "fcmp_unordered"
    return lambda b, x, y: getattr(b, compare)(symbol, floats(b, x), floats(b, y))


def _to_f16(b: ir.IRBuilder, x: Value) -> Value:
    return _narrowed(b, floats(b, x), 16)


def _to_bf16(b: ir.IRBuilder, x: Value) -> Value:
    """See ``numerics.cvt_bf16_f32``."""
    odd = b.and_(b.lshr(x, splat(16, 32)), splat(1, 32))
    rounded = b.lshr(b.add(b.add(x, splat(0x7FFF, 32)), odd), splat(16, 32))
    return b.select(_is_nan(b, x), splat(_NAN[16], 16), b.trunc(rounded, vector(16)))


def _from_f16(b: ir.IRBuilder, x: Value) -> Value:
    return canonical(b, _widened(b, x))


def _pack_f16(b: ir.IRBuilder, high: Value, low: Value) -> Value:
    upper = b.shl(b.zext(_to_f16(b, high), vector(32)), splat(16, 32))
    return b.or_(upper, b.zext(_to_f16(b, low), vector(32)))


def _packed(function: Emit, part: int) -> Emit:
    """The operation on both halves of each lane."""

    def emit(b: ir.IRBuilder, *sources: Value) -> Value:
        count = sources[0].type.count * 2
        split = [b.bitcast(source, vector(part, count)) for source in sources]
        return b.bitcast(function(b, *split), sources[0].type)

    return emit


def kernels() -> dict[str, Kernel]:
    """Opcode -> kernel."""
    rows: dict[str, Kernel] = {}
    for name, function in (("add", _add), ("mul", _multiply)):
        for rounding in ("", "rn."):
            rows[f"{name}.{rounding}f32"] = Kernel((32,), (32, 32), function)
            rows[f"{name}.{rounding}f16"] = Kernel((16,), (16, 16), function)
            rows[f"{name}.{rounding}f32x2"] = Kernel((64,), (64, 64), _packed(function, 32))
            rows[f"{name}.{rounding}f16x2"] = Kernel((32,), (32, 32), _packed(function, 16))
    for rounding in ("", "rn."):
        rows[f"sub.{rounding}f32"] = Kernel((32,), (32, 32), lambda b, x, y: _add(b, x, _negate(b, y)))
    rows["fma.rn.f32"] = Kernel((32,), (32, 32, 32), _fused32)
    rows["fma.rn.f32x2"] = Kernel((64,), (64, 64, 64), _packed(_fused32, 32))
    rows["fma.rn.f16"] = Kernel((16,), (16, 16, 16), _fused16)
    rows["fma.rn.f16x2"] = Kernel((32,), (32, 32, 32), _packed(_fused16, 16))
    rows["max.f32"] = Kernel((32,), (32, 32), _maximum)
    rows["min.f32"] = Kernel((32,), (32, 32), _minimum)
    rows["max.NaN.f32"] = Kernel((32,), (32, 32), _with_nan(_maximum))
    rows["min.NaN.f32"] = Kernel((32,), (32, 32), _with_nan(_minimum))
    rows["max.f16"] = Kernel((16,), (16, 16), _maximum)
    rows["max.f16x2"] = Kernel((32,), (32, 32), _packed(_maximum, 16))
    rows["abs.f32"] = Kernel((32,), (32,), _absolute)
    rows["neg.f32"] = Kernel((32,), (32,), _negative)
    for name in COMPARISONS:
        rows[f"setp.{name}.f32"] = Kernel((1,), (32, 32), _compare(name, unordered=False))
        rows[f"setp.{name}u.f32"] = Kernel((1,), (32, 32), _compare(name, unordered=True))
    rows["setp.num.f32"] = Kernel((1,), (32, 32), _ordered("ord"))
    rows["setp.nan.f32"] = Kernel((1,), (32, 32), _ordered("uno"))
    rows["cvt.rn.f16.f32"] = Kernel((16,), (32,), _to_f16)
    rows["cvt.rn.bf16.f32"] = Kernel((16,), (32,), _to_bf16)
    rows["cvt.f32.f16"] = Kernel((32,), (16,), _from_f16)
    rows["cvt.rn.f16x2.f32"] = Kernel((32,), (32, 32), _pack_f16)
    single = ir.VectorType(FLOATS[32], GROUP)
    rows["cvt.rn.f32.s32"] = Kernel((32,), (32,), lambda b, x: integers(b, b.sitofp(x, single)))
    rows["cvt.rn.f32.u32"] = Kernel((32,), (32,), lambda b, x: integers(b, b.uitofp(x, single)))
    return rows
