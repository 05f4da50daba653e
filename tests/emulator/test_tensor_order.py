"""Fences of tensor memory: a handshake with all of them, and with each in turn left out or put too early.

Warp 4 multiplies, warps 0 to 3 load the accumulators and let them go, twice. Which fence each access needs is worked
out from the PTX ISA 9.1, 9.7.16.6.4.4: mma, commit, wait, after, ld;
and ld, wait::ld, before, arrive, wait, after, mma.
"""

from __future__ import annotations

from typing import Any

import pytest

BEFORE = "tcgen05.fence::before_thread_sync;"
AFTER = "tcgen05.fence::after_thread_sync;"
WAIT_LD = "tcgen05.wait::ld.sync.aligned;"
SHARED = 18688
ENGINES = ("compiled", "interpreter")
RUNS = [("compiled", order) for order in ("eager", "lazy", "random", "systematic")] + [
    ("interpreter", "random")
]
SETUP = """
shl.b32 %r1, %r60, 2;
add.s32 %r1, %r1, %r61;
mov.b32 %r2, 0;
ZEROS:
st.shared.b32 [%r1], 0;
add.s32 %r1, %r1, 1024;
add.s32 %r2, %r2, 1;
setp.lt.u32 %p1, %r2, 18;
@%p1 bra ZEROS;
setp.eq.u32 %p1, %r60, 128;
add.s32 %r6, %r61, 18432;
add.s32 %r7, %r61, 18440;
add.s32 %r9, %r61, 18448;
@%p1 mbarrier.init.shared.b64 [%r6], 1;
@%p1 mbarrier.init.shared.b64 [%r7], 128;
fence.mbarrier_init.release.cluster;
setp.ne.u32 %p2, %r62, 0;
@%p2 bra ALLOCATED;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r9], 32;
ALLOCATED:
bar.sync 0;
ld.shared.b32 %r8, [%r9];
shl.b32 %r11, %r62, 21;
add.s32 %r11, %r11, %r8;
shr.u32 %r10, %r61, 4;
cvt.u64.u32 %d2, %r10;
or.b64 %d3, %d2, 0x4000404000010000;
add.s64 %d4, %d3, 1024;
mov.b32 %r10, 134479888;
mov.pred %p3, 0;
setp.eq.u32 %p4, %r62, 4;
@%p4 bra MULTIPLY;
setp.gt.u32 %p4, %r62, 4;
@%p4 bra END;
"""
LOAD = "tcgen05.ld.sync.aligned.32x32b.x4.b32 {{%r12, %r13, %r14, %r15}}, [%r11];\n{between}\n{wait_ld}\n"
READ = """
R0:
mbarrier.try_wait.parity.shared.b64 %p5, [%r6], 0, 9;
@!%p5 bra R0;
{after_ld}
{load}
{before}
{relay_out}
{early_after}
R1:
mbarrier.try_wait.parity.shared.b64 %p5, [%r6], 1, 9;
@!%p5 bra R1;
{after_ld_2}
{load}
bra END;
"""
MULTIPLY = """
MULTIPLY:
@%p1 tcgen05.mma.cta_group::1.kind::f8f6f4 [%r8], %d3, %d4, %r10, %p3;
@%p1 tcgen05.mma.cta_group::1.kind::f8f6f4 [%r8], %d3, %d4, %r10, %p3;
@%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r6];
{early_after}
E0:
mbarrier.try_wait.parity.shared.b64 %p5, [%r7], 0, 9;
@!%p5 bra E0;
{after_mma}
@%p1 tcgen05.mma.cta_group::1.kind::f8f6f4 [%r8], %d3, %d4, %r10, %p3;
@%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r6];
"""
END = """
END:
{before_free}
bar.sync 0;
@%p2 bra FREED;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r8, 32;
FREED:
"""
PARTS = {
    "after_ld": AFTER,
    "between": "",
    "wait_ld": WAIT_LD,
    "before": BEFORE,
    "relay_out": "mbarrier.arrive.shared.b64 _, [%r7];",
    "early_after": "",
    "after_ld_2": AFTER,
    "after_mma": AFTER,
    "before_free": BEFORE,
}


def handshake(**changes: str) -> str:
    parts = {**PARTS, **changes}
    parts["load"] = LOAD.format(**parts)
    return (SETUP + READ + MULTIPLY + END).format(**parts)


