"""A kernel that writes lengths and schedule just before the kernel under test is launched on the same stream.

It lets the next launch start at once (griddepcontrol.launch_dependents), waits a while, and only then copies. A kernel
launched with programmatic stream serialization that reads what it copies before its own griddepcontrol.wait sees the
stale values, every time. Source: PTX ISA, "griddepcontrol"; CUDA programming guide, "Programmatic Dependent Launch".
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from mqa_ref.cuda.driver import Bound

ENTRY = "write_late"
THREADS = 128
SLOTS = 2
"""Copies of one launch."""
DELAY_NS = 200_000
"""Longer than a launch takes to begin, which is a few microseconds."""
PTX_PARAMETERS = (8, *(8, 8, 4) * SLOTS)
"""Bytes of the kernel's parameters."""
Copy = tuple[int, int, int]
"""Source address, target address, bytes (a multiple of 4)."""

_HEAD = """.version 7.8
.target sm_90
.address_size 64
.visible .entry write_late(.param .u64 delay, {parameters})
{{
.reg .pred %p<4>;
.reg .b32 %r<8>;
.reg .b64 %d<12>;
ld.param.u64 %d3, [delay];
griddepcontrol.launch_dependents;
mov.u64 %d4, %globaltimer;
LATER:
mov.u64 %d5, %globaltimer;
sub.s64 %d6, %d5, %d4;
setp.lt.u64 %p1, %d6, %d3;
@%p1 bra LATER;
"""
_COPY = """
ld.param.u64 %d1, [source{slot}];
ld.param.u64 %d2, [target{slot}];
ld.param.u32 %r1, [words{slot}];
mov.u32 %r2, %tid.x;
COPY{slot}:
setp.ge.u32 %p2, %r2, %r1;
@%p2 bra DONE{slot};
mul.wide.u32 %d7, %r2, 4;
add.s64 %d8, %d1, %d7;
add.s64 %d9, %d2, %d7;
ld.global.u32 %r3, [%d8];
st.global.u32 [%d9], %r3;
add.s32 %r2, %r2, {threads};
bra COPY{slot};
DONE{slot}:
"""


def ptx() -> str:
    """The kernel's text; the driver makes machine code of it for any GPU from sm_90 on."""
    parameters = ", ".join(
        f".param .u64 source{slot}, .param .u64 target{slot}, .param .u32 words{slot}"
        for slot in range(SLOTS)
    )
    copies = "".join(_COPY.format(slot=slot, threads=THREADS) for slot in range(SLOTS))
    return _HEAD.format(parameters=parameters) + copies + "ret;\n}\n"


def write(copies: Sequence[Copy], delay_ns: int = DELAY_NS) -> Bound:
    """The launch that makes at most SLOTS copies, after ``delay_ns`` nanoseconds."""
    filled = [*copies, *[(0, 0, 0)] * (SLOTS - len(copies))]
    parameters = [struct.pack("<Q", delay_ns)]
    for source, target, size in filled:
        parameters += [struct.pack("<Q", source), struct.pack("<Q", target), struct.pack("<I", size // 4)]
    return Bound((1, 1, 1), (THREADS, 1, 1), 0, tuple(parameters))
