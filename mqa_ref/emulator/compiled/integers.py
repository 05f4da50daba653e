"""Vector kernels of the integer, predicate and selection instructions, after ``opcodes.arith`` and ``opcodes.more``."""

from __future__ import annotations

from llvmlite import ir

from mqa_ref.emulator.compiled.vectors import Emit, Kernel, Value, call_intrinsic, splat, vector

COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _compare(symbol: str, *, signed: bool) -> Emit:
    if signed:
        return lambda b, x, y: b.icmp_signed(symbol, x, y)
    return lambda b, x, y: b.icmp_unsigned(symbol, x, y)


def _extreme(symbol: str, *, signed: bool) -> Emit:
    compare = _compare(symbol, signed=signed)
    return lambda b, x, y: b.select(compare(b, x, y), x, y)


def _negate(b: ir.IRBuilder, x: Value) -> Value:
    return b.sub(splat(0, x.type.element.width), x)


def _absolute(b: ir.IRBuilder, x: Value) -> Value:
    return b.select(b.icmp_signed("<", x, splat(0, x.type.element.width)), _negate(b, x), x)


def _fit(b: ir.IRBuilder, x: Value, bits: int, *, signed: bool = False) -> Value:
    """Cut or extend to ``bits``."""
    have = x.type.element.width
    if have == bits:
        return x
    if have > bits:
        return b.trunc(x, vector(bits))
    return b.sext(x, vector(bits)) if signed else b.zext(x, vector(bits))


def _shift(left: bool) -> Emit:
    """An amount beyond the width gives zero; the 32-bit amount is compared before it is cut to the width."""

    def emit(b: ir.IRBuilder, x: Value, by: Value) -> Value:
        bits = x.type.element.width
        amount = _fit(b, b.and_(by, splat(bits - 1, 32)), bits)
        moved = b.shl(x, amount) if left else b.lshr(x, amount)
        return b.select(b.icmp_unsigned("<", by, splat(bits, 32)), moved, splat(0, bits))

    return emit


def _shift_signed(b: ir.IRBuilder, x: Value, by: Value) -> Value:
    bits = x.type.element.width
    most = splat(bits - 1, 32)
    amount = b.select(b.icmp_unsigned("<", by, most), by, most)
    return b.ashr(x, _fit(b, amount, bits))


def _wide(signed: bool) -> Emit:
    def emit(b: ir.IRBuilder, x: Value, y: Value) -> Value:
        bits = x.type.element.width * 2
        return b.mul(_fit(b, x, bits, signed=signed), _fit(b, y, bits, signed=signed))

    return emit


def _high(signed: bool) -> Emit:
    multiply = _wide(signed)
    return lambda b, x, y: b.trunc(b.lshr(multiply(b, x, y), splat(32, 64)), vector(32))


def _added(product: Emit) -> Emit:
    return lambda b, x, y, z: b.add(product(b, x, y), z)


def _funnel(name: str) -> Emit:
    """shf.wrap: 64 bits y:x shifted by z mod 32, which is what the intrinsics do."""
    return lambda b, x, y, z: call_intrinsic(b, name, (y, x, z))


def _permute(b: ir.IRBuilder, x: Value, y: Value, control: Value) -> Value:
    """Each nibble of ``control`` picks one of the eight bytes of y:x; its top bit spreads that byte's sign."""
    both = b.or_(b.zext(x, vector(64)), b.shl(b.zext(y, vector(64)), splat(32, 64)))
    out = splat(0, 32)
    for place in range(4):
        nibble = b.lshr(control, splat(4 * place, 32))
        by = b.shl(b.zext(b.and_(nibble, splat(7, 32)), vector(64)), splat(3, 64))
        byte = b.and_(b.trunc(b.lshr(both, by), vector(32)), splat(255, 32))
        sign = b.and_(b.ashr(b.shl(byte, splat(24, 32)), splat(31, 32)), splat(255, 32))
        spread = b.icmp_unsigned("!=", b.and_(nibble, splat(8, 32)), splat(0, 32))
        out = b.or_(out, b.shl(b.select(spread, sign, byte), splat(8 * place, 32)))
    return out


def _convert(target: int, *, signed: bool) -> Emit:
    return lambda b, x: _fit(b, x, target, signed=signed)


