"""Vector kernels that move values: between registers, between the halves of one, and between lanes.

A copy of a register that a tcgen05.ld is still filling is legal and itself in flight (``Kernel.moves``).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from mqa_ref.emulator.compiled.vectors import (
    ALIGNMENT,
    LANES,
    WORD,
    Emit,
    Kernel,
    Value,
    each,
    repeat,
    scratch,
    splat,
    vector,
)


def _same(_: ir.IRBuilder, x: Value) -> Value:
    return x


def _pack(width: int) -> Emit:
    """Parts of a register, low part first."""

    def emit(b: ir.IRBuilder, *parts: Value) -> Value:
        out: Any = splat(0, width)
        for number, part in enumerate(parts):
            wide = b.zext(part, vector(width))
            out = b.or_(out, b.shl(wide, splat(number * width // len(parts), width)))
        return out

    return emit


def _unpack(width: int, count: int) -> Emit:
    part = width // count
    return lambda b, x: tuple(
        b.trunc(b.lshr(x, splat(number * part, width)), vector(part)) for number in range(count)
    )


def _parameters(bits: int, count: int) -> Emit:
    """The same scalars for every lane."""
    kind = ir.IntType(bits)
    return lambda b, pointer: tuple(
        repeat(b, b.load(b.gep(pointer, [WORD(number)], source_etype=kind), typ=kind, align=1))
        for number in range(count)
    )


def _elect(_: ir.IRBuilder) -> tuple[Value, Value]:
    """All lanes take part, so the first is elected."""
    truth = ir.VectorType(ir.IntType(1), LANES)
    return splat(0, 32, LANES), ir.Constant(truth, [int(lane == 0) for lane in range(LANES)])


def _shuffle(mode: str) -> Emit:
    """The same lane arithmetic as ``opcodes.moves``."""

    def emit(b: ir.IRBuilder, data: Value, by: Value, control: Value) -> tuple[Value, Value]:
        lanes = ir.Constant(vector(32, LANES), list(range(LANES)))
        low_bits = splat(31, 32, LANES)
        by = b.and_(by, low_bits)
        clamp = b.and_(control, low_bits)
        segment = b.and_(b.lshr(control, splat(8, 32, LANES)), low_bits)
        low = b.and_(lanes, segment)
        high = b.or_(low, b.and_(clamp, b.not_(segment)))
        if mode == "idx":
            wanted = b.or_(low, b.and_(by, b.not_(segment)))
        elif mode == "up":
            wanted = b.sub(lanes, by)
        else:
            wanted = b.add(lanes, by) if mode == "down" else b.xor(lanes, by)
        inside = b.icmp_signed(">=" if mode == "up" else "<=", wanted, high)
        chosen = b.select(inside, wanted, lanes)
        places = [scratch(b, vector(32, LANES)) for _ in range(3)]
        for place, value in zip(places, (data, chosen), strict=False):
            b.store(value, place, align=ALIGNMENT)
        with each(b, LANES) as lane:
            at = b.load(b.gep(places[1], [lane], source_etype=WORD), typ=WORD)
            picked = b.load(b.gep(places[0], [at], source_etype=WORD), typ=WORD)
            b.store(picked, b.gep(places[2], [lane], source_etype=WORD))
        return b.load(places[2], typ=vector(32, LANES), align=ALIGNMENT), inside

    return emit


def kernels() -> dict[str, Kernel]:
    """Opcode -> kernel. "param" is ld.param, "pack" and "unpack" are the forms of mov with braces, "elect", "meet" and
    "shfl" those of the instructions in which all lanes of a warp meet."""
    rows: dict[str, Kernel] = {}
    for width in (16, 32, 64):
        for kind in "bus" if width == 16 else "busf":
            rows[f"mov.{kind}{width}"] = Kernel((width,), (width,), _same, moves=True)
    rows["mov.pred"] = Kernel((1,), (1,), _same)
    for name in ("cvta.param.u64", "cvta.to.param.u64", "cvta.global.u64", "cvta.to.global.u64"):
        rows[name] = Kernel((64,), (64,), _same)
    for width in (32, 64):
        part = width // 2
        rows[f"pack.{width}"] = Kernel((width,), (part, part), _pack(width), moves=True)
        rows[f"unpack.{width}"] = Kernel((part, part), (width,), _unpack(width, 2), moves=True)
    for bits in (16, 32, 64):
        for count in (1, 2):
            made = _parameters(bits, count)
            rows[f"param.{count}x{bits}"] = Kernel((bits,) * count, (), made, broadcasts=True)
    rows["meet"] = Kernel((), (), lambda _: (), exchanges=True)
    rows["elect"] = Kernel((32, 1), (), _elect, exchanges=True)
    for mode in ("idx", "up", "down", "bfly"):
        rows[f"shfl.{mode}"] = Kernel((32, 1), (32, 32, 32), _shuffle(mode), exchanges=True)
    return rows
