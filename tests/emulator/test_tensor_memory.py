"""Tensor memory in small programs: one 128 x 16 x 32 product against the scalar twin, and ways to misuse it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mqa_ref.numerics import MACHINES, scalar

M, N, K = 128, 16, 32
A_BYTES, B_AT = M * 128, M * 128
# Each of 128 threads copies its share of both images; one thread then issues the product and commits it.
COPY = """
mov.b32 %r1, 0;
COPYING:
shl.b32 %r2, %r1, 9;
shl.b32 %r3, %r60, 2;
add.s32 %r2, %r2, %r3;
cvt.u64.u32 %d1, %r2;
add.s64 %d1, %d60, %d1;
ld.global.b32 %r4, [%d1];
add.s32 %r5, %r61, %r2;
st.shared.b32 [%r5], %r4;
add.s32 %r1, %r1, 1;
setp.lt.u32 %p1, %r1, 36;
@%p1 bra COPYING;
setp.eq.u32 %p1, %r60, 0;
add.s32 %r6, %r61, 18432;
add.s32 %r7, %r61, 18440;
@%p1 mbarrier.init.shared.b64 [%r6], 1;
fence.mbarrier_init.release.cluster;
setp.ne.u32 %p2, %r62, 0;
@%p2 bra ALLOCATED;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r7], 32;
ALLOCATED:
bar.sync 0;
ld.shared.b32 %r8, [%r7];
"""
PRODUCT = """
shr.u32 %r9, %r61, 4;
cvt.u64.u32 %d2, %r9;
or.b64 %d3, %d2, 0x4000404000010000;
add.s64 %d4, %d3, 1024;
mov.b32 %r10, {shape};
mov.pred %p3, {accumulate};
@%p1 tcgen05.mma.cta_group::1.kind::f8f6f4 [%r8], %d3, %d4, %r10, %p3;
"""
COMMIT = "@%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r6];\n"
WAIT = """
WAITING:
mbarrier.try_wait.parity.shared.b64 %p4, [%r6], 0, 1000;
@!%p4 bra WAITING;
tcgen05.fence::after_thread_sync;
"""
LANES = "shl.b32 %r11, %r62, 21;\nadd.s32 %r11, %r11, %r8;\n"
LOAD = f"""
{LANES}
tcgen05.ld.sync.aligned.32x32b.x4.b32 {{%r12, %r13, %r14, %r15}}, [%r11+8];
tcgen05.wait::ld.sync.aligned;
mov.b64 %d5, {{%r12, %r15}};
st.global.b64 [%d62], %d5;
"""
FREE = """
tcgen05.fence::before_thread_sync;
bar.sync 0;
@%p2 bra FREED;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r8, 32;
FREED:
"""
FP32, FP16 = M // 16 << 24 | N // 8 << 17 | 1 << 4, M // 16 << 24 | N // 8 << 17


def image(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """K-major rows of 128 bytes, of which 32 are used; 16-byte chunk c of row r stands at chunk c xor (r mod 8)."""
    rows = codes.shape[0]
    out = np.zeros((rows, 8, 16), np.uint8)
    for row in range(rows):
        for chunk in range(K // 16):
            out[row, chunk ^ (row % 8)] = codes[row, chunk * 16 : chunk * 16 + 16]
    return out.reshape(-1)


def operands(seed: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]:
    random = np.random.default_rng(seed).integers(0, 256, (M + N, K)).astype(np.uint8)
    random[(random & 0x7F) == 0x7F] = 0x08
    a, b = random[:M], random[M:]
    return a, b, np.concatenate([image(a), image(b), np.zeros(1024, np.uint8)])


def product(shape: int = FP32, accumulate: int = 0) -> str:
    return PRODUCT.format(shape=shape, accumulate=accumulate)


@pytest.mark.parametrize("order", ["eager", "lazy", "random"])
@pytest.mark.parametrize(("shape", "acc"), [(FP32, "fp32"), (FP16, "fp16")])
def test_a_product_against_the_scalar_twin(bench: Any, order: str, shape: int, acc: str) -> None:
    a, b, data = operands(5)
    body = COPY + product(shape) + COMMIT + WAIT + LOAD + FREE
    ran = bench(body, data, warps=4, shared=18688, order=order)
    assert not ran.findings
    got = ran.out.view(np.uint32).reshape(M, 2)
    for row in range(0, M, 5):
        for place, column in ((0, 8), (1, 11)):
            expected = scalar.mma(a[row].tolist(), b[column].tolist(), machine=MACHINES["sm100"], acc=acc)
            assert got[row, place] == expected, (row, column)


def test_a_second_product_accumulates(bench: Any) -> None:
    a, b, data = operands(6)
    ran = bench(
        COPY + product() + product(accumulate=1) + COMMIT + WAIT + LOAD + FREE, data, warps=4, shared=18688
    )
    assert not ran.findings
    got = ran.out.view(np.uint32).reshape(M, 2)
    for row in range(0, M, 9):
        twice = scalar.mma(a[row].tolist() * 2, b[8].tolist() * 2, machine=MACHINES["sm100"], acc="fp32")
        assert got[row, 0] == twice


@pytest.mark.parametrize("order", ["eager", "lazy"])
@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        (COPY + product() + COMMIT + LOAD + FREE, {"race_tmem", "uninitialised_tmem"}),
        (COPY + product() + COMMIT + WAIT + LOAD.replace("tcgen05.wait::ld.sync.aligned;", "") + FREE,
         {"tmem_load_not_waited", "async_in_flight_at_exit"}),
        (COPY + product() + COMMIT + WAIT + LOAD, {"tmem_leak"}),
        (COPY + product() + COMMIT + WAIT + LOAD + FREE.replace("bar.sync 0;", ""), {"tmem_freed_in_use"}),
        (COPY + product() + COMMIT + WAIT + FREE + LOAD, {"tmem_freed_in_use"}),
        (COPY + product() + FREE, {"tmem_freed_in_use", "async_in_flight_at_exit"}),
        (COPY + LOAD + FREE, {"uninitialised_tmem"}),
        (COPY.replace("[%r7], 32", "[%r7], 48") + product() + COMMIT + WAIT, {"tmem_misuse"}),
        (COPY + LOAD.replace("%r62, 21", "%r62, 20") + FREE, {"tmem_misuse"}),
        (COPY + LOAD.replace("+8]", "+64]") + FREE, {"tmem_misuse"}),
        (COPY.replace("bar.sync 0;", "bar.warp.sync -1;") + product() + COMMIT + WAIT,
         {"mbarrier_misuse", "race_shared"}),
        (COPY.replace("fence.mbarrier_init.release.cluster;", "") + product() + COMMIT + WAIT + FREE,
         {"mbarrier_misuse"}),
        (COPY + product().replace("@%p1 tcgen05.mma", "tcgen05.mma") + COMMIT + WAIT + FREE, {"tmem_misuse"}),
    ],
)  # fmt: skip
def test_misuse(bench: Any, order: str, body: str, kinds: set[str]) -> None:
    ran = bench(body, operands(7)[2], warps=4, shared=18688, order=order)
    assert ran.kinds & kinds, ran.findings
    assert all(f.severity == "error" for f in ran.findings)


def test_an_allocation_with_no_room(bench: Any) -> None:
    alloc = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"
    ran = bench(f"{alloc} [%r61], 512;\n{alloc} [%r61+8], 32;")
    assert ran.kinds == {"tmem_misuse", "tmem_leak"}
