"""The bodies of the recorded programs in which warp groups multiply: operands from shared memory, each swizzle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

COPY_IN = """
mov.b32 %r20, %r60;
FILLING:
setp.ge.u32 %p3, %r20, {chunks};
@%p3 bra FILLED;
shl.b32 %r21, %r20, 4;
cvt.u64.u32 %d4, %r21;
add.s64 %d4, %d60, %d4;
ld.global.nc.L1::no_allocate.v2.b64 {{%d5, %d6}}, [%d4];
and.b64 %d5, %d5, 0x{mask};
and.b64 %d6, %d6, 0x{mask};
add.s32 %r21, %r21, %r61;
st.shared.v2.b64 [%r21], {{%d5, %d6}};
add.s32 %r20, %r20, {threads};
bra FILLING;
FILLED:
fence.proxy.async;
bar.sync 0;
"""
NO_NAN = "fe" * 8
"""Clears the last bit of each e4m3 code, so that none is NaN."""


@dataclass(frozen=True)
class Matrix:
    """A K-major operand: its place in shared memory, the strides, the swizzle and the base offset of its descriptor."""

    at: int
    stride: int
    swizzle: int
    leading: int = 16
    base_offset: int = 0

    def descriptor(self, name: str, step: int, base: str = "%r61") -> str:
        """Instructions that make the descriptor, ``step`` products of K = 32 further along, in a 64-bit register.

        A step is 32 bytes; with no swizzle, two of the 16-byte pieces that lie ``leading`` bytes apart.
        """
        codes = {0: 0, 128: 1, 64: 2, 32: 3}
        advance = step * (2 * self.leading if self.swizzle == 0 else 32)
        bits = (
            codes[self.swizzle] << 62
            | self.base_offset << 49
            | self.stride >> 4 << 32
            | self.leading >> 4 << 16
        )
        return (
            f"add.s32 %r30, {base}, {self.at + advance};\nshr.u32 %r30, %r30, 4;\nand.b32 %r30, %r30, 0x3FFF;\n"
            f"cvt.u64.u32 {name}, %r30;\nor.b64 {name}, {name}, {bits:#x};\n"
        )


def fill(size: int, threads: int = 128) -> str:
    """Copy ``size`` bytes of the input to shared memory, NaN codes taken out, and show them to the async proxy."""
    return COPY_IN.format(chunks=size // 16, mask=NO_NAN, threads=threads)


def registers(first: int, count: int) -> str:
    """{%f<first>, ...}."""
    return "{" + ", ".join(f"%f{i}" for i in range(first, first + count)) + "}"


def store(count: int) -> str:
    """Each thread's %f0 .. into its slot."""
    return "\n".join(f"st.global.b32 [%d62+{4 * i}], %f{i};" for i in range(count))


def product(n: int, first: int, scale: str, signs: str = "1, 1") -> str:
    """One product of the descriptors %d10 and %d11 into the accumulators from %f<first> on."""
    shape = f"wgmma.mma_async.sync.aligned.m64n{n}k32.f32.e4m3.e4m3"
    return f"{shape} {registers(first, n // 2)}, %d10, %d11, {scale}, {signs};\n"


def chain(n: int, a: Matrix, b: Matrix, size: int, steps: int) -> str:
    """Products along K, the first of which starts from nothing."""
    lines = [fill(size), f"{{\n.reg .f32 %f<{n // 2}>;\nsetp.ne.u32 %p1, %r61, 0;\nwgmma.fence.sync.aligned;"]
    for step in range(steps):
        lines += [
            a.descriptor("%d10", step),
            b.descriptor("%d11", step),
            product(n, 0, "%p1" if step else "!%p1"),
        ]
    lines += ["wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;", store(n // 2), "}"]
    return "\n".join(lines)


def signs(n: int, a: Matrix, b: Matrix, size: int) -> str:
    """Accumulators given by the threads, and products with each pair of signs on top of them."""
    lines = [fill(size), f"{{\n.reg .f32 %f<{n // 2}>;\nsetp.ne.u32 %p1, %r61, 0;"]
    for i in range(n // 2):
        lines.append(f"mad.lo.s32 %r31, %r60, {2 * i + 3}, {i - 99};\ncvt.rn.f32.s32 %f{i}, %r31;")
    lines += [a.descriptor("%d10", 0), b.descriptor("%d11", 0), "wgmma.fence.sync.aligned;"]
    lines += [product(n, 0, "%p1", pair) for pair in ("-1, 1", "1, 1", "1, -1", "-1, -1")]
    lines += ["wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;", store(n // 2), "}"]
    return "\n".join(lines)


def two_groups(n: int, first: Sequence[Matrix], second: Sequence[Matrix], size: int) -> str:
    """Two warp groups, each on its own rows of A, with two sets of accumulators that are waited for one by one."""
    base = "add.s32 %r40, %r61, %r41;"
    lines = [fill(size, 256), "shr.u32 %r41, %r60, 7;\nmul.lo.s32 %r41, %r41, 8192;", base]
    lines.append(f"{{\n.reg .f32 %f<{n}>;\nsetp.ne.u32 %p1, %r61, 0;\nwgmma.fence.sync.aligned;")
    for place, (a, b) in enumerate((first, second)):
        lines += [
            a.descriptor("%d10", 0, "%r40"),
            b.descriptor("%d11", 0),
            product(n, place * n // 2, "!%p1"),
        ]
        lines += [a.descriptor("%d10", 1, "%r40"), b.descriptor("%d11", 1), product(n, place * n // 2, "%p1")]
        lines.append("wgmma.commit_group.sync.aligned;")
    lines.append("wgmma.wait_group.sync.aligned 1;")
    lines += [f"st.global.b32 [%d62+{4 * i}], %f{i};" for i in range(n // 2)]
    lines.append("wgmma.wait_group.sync.aligned 0;")
    lines += [f"st.global.b32 [%d62+{4 * i}], %f{i};" for i in range(n // 2, n)]
    return "\n".join([*lines, "}"])
