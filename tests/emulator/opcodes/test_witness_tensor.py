"""Tensor-core instructions under the names that the kernels spell, executed: products against exact sums or the scalar
twin, and loads from tensor memory against what was stored there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mqa_ref.golden.silicon.bodies_groups import Matrix
from mqa_ref.numerics import MACHINES, scalar
from tests.emulator.test_tensor_memory import COMMIT, COPY, FREE, LOAD, WAIT, M, operands, product
from tests.emulator.test_wgmma import gathered
from tests.emulator.test_wgmma import operands as small_operands
from tests.emulator.test_wgmma import program as wgmma_program
from tests.emulator.test_wgmma import run as run_wgmma

_MMA = "tcgen05.mma.cta_group::1.kind::f8f6f4"
MMA = (_MMA, f"{_MMA}.collector::a::discard")
LOADS = tuple((count, pack) for count in (1, 2, 4, 8, 16, 32, 64) for pack in (False, True))
N = (32, 64, 128)
AROUND = (
    "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32",
    "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64",
    "tcgen05.dealloc.cta_group::1.sync.aligned.b32",
    "tcgen05.fence::after_thread_sync",
    "tcgen05.fence::before_thread_sync",
    "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned",
    "tcgen05.wait::ld.sync.aligned",
)
GROUP = ("wgmma.commit_group.sync.aligned", "wgmma.fence.sync.aligned", "wgmma.wait_group.sync.aligned")


def load_name(count: int, pack: bool) -> str:
    return f"tcgen05.ld.sync.aligned.32x32b.x{count}{'.pack::16b' if pack else ''}.b32"


def wgmma_name(n: int) -> str:
    return f"wgmma.mma_async.sync.aligned.m64n{n}k32.f32.e4m3.e4m3"


NAMES = frozenset((*MMA, *AROUND, *GROUP, *(load_name(*each) for each in LOADS), *(wgmma_name(n) for n in N)))
GIVE_UP = "@%p2 bra KEPT;\ntcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\nKEPT:\n"


@pytest.mark.parametrize("name", MMA)
def test_products(bench: Any, name: str) -> None:
    a, b, data = operands(5)
    body = COPY + GIVE_UP + product().replace(_MMA, name) + COMMIT + WAIT + LOAD + FREE
    assert all(f"{each} " in body or f"{each};" in body for each in (name, *AROUND))
    ran = bench(body, data, warps=4, shared=18688)
    assert not ran.findings
    got = ran.out.view(np.uint32).reshape(M, 2)
    for row in range(0, M, 7):
        for place, column in ((0, 8), (1, 11)):
            twin = scalar.mma(a[row].tolist(), b[column].tolist(), machine=MACHINES["sm100"], acc="fp32")
            assert got[row, place] == twin, (row, column)


@pytest.mark.parametrize("n", N)
def test_products_of_warp_groups(bench: Any, n: int) -> None:
    """Sums of small integers, exact in fp32."""
    a, b = Matrix(0, 256, 32), Matrix(8192, 256, 32)
    memory, left, right = small_operands(n, a, b)
    text = wgmma_program(n, a, b)
    assert f"{wgmma_name(n)} " in text
    assert all(f"{each} " in text or f"{each};" in text for each in GROUP)
    ran = run_wgmma(bench, text, memory, n)
    assert ran.findings == ()
    assert np.array_equal(gathered(ran.out[: 256 * n], n), left @ right.T)


@pytest.mark.parametrize(("count", "pack"), LOADS)
def test_loads_from_tensor_memory(bench: Any, count: int, pack: bool) -> None:
    """Column c of thread t holds 65537 * t + 257 * c; .pack::16b puts the lower halves of two columns into one
    register, the first one low."""
    span = 2 * count if pack else count
    columns = max(32, span)
    registers = ", ".join(f"%x{i}" for i in range(count))
    lines = [
        f".reg .b32 %x<{count}>;\nsetp.ne.u32 %p2, %r62, 0;\n@%p2 bra ALLOCATED;",
        f"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r61], {columns};\nALLOCATED:\nbar.sync 0;",
        "ld.shared.b32 %r8, [%r61];\nshl.b32 %r11, %r62, 21;\nadd.s32 %r11, %r11, %r8;\nmul.lo.s32 %r12, %r60, 65537;",
    ]
    for column in range(span):
        lines += [
            f"add.s32 %r13, %r12, {257 * column};",
            f"tcgen05.st.sync.aligned.32x32b.x1.b32 [%r11+{column}], {{%r13}};",
        ]
    lines += [
        "tcgen05.wait::st.sync.aligned;",
        f"{load_name(count, pack)} {{{registers}}}, [%r11];\ntcgen05.wait::ld.sync.aligned;",
        f"mul.wide.u32 %d62, %r60, {4 * count};\nadd.s64 %d62, %d61, %d62;",
        *(f"st.global.b32 [%d62+{4 * i}], %x{i};" for i in range(count)),
        "tcgen05.fence::before_thread_sync;\nbar.sync 0;\n@%p2 bra FREED;",
        f"tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r8, {columns};\nFREED:",
    ]
    ran = bench("\n".join(lines), warps=4, out_bytes=128 * 4 * count)
    assert not ran.findings
    got = ran.out.view(np.uint32).reshape(128, count).tolist()
    for thread, row in enumerate(got):
        stored = [(65537 * thread + 257 * column) & 0xFFFFFFFF for column in range(span)]
        if pack:
            stored = [
                low & 0xFFFF | (high & 0xFFFF) << 16
                for low, high in zip(stored[::2], stored[1::2], strict=True)
            ]
        assert row == stored, thread
