"""Instructions that machine code executes itself, in their usual and in unusual cases: values worked out here, in both
engines, and what one CTA leaves behind for the next: nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mqa_ref.emulator.compiled import context, native

pytestmark = pytest.mark.skipif(not native.available(), reason="the CPU lacks what machine code needs")

ENGINES = ["interpreter", "compiled"]
OWN_WORD = """
shl.b32 %r1, %r60, 2;
add.s32 %r2, %r61, %r1;
add.s32 %r3, %r60, 100;
st.shared.b32 [%r2], %r3;
bar.sync 0;
"""
ONLY_LANE = "setp.ne.u32 %p1, %r60, {lane};\n@%p1 bra END;\n"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("lane", [0, 3, 4, 17, 31])
def test_a_shared_address_in_a_wide_register(bench: Callable[..., Any], engine: str, lane: int) -> None:
    """Lane by lane: half of another lane's register must not be taken for the address."""
    body = OWN_WORD + "cvt.u64.u32 %d1, %r2;\n" + ONLY_LANE.format(lane=lane)
    ran = bench(body + "ld.shared.b32 %r9, [%d1];\nst.global.b32 [%d62], %r9;\nEND:", engine=engine)
    assert not ran.findings
    assert ran.words().tolist() == [100 + lane if one == lane else 0 for one in range(32)]


@pytest.mark.parametrize("engine", ENGINES)
def test_shared_loads_of_a_row_and_of_one_place(bench: Callable[..., Any], engine: str) -> None:
    row = bench(OWN_WORD + "ld.shared.b32 %r9, [%r2];\nst.global.b32 [%d62], %r9;", engine=engine)
    assert row.words().tolist() == list(range(100, 132))
    pair = (
        OWN_WORD
        + "ld.shared.v2.b32 {%r9, %r10}, [%r61+8];\nadd.s32 %r9, %r9, %r10;\nst.global.b32 [%d62], %r9;"
    )
    one = bench(pair, engine=engine)
    assert one.words().tolist() == [102 + 103] * 32
    assert not row.findings + one.findings


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("width", [1, 2, 4])
def test_global_loads_from_anywhere(bench: Callable[..., Any], engine: str, width: int) -> None:
    """Odd lanes read vectors in an order of their own; the others keep what they had."""
    data = np.arange(1000, 1000 + 32 * width, dtype=np.uint32)
    places = (np.arange(32) * 7 + 3) % 32
    names = [f"%r{10 + number}" for number in range(width)]
    target = names[0] if width == 1 else "{" + ", ".join(names) + "}"
    kind = "b32" if width == 1 else f"v{width}.b32"
    body = f"""
    mov.b32 {names[0]}, 5; {" ".join(f"mov.b32 {name}, 0;" for name in names[1:])}
    mad.lo.u32 %r1, %r60, 7, 3;
    and.b32 %r1, %r1, 31;
    mul.wide.u32 %d1, %r1, {4 * width};
    add.s64 %d1, %d60, %d1;
    and.b32 %r2, %r60, 1;
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra OUT;
    ld.global.{kind} {target}, [%d1];
    OUT:
    {" ".join(f"add.s32 {names[0]}, {names[0]}, {name};" for name in names[1:])}
    st.global.b32 [%d62], {names[0]};
    """
    ran = bench(body, data, engine=engine)
    sums = data.reshape(32, width).sum(axis=1)
    assert not ran.findings
    assert ran.words().tolist() == [int(sums[places[lane]]) if lane % 2 else 5 for lane in range(32)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("shift", "kind"), [(0, "global_out_of_bounds"), (2, "misaligned")])
def test_global_loads_that_are_wrong(bench: Callable[..., Any], engine: str, shift: int, kind: str) -> None:
    """Lane 31 reads past the end of 31 words, or all lanes between words."""
    data = np.arange(100, 131 + (shift > 0) * 2, dtype=np.uint32)
    body = f"""
    mul.wide.u32 %d1, %r60, 4;
    add.s64 %d1, %d60, %d1;
    ld.global.b32 %r9, [%d1+{shift}];
    st.global.b32 [%d62], %r9;
    """
    ran = bench(body, data, engine=engine)
    assert ran.kinds == {kind}
    if not shift:
        assert ran.words().tolist() == [*range(100, 131), 0]


