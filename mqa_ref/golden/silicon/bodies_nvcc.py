"""The bodies of the recorded programs for what compilers write around the arithmetic: the same instructions under their
longer names, hints, lanes that have left, and the reductions over lanes that no other program has.
"""

from __future__ import annotations

from mqa_ref.golden.silicon.bodies import PHASES, RING, Tile, tile_body

POLICY = 0x1000000000000000
"""The cache policy of ordinary accesses."""
RING_CTA = RING.replace(".shared.b64", ".shared::cta.b64")
PHASES_CTA = (
    PHASES.replace("mbarrier.init.shared.b64", "mbarrier.init.shared::cta.b64")
    .replace("test_wait.parity.shared", "test_wait.parity.acquire.cta.shared::cta")
    .replace("arrive.shared", "arrive.release.cta.shared::cta")
    .replace("arrive.expect_tx.shared", "arrive.expect_tx.release.cta.shared::cta")
    .replace("DONE:", "mbarrier.inval.shared::cta.b64 [%r61];\nDONE:")
)
RING_ORDERED = (
    RING.replace("try_wait.parity.shared", "try_wait.parity.acquire.cta.shared")
    .replace("arrive.shared", "arrive.release.cta.shared")
    .replace("bra END;", "bra.uni END;")
)


def hinted_tile(tile: Tile, coordinates: list[tuple[int, ...]], space: str) -> str:
    """``tile_body`` with a cache policy. ``space``: "shared::cluster.global" (no .tile), "shared::cta.global.tile"."""
    text = tile_body(tile, coordinates).replace("shared.b64", "shared::cta.b64")
    plain = "shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    lines = []
    for line in text.splitlines():
        if plain in line:
            line = line.replace(plain, f"{space}.mbarrier::complete_tx::bytes.L2::cache_hint")
            line = line.replace("[%r61];", "[%r61], %d20;")
        lines.append(line)
    return f"mov.b64 %d20, {POLICY};\n" + "\n".join(lines)


HINTS = """
mov.b64 %d3, map;
cvta.param.u64 %d3, %d3;
prefetch.tensormap [%d3];
prefetch.param.tensormap [map];
griddepcontrol.launch_dependents;
setmaxnreg.dec.sync.aligned.u32 64;
cvta.to.global.u64 %d4, %d62;
bra.uni PAST;
st.global.b32 [%d4], %r60;
PAST:
griddepcontrol.wait;
LOADSsetmaxnreg.inc.sync.aligned.u32 96;
nanosleep.u32 20;
membar.cta;
fence.acq_rel.cta;
fence.sc.cta;
fence.acq_rel.gpu;
fence.proxy.async.shared::cta;
mov.b32 %r5, 64;
barrier.sync.aligned 0;
shr.u32 %r4, %r60, 6;
add.s32 %r4, %r4, 1;
barrier.cta.sync.aligned %r4, %r5;
barrier.sync 3, 128;
barrier.cta.sync 4;
setp.lt.u32 %p1, %r60, 64;
@!%p1 bra SECOND;
barrier.arrive 5, 128;
barrier.cta.arrive 6, 128;
barrier.cta.arrive.aligned 7, 128;
bra.uni STORE;
SECOND:
barrier.sync 5, 128;
barrier.sync 6, 128;
bar.sync 7, 128;
STORE:
activemask.b32 %r6;
xor.b32 %r1, %r1, %r6;
st.global.v2.b32 [%d4], {%r1, %r2};
exit;
"""
LEAVE = """
and.b32 %r3, %r60, 31;
setp.ge.u32 %p1, %r3, 20;
mov.b32 %r4, 0;
and.b32 %r9, %r3, -2;
@%p1 bra LEFT;
redux.sync.add.s32 %r7, %r1, 0xFFFFF;
AGAIN:
add.s32 %r4, %r4, 6;
bar.warp.sync -1;
shfl.sync.bfly.b32 %r5, %r1, 1, 31, -1;
add.s32 %r1, %r1, %r5;
setp.lt.u32 %p1, %r4, %r9;
vote.sync.ballot.b32 %r6, %p1, -1;
match.any.sync.b32 %r8, %r4, -1;
@%p1 bra AGAIN;
st.global.v4.b32 [%d62], {%r1, %r6, %r7, %r8};
ret;
LEFT:
mov.b32 %r9, 77;
st.global.b32 [%d62], %r9;
"""
"""The lanes from 20 on leave at once while the others wait for their warp; then those that are done leave the loop, in
which the others wait again."""
_TOGETHER = """
mov.b64 %d9, 0;
and.b32 %r4, %r1, 3;
cvt.u64.u32 %d4, %r4;
shl.b64 %d4, %d4, 33;
"""


