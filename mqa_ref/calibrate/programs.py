"""PTX that gives tiles of vectors to the tensor core: wgmma for sm_90a, tcgen05 for sm_100a; one K = 32 step a tile.

The driver makes machine code of the text, so no CUDA compiler is needed. One CTA of 128 threads handles one tile; a
kernel gets the addresses of four arrays: both operands of all tiles, already laid out as shared memory wants them
(``image_a``, ``image_b``), accumulators and results, both row by row. Source of the layouts and of the descriptors:
PTX ISA, "wgmma: Matrix descriptor", "tcgen05: Shared memory descriptor", "Instruction descriptor".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mqa_ref.numerics.machines import STEP_K

Codes = NDArray[np.uint8]
THREADS = 128
N = 64
"""Columns of a tile on either machine."""


@dataclass(frozen=True)
class TileProgram:
    """A kernel for one machine and one accumulator format.

    ``capability``: the compute capability it runs on. ``rows``: M of a tile; ``columns``: N. ``word_bytes``: of an
    accumulator in memory. ``image_a``, ``image_b``: codes [rows, 32] as bytes for shared memory.
    """

    ptx: str
    capability: tuple[int, int]
    rows: int
    word_bytes: int
    shared_bytes: int
    image_a: Callable[[Codes], Codes]
    image_b: Callable[[Codes], Codes]
    columns: int = N


def core_matrices(codes: Codes) -> Codes:
    """Codes [rows, 32] as core matrices of 8 rows by 16 bytes, the two of a group of rows side by side, no swizzle."""
    groups = codes.reshape(-1, 8, 2, 16).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(groups).reshape(-1)


def swizzled_rows(codes: Codes) -> Codes:
    """Codes [rows, 32] in rows of 128 bytes, 128-byte swizzle: chunk c of row r stands at chunk c xor r mod 8."""
    rows = codes.shape[0]
    out = np.zeros((rows, 8, 16), np.uint8)
    row = np.arange(rows)
    for chunk in range(STEP_K // 16):
        out[row, chunk ^ (row % 8)] = codes[:, chunk * 16 : chunk * 16 + 16]
    return out.reshape(-1)


_HEAD = """.version {version}
.target {target}
.address_size 64
.extern .shared .align 1024 .b8 dyn[];
.visible .entry calibrate(.param .u64 a_ptr, .param .u64 b_ptr, .param .u64 c_ptr, .param .u64 d_ptr)
.reqntid 128
{{
.reg .pred %p<8>;
.reg .b32 %r<40>;
.reg .b32 %c<64>;
.reg .b64 %d<16>;
ld.param.b64 %d1, [a_ptr];
ld.param.b64 %d2, [b_ptr];
ld.param.b64 %d3, [c_ptr];
ld.param.b64 %d4, [d_ptr];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
shr.u32 %r3, %r1, 5;
and.b32 %r4, %r1, 31;
mov.b32 %r5, dyn;
"""


def _copy(label: str, source: str, size: int, at: int) -> str:
    """All threads copy ``size`` bytes of this CTA's share of an array to byte ``at`` of shared memory."""
    return f"""
mul.wide.u32 %d5, %r2, {size};
add.s64 %d5, {source}, %d5;
mul.wide.u32 %d6, %r1, 4;
add.s64 %d5, %d5, %d6;
shl.b32 %r6, %r1, 2;
add.s32 %r6, %r6, %r5;
mov.b32 %r7, 0;
{label}:
ld.global.b32 %r8, [%d5];
st.shared.b32 [%r6+{at}], %r8;
add.s64 %d5, %d5, 512;
add.s32 %r6, %r6, 512;
add.s32 %r7, %r7, 512;
setp.lt.u32 %p1, %r7, {size};
@%p1 bra {label};
"""


_STAGED = "fence.proxy.async.shared::cta;\nbar.sync 0;\n"


def _places(tile_bytes: int, offset: str) -> str:
    """%d7 and %d8: where this thread's accumulators and results begin; ``offset`` leaves its byte offset in %r9."""
    return f"""
{offset}
mul.wide.u32 %d5, %r2, {tile_bytes};
cvt.u64.u32 %d6, %r9;
add.s64 %d5, %d5, %d6;
add.s64 %d7, %d3, %d5;
add.s64 %d8, %d4, %d5;
"""


def _names(count: int, first: int = 0) -> str:
    return ", ".join(f"%c{first + i}" for i in range(count))


def _sm90(acc: str) -> TileProgram:
    rows, operand = 64, 64 * STEP_K
    word, kind = (4, "f32") if acc == "fp32" else (2, "f16")
    # Fragment of a thread (PTX ISA, "wgmma: Register fragments for D"): row warp * 16 + lane / 4, further ones 8 below,
    # two neighbouring columns from (lane % 4) * 2 on in every group of eight.
    offset = f"""
shr.u32 %r9, %r4, 2;
shl.b32 %r10, %r3, 4;
add.s32 %r9, %r9, %r10;
mul.lo.s32 %r9, %r9, {N * word};
and.b32 %r10, %r4, 3;
shl.b32 %r10, %r10, {3 if acc == "fp32" else 2};
add.s32 %r9, %r9, %r10;
"""
    if acc == "fp32":
        places = [((i // 2 % 2) * 8 * N + i // 4 * 8 + i % 2) * 4 for i in range(32)]
    else:
        places = [((i % 2) * 8 * N + i // 2 * 8) * 2 for i in range(16)]
    count = len(places)
    leading, stride = 128, 256
    lines = [_HEAD.format(version="8.0", target="sm_90a")]
    lines += [_copy("COPY_A", "%d1", operand, 0), _copy("COPY_B", "%d2", operand, operand), _STAGED]
    lines.append(_places(rows * N * word, offset))
    lines += [f"ld.global.b32 %c{i}, [%d7+{place}];" for i, place in enumerate(places)]
    constant = (leading >> 4) << 16 | (stride >> 4) << 32
    lines.append(
        f"""
shr.u32 %r11, %r5, 4;
and.b32 %r11, %r11, 16383;
cvt.u64.u32 %d9, %r11;
or.b64 %d9, %d9, {constant:#x};
add.s64 %d10, %d9, {operand >> 4};
setp.eq.u32 %p2, 0, 0;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n64k32.{kind}.e4m3.e4m3 {{{_names(count)}}}, %d9, %d10, %p2, 1, 1;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
"""
    )
    lines += [f"st.global.b32 [%d8+{place}], %c{i};" for i, place in enumerate(places)]
    ptx = "\n".join(lines) + "\nret;\n}\n"
    return TileProgram(ptx, (9, 0), rows, word, 2 * operand, core_matrices, core_matrices)


_BATCH = 16


def _sm100(acc: str) -> TileProgram:
    rows, a_bytes, b_bytes = 128, 128 * 128, N * 128
    barrier, slot = a_bytes + b_bytes, a_bytes + b_bytes + 8
    shape = rows // 16 << 24 | N // 8 << 17 | (1 << 4 if acc == "fp32" else 0)
    parts = range(0, N, _BATCH)
    lines = [_HEAD.format(version="8.6", target="sm_100a")]
    lines += [_copy("COPY_A", "%d1", a_bytes, 0), _copy("COPY_B", "%d2", b_bytes, a_bytes)]
    lines.append(
        f"""
setp.eq.u32 %p2, %r1, 0;
setp.eq.u32 %p3, %r3, 0;
@%p2 mbarrier.init.shared.b64 [%r5+{barrier}], 1;
fence.mbarrier_init.release.cluster;
@!%p3 bra ALLOCATED;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r5+{slot}], {N};
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
ALLOCATED:
{_STAGED}
ld.shared.b32 %r12, [%r5+{slot}];
shl.b32 %r13, %r3, 21;
add.s32 %r13, %r13, %r12;
"""
    )
    lines.append(_places(rows * N * 4, f"mul.lo.s32 %r9, %r1, {N * 4};"))
    for part in parts:
        lines += [f"ld.global.b32 %c{part + i}, [%d7+{(part + i) * 4}];" for i in range(_BATCH)]
        registers = _names(_BATCH, part)
        lines.append(f"tcgen05.st.sync.aligned.32x32b.x{_BATCH}.b32 [%r13+{part}], {{{registers}}};")
    lines.append(
        f"""
tcgen05.wait::st.sync.aligned;
tcgen05.fence::before_thread_sync;
bar.sync 0;
tcgen05.fence::after_thread_sync;
shr.u32 %r11, %r5, 4;
and.b32 %r11, %r11, 16383;
cvt.u64.u32 %d9, %r11;
or.b64 %d9, %d9, 0x4000404000010000;
add.s64 %d10, %d9, {a_bytes >> 4};
mov.b32 %r14, {shape};
setp.eq.u32 %p4, 0, 0;
@%p2 tcgen05.mma.cta_group::1.kind::f8f6f4 [%r12], %d9, %d10, %r14, %p4;
@%p2 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r5+{barrier}];
WAITING:
mbarrier.try_wait.parity.shared.b64 %p5, [%r5+{barrier}], 0, 1000;
@!%p5 bra WAITING;
tcgen05.fence::after_thread_sync;
"""
    )
    for part in parts:
        registers = _names(_BATCH, part)
        lines.append(f"tcgen05.ld.sync.aligned.32x32b.x{_BATCH}.b32 {{{registers}}}, [%r13+{part}];")
    lines.append("tcgen05.wait::ld.sync.aligned;")
    lines += [f"st.global.b32 [%d8+{i * 4}], %c{i};" for i in range(N)]
    lines.append(
        f"""
tcgen05.fence::before_thread_sync;
bar.sync 0;
@!%p3 bra FREED;
tcgen05.fence::after_thread_sync;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r12, {N};
FREED:
ret;
}}
"""
    )
    return TileProgram("\n".join(lines), (10, 0), rows, 4, slot + 24, swizzled_rows, swizzled_rows)


PROGRAMS: dict[str, Callable[[str], TileProgram]] = {"sm90": _sm90, "sm100": _sm100}
"""By the machine model that is published for the instruction; the argument is the accumulator format."""
ENTRY = "calibrate"