@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_of_a_cta_is_left_for_the_next(bench: Callable[..., Any], engine: str) -> None:
    """CTA 0 fills a register, shared memory and an mbarrier; CTA 1 finds none of them."""
    body = """
    mov.u32 %r1, %ctaid.z;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra SECOND;
    mov.b32 %r10, 77;
    st.shared.b32 [%r61], %r10;
    setp.eq.u32 %p2, %r60, 0;
    @%p2 mbarrier.init.shared.b64 [%r61+64], 1;
    bra END;
    SECOND:
    ld.shared.b32 %r11, [%r61];
    add.s32 %r12, %r10, %r11;
    st.global.b32 [%d62], %r12;
    setp.eq.u32 %p2, %r60, 0;
    @%p2 mbarrier.arrive.shared.b64 _, [%r61+64];
    END:
    """
    ran = bench(body, ctas=2, engine=engine)
    assert {"uninitialised_register", "uninitialised_shared", "mbarrier_misuse"} <= ran.kinds
    assert all(finding.cta == 1 for finding in ran.findings if finding.kind != "race_shared")
    assert not ran.words().any()


@pytest.mark.parametrize("engine", ENGINES)
def test_more_mbarriers_than_machine_code_knows(bench: Callable[..., Any], engine: str) -> None:
    """The last of them works as the first: one arrival ends its phase."""
    count = context.MOST_MBARRIERS + 3
    body = f"""
    setp.ne.u32 %p1, %r60, 0;
    @%p1 bra AFTER;
    mov.b32 %r1, 0;
    MORE:
    shl.b32 %r2, %r1, 3;
    add.s32 %r2, %r61, %r2;
    mbarrier.init.shared.b64 [%r2], 1;
    add.s32 %r1, %r1, 1;
    setp.lt.u32 %p2, %r1, {count};
    @%p2 bra MORE;
    mbarrier.arrive.shared.b64 _, [%r61];
    mbarrier.arrive.shared.b64 _, [%r2];
    AFTER:
    bar.sync 0;
    mbarrier.test_wait.parity.shared.b64 %p3, [%r61], 0;
    mbarrier.test_wait.parity.shared.b64 %p4, [%r61+{8 * (count - 1)}], 0;
    mbarrier.test_wait.parity.shared.b64 %p5, [%r61+8], 0;
    selp.b32 %r3, 1, 0, %p3;
    selp.b32 %r4, 2, 0, %p4;
    selp.b32 %r5, 4, 0, %p5;
    add.s32 %r3, %r3, %r4;
    add.s32 %r3, %r3, %r5;
    st.global.b32 [%d62], %r3;
    """
    ran = bench(body, engine=engine)
    assert not ran.findings
    assert ran.words().tolist() == [1 + 2] * 32


@pytest.mark.parametrize("engine", ENGINES)
def test_an_mbarrier_of_another_life(bench: Callable[..., Any], engine: str) -> None:
    """Invalidated and initialised again it starts with phase 0 and its new count."""
    body = """
    setp.ne.u32 %p1, %r60, 0;
    @%p1 bra AFTER;
    mbarrier.init.shared.b64 [%r61], 1;
    mbarrier.arrive.shared.b64 _, [%r61];
    mbarrier.inval.shared.b64 [%r61];
    mbarrier.init.shared.b64 [%r61], 2;
    mbarrier.arrive.shared.b64 _, [%r61];
    AFTER:
    bar.sync 0;
    mbarrier.test_wait.parity.shared.b64 %p3, [%r61], 0;
    selp.b32 %r3, 1, 0, %p3;
    st.global.b32 [%d62], %r3;
    """
    ran = bench(body, engine=engine)
    assert not ran.findings
    assert not ran.words().any()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("lanes", [1, 20, 32])
def test_two_ctas_store_to_one_place(bench: Callable[..., Any], engine: str, lanes: int) -> None:
    """Words that follow each other: one CTA may, a second one may not, and what is read is nobody's to store."""
    body = f"""
    mul.wide.u32 %d1, %r60, 4;
    add.s64 %d1, %d61, %d1;
    setp.ge.u32 %p1, %r60, {lanes};
    @%p1 bra END;
    st.global.b32 [%d1], %r60;
    END:
    """
    alone, both = (bench(body, ctas=ctas, engine=engine) for ctas in (1, 2))
    assert not alone.findings
    assert both.kinds == {"global_write_conflict"}
    for ran in (alone, both):
        assert ran.out.view(np.uint32)[:32].tolist() == [lane if lane < lanes else 0 for lane in range(32)]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_store_to_what_another_cta_read(bench: Callable[..., Any], engine: str) -> None:
    body = """
    mul.wide.u32 %d1, %r60, 4;
    add.s64 %d1, %d61, %d1;
    mov.u32 %r1, %ctaid.z;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra SECOND;
    ld.global.b32 %r2, [%d1];
    bra END;
    SECOND:
    st.global.b32 [%d1], %r60;
    END:
    """
    assert bench(body, ctas=2, engine=engine).kinds == {"race_global"}
