"""The bodies of the recorded programs in which lanes and warps meet, and of those that take bits apart."""

from __future__ import annotations

ACROSS = """
and.b32 %r3, %r60, 31;
setp.lt.u32 %p1, %r3, 20;
mov.b32 %r4, 0;
mov.b32 %r5, 0;
mov.b32 %r6, 0;
mov.b32 %r7, 0;
mov.b32 %r8, 0xFFFFF;
@!%p1 bra REST;
shfl.sync.up.b32 %r4|%p2, %r1, 3, 0, %r8;
shfl.sync.down.b32 %r5|%p3, %r2, 2, 0x1C03, %r8;
shfl.sync.bfly.b32 %r6, %r1, 1, 0x181F, 0xFFFFF;
setp.lt.u32 %p5, %r3, 16;
selp.b32 %r9, 15, 3, %p5;
and.b32 %r9, %r2, %r9;
shfl.sync.idx.b32 %r7|%p4, %r1, %r9, 0x1007, 0xFFFFF;
selp.b32 %r10, 1, 0, %p2;
selp.b32 %r11, 2, 0, %p3;
selp.b32 %r12, 4, 0, %p4;
add.s32 %r10, %r10, %r11;
add.s32 %r10, %r10, %r12;
bra JOIN;
REST:
mov.b32 %r9, 0xFFF00000;
elect.sync %r10|%p5, %r9;
vote.sync.ballot.b32 %r4, %p5, %r9;
redux.sync.add.u32 %r5, %r1, %r9;
redux.sync.min.s32 %r6, %r1, %r9;
redux.sync.xor.b32 %r7, %r2, 0xFFF00000;
JOIN:
bar.warp.sync -1;
and.b32 %r13, %r1, 3;
match.any.sync.b32 %r14, %r13, -1;
setp.eq.u32 %p6, %r13, 2;
vote.sync.any.pred %p7, %p6, -1;
vote.sync.all.pred %p8, !%p6, -1;
vote.sync.uni.pred %p9, %p1, -1;
vote.sync.ballot.b32 %r15, !%p6, -1;
match.all.sync.b32 %r16|%p10, %r8, -1;
selp.b32 %r17, 1, 0, %p7;
selp.b32 %r18, 2, 0, %p8;
selp.b32 %r19, 4, 0, %p9;
selp.b32 %r20, 8, 0, %p10;
or.b32 %r17, %r17, %r18;
or.b32 %r17, %r17, %r19;
or.b32 %r17, %r17, %r20;
xor.b32 %r15, %r15, %r16;
st.global.v4.b32 [%d62], {%r4, %r5, %r6, %r7};
st.global.v4.b32 [%d62+16], {%r10, %r14, %r15, %r17};
"""
NUMBERED = """
shr.u32 %r3, %r62, 1;
add.s32 %r4, %r3, 3;
mov.b32 %r5, 64;
shl.b32 %r6, %r60, 2;
add.s32 %r6, %r6, %r61;
st.shared.b32 [%r6], %r1;
bar.sync %r4, %r5;
xor.b32 %r7, %r60, 33;
shl.b32 %r7, %r7, 2;
add.s32 %r7, %r7, %r61;
ld.shared.b32 %r8, [%r7];
mov.b32 %r9, 9;
mov.b32 %r10, 128;
setp.eq.u32 %p1, %r3, 0;
@%p1 bra FIRST;
st.shared.b32 [%r6+512], %r2;
bar.arrive %r9, %r10;
mov.b32 %r11, 0;
bra LAST;
FIRST:
bar.sync %r9, %r10;
ld.shared.b32 %r11, [%r6+768];
LAST:
xor.b32 %r8, %r8, %r11;
st.global.b32 [%d62], %r8;
"""
GENERIC = """
cvt.u64.u32 %d2, %r61;
cvta.shared.u64 %d3, %d2;
mul.wide.u32 %d4, %r60, 8;
add.s64 %d5, %d3, %d4;
st.v2.b32 [%d5], {%r2, %r1};
bar.sync 0;
xor.b32 %r3, %r60, 5;
mul.wide.u32 %d6, %r3, 8;
add.s64 %d7, %d2, %d6;
ld.shared.v2.b32 {%r4, %r5}, [%d7];
add.s64 %d8, %d60, %d6;
ld.u32 %r6, [%d8+4];
ld.global.nc.L2::128B.b32 %r7, [%d8];
cvta.to.shared.u64 %d9, %d5;
cvt.u32.u64 %r8, %d9;
ld.shared.b32 %r9, [%r8];
xor.b32 %r4, %r4, %r6;
xor.b32 %r5, %r5, %r7;
add.s64 %d10, %d62, 8;
cvta.global.u64 %d10, %d10;
st.v2.b32 [%d10], {%r4, %r5};
st.b32 [%d62], %r9;
"""
BITS = [
    "and.b32 %r4, %r2, 255;\nshr.u32 %r5, %r2, 8;\nand.b32 %r5, %r5, 255;\nbfe.u32 %r3, %r1, %r4, %r5;",
    "bfe.s32 %r3, %r1, %r4, %r5;",
    "and.b32 %r6, %r4, 31;\nand.b32 %r7, %r5, 31;\nbfe.u32 %r3, %r1, %r6, %r7;",
    "bfe.s32 %r3, %r1, %r6, %r7;",
    "bfi.b32 %r3, %r2, %r1, %r6, %r7;",
    "bfi.b32 %r3, %r2, %r1, %r4, %r5;",
    "shf.l.wrap.b32 %r3, %r1, %r2, %r4;",
    "shf.r.wrap.b32 %r3, %r1, %r2, %r4;",
    "and.b32 %r8, %r4, 63;\nshf.l.clamp.b32 %r3, %r1, %r2, %r8;",
    "shf.r.clamp.b32 %r3, %r1, %r2, %r8;",
    "prmt.b32 %r3, %r1, %r2, %r2;",
    "lop3.b32 %r3, %r1, %r2, %r4, 0xB1;",
    "popc.b32 %r3, %r1;",
    "clz.b32 %r3, %r4;",
    "brev.b32 %r3, %r1;",
    "mul.hi.s32 %r3, %r1, %r2;",
    "mul.hi.u32 %r3, %r1, %r2;",
    "add.s32 %r9, %r4, 1;\ndiv.u32 %r3, %r1, %r9;",
    "rem.s32 %r3, %r1, %r9;",
    "min.f32 %r3, %r1, %r2;",
    "max.NaN.f32 %r3, %r1, %r2;",
    "setp.lt.f32 %p1, %r1, %r2;\nsetp.geu.f32 %p2, %r1, %r2;\nselp.b32 %r3, 5, 9, %p1;\n@%p2 add.s32 %r3, %r3, 32;",
]
