"""The bodies of the recorded programs: text, and the few functions that build it."""

from __future__ import annotations

from dataclasses import dataclass

LOAD_TWO = "mul.wide.u32 %d1, %r60, 8;\nadd.s64 %d1, %d60, %d1;\nld.global.v2.b32 {%r1, %r2}, [%d1];\n"


@dataclass(frozen=True)
class Tile:
    """A tensor map: element bytes, sizes, byte strides of dimensions 1.., box, swizzle (0 none, 1, 2, 3 = 32, 64,
    128 bytes: CUtensorMapSwizzle).
    """

    element_bytes: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int


def chain(operations: list[str], store: str = "st.global.b64 [%d62], %d9;") -> str:
    """Fold the results of several instructions on %r1, %r2 into %d9 by rotating and adding."""
    lines = [LOAD_TWO, "mov.b64 %d9, 0;"]
    for text in operations:
        lines += [text, "cvt.u64.u32 %d8, %r3;", "mul.lo.s64 %d9, %d9, 31;", "add.s64 %d9, %d9, %d8;"]
    return "\n".join([*lines, store])


def select(kind: str) -> list[str]:
    """The six comparisons of one kind, each choosing between a register and a number."""
    names = ("eq", "ne", "lt", "le", "gt", "ge")
    return [f"setp.{name}.{kind} %p1, %r1, %r2;\nselp.b32 %r3, %r1, 12345, %p1;" for name in names]