@pytest.mark.parametrize(("engine", "order"), RUNS)
@pytest.mark.parametrize("changes", [
    {},
    {"between": BEFORE, "before": "", "before_free": ""},  # a fence before the wait orders the load, too
    {"relay_out": "bar.sync 1, 128;\nmbarrier.arrive.shared.b64 _, [%r7];"},  # barriers in between change nothing
    {"early_after": AFTER + BEFORE},
], ids=["all", "fence-before-wait", "relayed", "more-fences"])  # fmt: skip
def test_a_handshake_with_its_fences_is_not_accused(
    bench: Any, changes: dict[str, str], order: str, engine: str
) -> None:
    ran = bench(handshake(**changes), warps=8, shared=SHARED, order=order, seed=3, engine=engine)
    assert not ran.findings


@pytest.mark.parametrize(("engine", "order"), RUNS)
@pytest.mark.parametrize(("changes", "access", "fence"), [
    ({"after_ld": ""}, "tcgen05.ld", "no tcgen05.fence::after_thread_sync precedes"),
    ({"after_ld_2": ""}, "tcgen05.ld", "no tcgen05.fence::after_thread_sync precedes"),
    ({"after_ld_2": "", "early_after": AFTER}, "tcgen05.ld", "no tcgen05.fence::after_thread_sync precedes"),
    ({"before": ""}, "tcgen05.mma", "no tcgen05.fence::before_thread_sync follows the earlier"),
    ({"before": "", "after_ld": AFTER + BEFORE}, "tcgen05.mma", "no tcgen05.fence::before_thread_sync follows"),
    ({"before": "", "early_after": BEFORE}, "tcgen05.mma", "no tcgen05.fence::before_thread_sync follows"),
    ({"after_mma": ""}, "tcgen05.mma", "no tcgen05.fence::after_thread_sync precedes"),
    ({"after_mma": "", "early_after": AFTER}, "tcgen05.mma", "no tcgen05.fence::after_thread_sync precedes"),
    ({"before_free": ""}, "tcgen05.dealloc", "no tcgen05.fence::before_thread_sync follows the earlier"),
])  # fmt: skip
def test_a_missing_fence_is_found(
    bench: Any, changes: dict[str, str], access: str, fence: str, order: str, engine: str
) -> None:
    ran = bench(handshake(**changes), warps=8, shared=SHARED, order=order, seed=3, engine=engine)
    assert {finding.kind for finding in ran.findings} == {"tmem_not_fenced"}
    for finding in ran.findings:
        assert finding.severity == "error"
        assert access in finding.ptx_text
        assert fence in finding.message


def test_a_program_without_any_fence_is_told_but_not_failed(bench: Any) -> None:
    """The ISA's sentence on the standard model lets a release and an acquire stand for the fences."""
    none = dict.fromkeys(("after_ld", "before", "after_ld_2", "after_mma", "before_free"), "")
    ran = bench(handshake(**none), warps=8, shared=SHARED)
    assert {(finding.kind, finding.severity) for finding in ran.findings} == {("tmem_not_fenced", "info")}
    texts = [finding.ptx_text or "" for finding in ran.findings]
    assert [sum(name in text for text in texts) for name in ("05.ld", "05.mma", "05.dealloc")] == [2, 1, 1]


STORES = """
setp.ne.u32 %p2, %r62, 0;
@%p2 bra ALLOCATED;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r61], 32;
ALLOCATED:
bar.sync 0;
ld.shared.b32 %r8, [%r61];
and.b32 %r11, %r62, 3;
shl.b32 %r11, %r11, 21;
add.s32 %r11, %r11, %r8;
setp.gt.u32 %p3, %r62, 3;
@%p3 bra OTHERS;
tcgen05.st.sync.aligned.32x32b.x2.b32 [%r11], {%r60, %r60};
tcgen05.wait::st.sync.aligned;
tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r12, %r13}, [%r11];
tcgen05.wait::ld.sync.aligned;
BEFORE
bar.sync 1;
bra END;
OTHERS:
bar.sync 1;
AFTER
ACCESS
BEFORE
END:
bar.sync 0;
@%p2 bra FREED;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r8, 32;
FREED:
"""
READING = "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r14, %r15}, [%r11];\n" + WAIT_LD
WRITING = "tcgen05.st.sync.aligned.32x32b.x2.b32 [%r11], {%r60, %r60};\ntcgen05.wait::st.sync.aligned;"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("access", [READING, WRITING], ids=["ld", "st"])
def test_stores_of_one_warp_and_accesses_of_another(bench: Any, access: str, engine: str) -> None:
    """Warps w and w + 4 reach the same lanes. What one warp stores and loads itself needs its waits only."""

    def run(before: str, after: str) -> set[str]:
        body = STORES.replace("BEFORE", before, 1).replace("AFTER", after).replace("ACCESS", access)
        ran = bench(body.replace("BEFORE", BEFORE), warps=8, engine=engine)
        return {finding.kind for finding in ran.findings}

    assert run(BEFORE, AFTER) == set()
    assert run("", AFTER) == run(BEFORE, "") == {"tmem_not_fenced"}
