"""tcgen05.st: what was stored is loaded again, by the same warp and after a wait by nobody else's surprise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

ALLOCATE = """
mov.u32 %r1, %tid.x;
setp.ne.u32 %p2, %r62, 0;
@%p2 bra ALLOCATED;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r61], 32;
ALLOCATED:
bar.sync 0;
ld.shared.b32 %r8, [%r61];
shl.b32 %r11, %r62, 21;
add.s32 %r11, %r11, %r8;
mul.lo.s32 %r12, %r1, 1000;
add.s32 %r13, %r12, 1;
"""
STORE = "tcgen05.st.sync.aligned.32x32b.x2.b32 [%r11+{at}], {{%r12, %r13}};\n"
WAIT = "tcgen05.wait::st.sync.aligned;\n"
LOAD = """
tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r14, %r15}, [%r11+4];
tcgen05.wait::ld.sync.aligned;
mov.b64 %d5, {%r14, %r15};
st.global.b64 [%d62], %d5;
"""
FREE = """
tcgen05.fence::before_thread_sync;
bar.sync 0;
@%p2 bra FREED;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r8, 32;
FREED:
"""


@pytest.mark.parametrize("order", ["eager", "lazy", "random"])
def test_what_is_stored_is_loaded(bench: Any, order: str) -> None:
    ran = bench(ALLOCATE + STORE.format(at=4) + WAIT + LOAD + FREE, warps=4, order=order)
    assert not ran.findings
    thread = np.arange(128, dtype=np.uint32)
    words = ran.out.view(np.uint32).reshape(128, 2)
    assert (words[:, 0] == thread * 1000).all()
    assert (words[:, 1] == thread * 1000 + 1).all()


def test_columns_that_are_not_allocated(bench: Any) -> None:
    ran = bench(ALLOCATE + STORE.format(at=4) + STORE.format(at=31) + WAIT + LOAD + FREE, warps=4)
    assert ran.kinds == {"tmem_misuse"}


def test_lanes_of_another_warp(bench: Any) -> None:
    wrong = STORE.format(at=4).replace("%r11", "%r8")
    ran = bench(ALLOCATE + STORE.format(at=4) + wrong + WAIT + LOAD + FREE, warps=4)
    assert ran.kinds == {"tmem_misuse"}