TWO = [
    "add.s32",
    "sub.s32",
    "mul.lo.s32",
    "min.s32",
    "max.s32",
    "min.u32",
    "max.u32",
    "and.b32",
    "or.b32",
    "xor.b32",
]
SHIFTS = ["shl.b32", "shr.u32", "shr.s32", "shr.b32"]
WIDE = """
mul.wide.s32 %d2, %r1, %r2;
mul.wide.u32 %d3, %r1, %r2;
cvt.s64.s32 %d4, %r1;
cvt.u64.u32 %d5, %r2;
mad.lo.s64 %d6, %d2, %d4, %d5;
sub.s64 %d6, %d6, %d3;
and.b32 %r4, %r2, 127;
shl.b64 %d7, %d6, %r4;
shr.u64 %d8, %d6, %r4;
shr.s64 %d9, %d2, %r4;
xor.b64 %d7, %d7, %d8;
add.s64 %d7, %d7, %d9;
st.global.b64 [%d62], %d7;
"""
DIVERGE = """
and.b32 %r3, %r1, 7;
mov.b32 %r4, 0;
mov.b32 %r5, 1;
AGAIN:
setp.ge.u32 %p1, %r4, %r3;
@%p1 bra OUT;
add.s32 %r4, %r4, 1;
and.b32 %r6, %r2, %r4;
setp.eq.u32 %p2, %r6, 0;
@%p2 bra EVEN;
mad.lo.s32 %r5, %r5, 3, %r4;
bra AGAIN;
EVEN:
xor.b32 %r5, %r5, %r1;
@!%p2 add.s32 %r5, %r5, 99;
bra AGAIN;
OUT:
bar.warp.sync -1;
shfl.sync.bfly.b32 %r7, %r5, 3, 31, -1;
add.s32 %r5, %r5, %r7;
st.global.b32 [%d62], %r5;
st.global.b32 [%d62+4], %r4;
"""
SHUFFLES = """
shfl.sync.idx.b32 %r3, %r1, %r2, 31, -1;
shfl.sync.up.b32 %r4, %r1, 5, 0, -1;
shfl.sync.down.b32 %r5, %r1, 7, 31, -1;
shfl.sync.bfly.b32 %r6, %r1, 17, 31, -1;
shfl.sync.idx.b32 %r7, %r1, %r2, 6175, -1;
shfl.sync.down.b32 %r8|%p1, %r1, 3, 6175, -1;
selp.b32 %r9, 1, 0, %p1;
elect.sync %r10|%p2, -1;
selp.b32 %r11, 16, 0, %p2;
add.s32 %r9, %r9, %r11;
add.s32 %r9, %r9, %r10;
st.global.v2.b32 [%d62], {%r3, %r4};
st.global.v2.b32 [%d62+8], {%r5, %r6};
st.global.v2.b32 [%d62+16], {%r7, %r8};
st.global.b32 [%d62+24], %r9;
"""
NARROW = """
add.s64 %d2, %d60, 3;
ld.global.b8 %h1, [%d2];
ld.global.s8 %h2, [%d2+2];
ld.global.b16 %h3, [%d60+6];
ld.global.u8 %r3, [%d2+5];
ld.global.s16 %r4, [%d60+14];
mov.b32 %r5, {%h1, %h2};
mov.b32 {%h4, %h5}, %r1;
mov.b32 %r6, {%h5, %h3};
mov.b64 %d3, {%r5, %r6};
mov.b64 {%r7, %r8}, %d3;
add.s32 %r7, %r7, %r3;
add.s32 %r8, %r8, %r4;
st.global.b16 [%d62], %h5;
st.global.b16 [%d62+2], %h4;
st.global.v2.b32 [%d62+8], {%r7, %r8};
cvt.u32.u16 %r9, %h5;
cvt.s32.s16 %r10, %h5;
st.global.v2.b32 [%d62+16], {%r9, %r10};
"""
SHARED = """
shl.b32 %r3, %r60, 3;
add.s32 %r3, %r3, %r61;
st.shared.v2.b32 [%r3], {%r1, %r2};
bar.sync 0;
xor.b32 %r4, %r60, 77;
shl.b32 %r4, %r4, 3;
add.s32 %r4, %r4, %r61;
ld.shared.b64 %d2, [%r4];
and.b32 %r5, %r4, -16;
ld.shared.v4.b32 {%r6, %r7, %r8, %r9}, [%r5];
xor.b32 %r6, %r6, %r9;
add.s32 %r7, %r7, %r8;
mov.b64 %d3, {%r6, %r7};
xor.b64 %d2, %d2, %d3;
st.global.b64 [%d62], %d2;
"""
RING = """
setp.eq.u32 %p1, %r60, 0;
@%p1 mbarrier.init.shared.b64 [%r61], 1;
@%p1 mbarrier.init.shared.b64 [%r61+8], 96;
bar.sync 0;
setp.ne.u32 %p2, %r62, 0;
mov.b32 %r3, 0;
mov.b32 %r5, 0;
@%p2 bra READER;
WRITER:
and.b32 %r4, %r3, 1;
xor.b32 %r4, %r4, 1;
WAIT_EMPTY:
mbarrier.try_wait.parity.shared.b64 %p3, [%r61+8], %r4, 1000;
@!%p3 bra WAIT_EMPTY;
@%p1 st.shared.b32 [%r61+64], %r1;
mad.lo.s32 %r1, %r1, 7, %r3;
@%p1 mbarrier.arrive.shared.b64 _, [%r61];
add.s32 %r3, %r3, 1;
setp.lt.u32 %p4, %r3, 9;
@%p4 bra WRITER;
bra END;
READER:
and.b32 %r4, %r3, 1;
WAIT_FULL:
mbarrier.try_wait.parity.shared.b64 %p3, [%r61], %r4, 1000;
@!%p3 bra WAIT_FULL;
ld.shared.b32 %r6, [%r61+64];
mad.lo.s32 %r5, %r5, 5, %r6;
mbarrier.arrive.shared.b64 _, [%r61+8];
add.s32 %r3, %r3, 1;
setp.lt.u32 %p4, %r3, 9;
@%p4 bra READER;
END:
add.s32 %r5, %r5, %r60;
st.global.b32 [%d62], %r5;
"""
PHASES = """
setp.eq.u32 %p1, %r60, 0;
@%p1 mbarrier.init.shared.b64 [%r61], 2;
bar.sync 0;
mov.b32 %r9, 0;
@!%p1 bra DONE;
mbarrier.test_wait.parity.shared.b64 %p2, [%r61], 0;
selp.b32 %r3, 1, 0, %p2;
mbarrier.test_wait.parity.shared.b64 %p2, [%r61], 1;
selp.b32 %r4, 2, 0, %p2;
mbarrier.arrive.expect_tx.shared.b64 _, [%r61], 0;
mbarrier.test_wait.parity.shared.b64 %p2, [%r61], 0;
selp.b32 %r5, 4, 0, %p2;
mbarrier.arrive.shared.b64 _, [%r61];
mbarrier.test_wait.parity.shared.b64 %p2, [%r61], 0;
selp.b32 %r6, 8, 0, %p2;
mbarrier.test_wait.parity.shared.b64 %p2, [%r61], 1;
selp.b32 %r7, 16, 0, %p2;
mbarrier.arrive.shared.b64 _, [%r61], 2;
mbarrier.test_wait.parity.shared.b64 %p2, [%r61], 1;
selp.b32 %r8, 32, 0, %p2;
add.s32 %r9, %r3, %r4;
add.s32 %r9, %r9, %r5;
add.s32 %r9, %r9, %r6;
add.s32 %r9, %r9, %r7;
add.s32 %r9, %r9, %r8;
DONE:
st.global.b32 [%d62], %r9;
"""
TWO_BARRIERS = """
shl.b32 %r3, %r60, 2;
add.s32 %r3, %r3, %r61;
setp.lt.u32 %p1, %r60, 64;
@!%p1 bra SECOND;
st.shared.b32 [%r3], %r1;
bar.arrive 1, 128;
bar.sync 2, 128;
ld.shared.b32 %r4, [%r3+256];
bra STORE;
SECOND:
bar.sync 1, 128;
ld.shared.b32 %r4, [%r3+-256];
st.shared.b32 [%r3], %r2;
bar.arrive 2, 128;
STORE:
st.global.b32 [%d62], %r4;
"""