def _of_width(width: int) -> dict[str, Kernel]:
    pair = (width, width)
    rows: dict[str, Kernel] = {}
    multiply: Emit = lambda b, x, y: b.mul(x, y)  # noqa: E731
    for sign in "su":
        signed = sign == "s"
        rows[f"add.{sign}{width}"] = Kernel((width,), pair, lambda b, x, y: b.add(x, y))
        rows[f"sub.{sign}{width}"] = Kernel((width,), pair, lambda b, x, y: b.sub(x, y))
        rows[f"mul.lo.{sign}{width}"] = Kernel((width,), pair, multiply)
        rows[f"mad.lo.{sign}{width}"] = Kernel((width,), (width,) * 3, _added(multiply))
        rows[f"min.{sign}{width}"] = Kernel((width,), pair, _extreme("<", signed=signed))
        rows[f"max.{sign}{width}"] = Kernel((width,), pair, _extreme(">", signed=signed))
        for name, symbol in COMPARISONS.items():
            rows[f"setp.{name}.{sign}{width}"] = Kernel((1,), pair, _compare(symbol, signed=signed))
    for name in ("eq", "ne"):
        rows[f"setp.{name}.b{width}"] = Kernel((1,), pair, _compare(COMPARISONS[name], signed=False))
    rows[f"neg.s{width}"] = Kernel((width,), (width,), _negate)
    rows[f"abs.s{width}"] = Kernel((width,), (width,), _absolute)
    rows[f"and.b{width}"] = Kernel((width,), pair, lambda b, x, y: b.and_(x, y))
    rows[f"or.b{width}"] = Kernel((width,), pair, lambda b, x, y: b.or_(x, y))
    rows[f"xor.b{width}"] = Kernel((width,), pair, lambda b, x, y: b.xor(x, y))
    rows[f"not.b{width}"] = Kernel((width,), (width,), lambda b, x: b.not_(x))
    rows[f"shl.b{width}"] = Kernel((width,), (width, 32), _shift(left=True))
    for kind in "ub":
        rows[f"shr.{kind}{width}"] = Kernel((width,), (width, 32), _shift(left=False))
    rows[f"shr.s{width}"] = Kernel((width,), (width, 32), _shift_signed)
    for kind in "bsu" if width == 16 else "bsuf":
        rows[f"selp.{kind}{width}"] = Kernel(
            (width,), (width, width, 1), lambda b, x, y, p: b.select(p, x, y)
        )
    for source in (16, 32, 64):
        for kind in "su":
            for sign in "su":
                rows[f"cvt.{kind}{width}.{sign}{source}"] = Kernel(
                    (width,), (source,), _convert(width, signed=sign == "s")
                )
    return rows


def kernels() -> dict[str, Kernel]:
    """Opcode -> kernel."""
    rows: dict[str, Kernel] = {}
    for width in (16, 32, 64):
        rows |= _of_width(width)
    for width in (16, 32):
        for sign in "su":
            wide = _wide(sign == "s")
            rows[f"mul.wide.{sign}{width}"] = Kernel((width * 2,), (width, width), wide)
            rows[f"mad.wide.{sign}{width}"] = Kernel((width * 2,), (width, width, width * 2), _added(wide))
    for sign in "su":
        rows[f"mul.hi.{sign}32"] = Kernel((32,), (32, 32), _high(sign == "s"))
    rows["shf.l.wrap.b32"] = Kernel((32,), (32, 32, 32), _funnel("fshl"))
    rows["shf.r.wrap.b32"] = Kernel((32,), (32, 32, 32), _funnel("fshr"))
    rows["prmt.b32"] = Kernel((32,), (32, 32, 32), _permute)
    rows["popc.b32"] = Kernel((32,), (32,), lambda b, x: call_intrinsic(b, "ctpop", (x,)))
    rows["and.pred"] = Kernel((1,), (1, 1), lambda b, x, y: b.and_(x, y))
    rows["or.pred"] = Kernel((1,), (1, 1), lambda b, x, y: b.or_(x, y))
    rows["xor.pred"] = Kernel((1,), (1, 1), lambda b, x, y: b.xor(x, y))
    rows["not.pred"] = Kernel((1,), (1,), lambda b, x: b.not_(x))
    return rows