def carries() -> str:
    """Sums, differences and products of 128 and 96 bits, which pass carries on, folded."""
    lines = ["mov.b64 %d9, 0;\nmov.b64 %d1, {%r1, %r2};\nmov.b64 %d2, {%r2, %r1};\nnot.b64 %d3, %d1;"]
    lines += ["shr.s64 %d4, %d2, 40;\nxor.b32 %r3, %r1, %r2;\nshr.s32 %r4, %r2, 24;\nor.b32 %r5, %r1, -4096;"]
    for kind in ("s64", "u64", "s32", "u32"):
        letter = "d" if kind.endswith("64") else "r"
        a, b, c, d = (f"%{letter}{number}" for number in ((1, 2, 3, 4) if letter == "d" else (1, 2, 5, 4)))
        x, y, z = (f"%{letter}{number}" for number in (20, 21, 22))
        lines += [
            f"add.cc.{kind} {x}, {a}, {b};\naddc.cc.{kind} {y}, {c}, {d};\naddc.{kind} {z}, {a}, {d};",
            *_fold(letter, x, y, z),
            f"sub.cc.{kind} {x}, {a}, {b};\nsubc.cc.{kind} {y}, {c}, {d};\nsubc.{kind} {z}, {b}, {c};",
            *_fold(letter, x, y, z),
            f"mad.lo.cc.{kind} {x}, {a}, {b}, {c};\nmadc.hi.cc.{kind} {y}, {a}, {b}, {c};",
            f"madc.lo.{kind} {z}, {c}, {d}, {a};",
            *_fold(letter, x, y, z),
            f"mad.hi.cc.{kind} {x}, {a}, {c}, {b};\nmadc.lo.cc.{kind} {y}, {d}, {b}, {c};",
            f"madc.hi.{kind} {z}, {b}, {d}, {c};",
            *_fold(letter, x, y, z),
        ]
    return "\n".join([*lines, "st.global.b64 [%d62], %d9;"])


def _fold(letter: str, *registers: str) -> list[str]:
    lines = []
    for register in registers:
        if letter == "r":
            lines.append(f"cvt.u64.u32 %d8, {register};")
        lines += ["mul.lo.s64 %d9, %d9, 31;", f"add.s64 %d9, %d9, {'%d8' if letter == 'r' else register};"]
    return lines


VOLATILE = """
shl.b32 %r3, %r60, 3;
add.s32 %r3, %r3, %r61;
st.volatile.shared.u32 [%r3], %r1;
st.volatile.shared::cta.b32 [%r3+4], %r2;
bar.sync 0;
xor.b32 %r4, %r3, 8;
ld.volatile.shared.u32 %r5, [%r4];
ld.volatile.shared::cta.b32 %r6, [%r4+4];
ld.volatile.global.u32 %r7, [%d60+8];
ld.volatile.global.b32 %r8, [%d60+12];
xor.b32 %r5, %r5, %r7;
xor.b32 %r6, %r6, %r8;
st.volatile.global.u32 [%d62], %r5;
st.volatile.global.b32 [%d62+4], %r6;
"""


def together() -> str:
    """Every redux.sync over a whole warp, and the matches of 64 bits, folded."""
    lines = [_TOGETHER]
    names = [f"redux.sync.{op}.{kind}" for op in ("add", "min", "max") for kind in ("s32", "u32")]
    names += [f"redux.sync.{op}.b32" for op in ("and", "or", "xor")]
    operations = [f"{name} %r3, %r2, -1;" for name in names]
    operations += ["match.any.sync.b64 %r3, %d4, -1;", "match.all.sync.b64 %r3|%p1, %d4, -1;"]
    operations += [
        "match.all.sync.b64 %r3|%p2, %d60, -1;",
        "selp.b32 %r3, 1, 2, %p1;",
        "selp.b32 %r3, 4, 8, %p2;",
    ]
    for text in operations:
        lines += [text, "cvt.u64.u32 %d8, %r3;", "mul.lo.s64 %d9, %d9, 31;", "add.s64 %d9, %d9, %d8;"]
    return "\n".join([*lines, "st.global.b64 [%d62], %d9;"])