def floats() -> str:
    """Every fp32, fp16 and conversion opcode on operands that give no NaN."""
    operations = [
        "add.rn.f32 %r3, %r1, %r2;",
        "mul.rn.f32 %r3, %r1, %r2;",
        "fma.rn.f32 %r3, %r1, %r2, %r1;",
        "max.f32 %r3, %r1, %r2;",
        "add.rn.f16x2 %r3, %r1, %r2;",
        "mul.rn.f16x2 %r3, %r1, %r2;",
        "max.f16x2 %r3, %r1, %r2;",
        "fma.rn.f16x2 %r3, %r1, %r2, %r1;",
        "cvt.rn.f16x2.f32 %r3, %r1, %r2;",
        "cvt.rn.f16.f32 %h1, %r1;\ncvt.rn.bf16.f32 %h2, %r2;\nmov.b32 %r3, {%h1, %h2};",
        "mov.b32 {%h1, %h2}, %r1;\ncvt.f32.f16 %r3, %h2;",
    ]
    # Exponents near the middle, so that no NaN payload, which the ISA leaves open, comes up.
    tame = "and.b32 %r1, %r1, 0x8FFFBFFF;\nor.b32 %r1, %r1, 0x30003000;\nand.b32 %r2, %r2, 0xBFFFBFFF;\n"
    return chain(operations).replace("mov.b64 %d9, 0;", tame + "mov.b64 %d9, 0;")


def tile_body(tile: Tile, coordinates: list[tuple[int, ...]], at: int = 1024) -> str:
    """Load boxes one behind the other, wait for all bytes, copy the shared memory out."""
    size = tile.element_bytes
    for extent in tile.box:
        size *= extent
    pitch = -(-size // 1024) * 1024
    rank = len(tile.box)
    opcode = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    lines = [
        "setp.eq.u32 %p1, %r60, 0;",
        "@%p1 mbarrier.init.shared.b64 [%r61], 1;",
        "@%p1 fence.mbarrier_init.release.cluster;",
        "bar.sync 0;",
        "mov.b64 %d3, map;",
        "cvta.param.u64 %d3, %d3;",
        "@!%p1 bra WAITING;",
        f"mbarrier.arrive.expect_tx.shared.b64 _, [%r61], {size * len(coordinates)};",
    ]
    for number, place in enumerate(coordinates):
        names = [f"%r{10 + d}" for d in range(rank)]
        lines += [f"mov.b32 {name}, {c};" for name, c in zip(names, place, strict=True)]
        lines.append(f"{opcode} [%r61+{at + number * pitch}], [%d3, {{{', '.join(names)}}}], [%r61];")
    words = pitch * len(coordinates) // 8
    lines += [
        "WAITING:",
        "mbarrier.try_wait.parity.shared.b64 %p2, [%r61], 0, 1000;",
        "@!%p2 bra WAITING;",
        "mov.b32 %r20, %r60;",
        "COPYING:",
        f"setp.ge.u32 %p3, %r20, {words};",
        "@%p3 bra COPIED;",
        "shl.b32 %r21, %r20, 3;",
        f"and.b32 %r22, %r21, {pitch - 1};",
        f"setp.ge.u32 %p4, %r22, {size};",
        "cvt.u64.u32 %d4, %r21;",
        "add.s64 %d4, %d61, %d4;",
        "add.s32 %r21, %r21, %r61;",
        "mov.b64 %d5, 0;",
        f"@!%p4 ld.shared.b64 %d5, [%r21+{at}];",
        "st.global.b64 [%d4], %d5;",
        "add.s32 %r20, %r20, 128;",
        "bra COPYING;",
        "COPIED:",
    ]
    return "\n".join(lines)
