"""Small sm_90 programs that are run by a real GPU and by the emulator: the memory they leave must be the
same, bit for bit.

Each covers a family of the emulator's opcodes. A program gets an input buffer, an output buffer of which
every thread owns ``slot`` bytes at %d62, and, where it loads tiles, a tensor map. Registers that the prologue
sets: %d60 input, %d61 output, %r60 thread, %r61 shared memory, %r62 warp.
"""

from __future__ import annotations

from dataclasses import dataclass

from mqa_ref.golden.silicon.bodies import (
    DIVERGE,
    LOAD_TWO,
    NARROW,
    PHASES,
    RING,
    SHARED,
    SHIFTS,
    SHUFFLES,
    TWO,
    TWO_BARRIERS,
    WIDE,
    Tile,
    chain,
    floats,
    select,
    tile_body,
)
from mqa_ref.golden.silicon.bodies_accesses import PARAMETER, SLOT, TYPES, accesses
from mqa_ref.golden.silicon.bodies_accesses import THREADS as ACCESS_THREADS
from mqa_ref.golden.silicon.bodies_groups import Matrix, signs, two_groups
from mqa_ref.golden.silicon.bodies_groups import chain as products_along_k
from mqa_ref.golden.silicon.bodies_lanes import ACROSS, BITS, GENERIC, NUMBERED
from mqa_ref.golden.silicon.bodies_nvcc import (
    HINTS,
    LEAVE,
    PHASES_CTA,
    RING_CTA,
    RING_ORDERED,
    VOLATILE,
    carries,
    hinted_tile,
    together,
)

PROLOGUE = """.version 8.6
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 dyn[];
.visible .entry kernel(.param .u64 in_ptr, .param .u64 out_ptr, .param .align 64 .b8 map[128])
.reqntid {threads}
{directives}{{
.reg .pred %p<16>;
.reg .b16 %h<16>;
.reg .b32 %r<64>;
.reg .b64 %d<64>;
ld.param.b64 %d60, [in_ptr];
ld.param.b64 %d61, [out_ptr];
mov.u32 %r60, %tid.x;
mul.wide.u32 %d62, %r60, {slot};
add.s64 %d62, %d61, %d62;
mov.b32 %r61, dyn;
shr.u32 %r62, %r60, 5;
"""


@dataclass(frozen=True)
class Program:
    """One program; ``words`` random 64-bit words are its input. ``parameter``: what the parameter ``map`` holds where
    there is no tile."""

    name: str
    body: str
    threads: int = 128
    slot: int = 8
    words: int = 128
    shared: int = 16384
    tile: Tile | None = None
    parameter: bytes = bytes(128)
    directives: str = ""

    @property
    def ptx(self) -> str:
        """The whole PTX text."""
        prologue = PROLOGUE.format(threads=self.threads, slot=self.slot, directives=self.directives)
        return prologue + self.body + "\nret;\n}\n"


_BYTES_3D = Tile(1, (128, 20, 3), (144, 2960), (128, 16, 1), 3)
_BYTES_WIDE = Tile(1, (128, 32, 2), (128, 4096), (128, 8, 2), 3)
_FLOATS_2D = Tile(4, (37, 9), (160,), (32, 4), 0)
_HALVES_2D = Tile(2, (500, 2), (1008,), (64, 2), 0)
_BYTES_64 = Tile(1, (64, 40, 2), (80, 3200), (64, 16, 1), 2)
_FLOATS_32 = Tile(4, (24, 30), (112,), (8, 24), 1)

GROUPS: tuple[Program, ...] = (
    Program(
        "wgmma-swizzle-128",
        products_along_k(64, Matrix(0, 1024, 128), Matrix(8448, 1024, 128), 17408, 4),
        slot=128,
        words=2176,
        shared=32768,
    ),
    Program(
        "wgmma-swizzle-64",
        products_along_k(24, Matrix(512, 512, 64), Matrix(5248, 1024, 64), 8192, 2),
        slot=48,
        words=1024,
    ),
    Program(
        "wgmma-swizzle-32",
        products_along_k(8, Matrix(128, 256, 32), Matrix(2432, 256, 32), 4096, 1),
        slot=16,
        words=512,
    ),
    Program(
        "wgmma-no-swizzle",
        products_along_k(128, Matrix(16, 128, 0, 1024), Matrix(4096, 400, 0, 144), 12288, 2),
        slot=256,
        words=1536,
    ),
    Program(
        "wgmma-base-offset-a",
        products_along_k(16, Matrix(384, 1024, 128, base_offset=3), Matrix(10240, 1024, 128), 16384, 4),
        slot=32,
        words=2048,
    ),
    Program(
        "wgmma-base-offset-b",
        products_along_k(16, Matrix(0, 1024, 128), Matrix(8832, 1024, 128, base_offset=5), 16384, 4),
        slot=32,
        words=2048,
    ),
    Program(
        "wgmma-base-offsets",
        products_along_k(
            16, Matrix(896, 1024, 128, base_offset=7), Matrix(10368, 1024, 128, base_offset=6), 16384, 2
        ),
        slot=32,
        words=2048,
    ),
    Program(
        "wgmma-base-offset-64",
        products_along_k(
            16, Matrix(256, 512, 64, base_offset=3), Matrix(9344, 512, 64, base_offset=6), 12288, 2
        ),
        slot=32,
        words=1536,
    ),
    Program(
        "wgmma-base-offset-32",
        products_along_k(
            16, Matrix(128, 256, 32, base_offset=5), Matrix(9216, 256, 32, base_offset=1), 12288, 1
        ),
        slot=32,
        words=1536,
    ),
    Program(
        "wgmma-signs", signs(16, Matrix(0, 1024, 128), Matrix(8256, 1024, 128), 12288), slot=32, words=1536
    ),
    Program(
        "wgmma-groups",
        two_groups(
            32,
            (Matrix(0, 1024, 128), Matrix(16384, 1024, 128)),
            (Matrix(64, 1024, 128), Matrix(20608, 512, 64)),
            24576,
        ),
        threads=256,
        slot=128,
        words=3072,
        shared=32768,
    ),
)
LANES: tuple[Program, ...] = (
    Program("lanes-meet", LOAD_TWO + ACROSS, slot=32),
    Program("numbered-barriers", LOAD_TWO + NUMBERED),
    Program("generic-addresses", LOAD_TWO + GENERIC, slot=16),
    Program("bits", chain(BITS)),
    Program(
        "tile-swizzle-64",
        tile_body(_BYTES_64, [(0, 0, 0), (16, 12, 1), (-16, 30, 0)]),
        words=900,
        tile=_BYTES_64,
    ),
    Program("tile-swizzle-32", tile_body(_FLOATS_32, [(0, 0), (4, 7), (20, 10)]), words=450, tile=_FLOATS_32),
)

NVCC: tuple[Program, ...] = (
    *(
        Program(
            f"accesses-{number}",
            accesses(TYPES[start : start + 10]),
            threads=ACCESS_THREADS,
            slot=SLOT * len(TYPES[start : start + 10]),
            words=256,
            parameter=PARAMETER,
        )
        for number, start in enumerate(range(0, len(TYPES), 10))
    ),
    Program("ring-cta", LOAD_TWO + RING_CTA),
    Program("ring-ordered", LOAD_TWO + RING_ORDERED),
    Program("mbarrier-phases-cta", LOAD_TWO + PHASES_CTA),
    Program(
        "tile-hinted-3d",
        hinted_tile(_BYTES_3D, [(0, 0, 0), (0, 12, 2), (0, -5, 1)], "shared::cluster.global"),
        words=1200,
        tile=_BYTES_3D,
    ),
    Program(
        "tile-hinted-2d",
        hinted_tile(_FLOATS_2D, [(0, 0), (8, 6), (-4, -1)], "shared::cluster.global"),
        words=200,
        tile=_FLOATS_2D,
    ),
    Program(
        "tile-cta-3d",
        hinted_tile(_BYTES_3D, [(0, 2, 0), (0, 9, 2), (0, -3, 1)], "shared::cta.global.tile"),
        words=1200,
        tile=_BYTES_3D,
    ),
    Program(
        "tile-cta-2d",
        hinted_tile(_FLOATS_2D, [(0, 1), (4, 6), (-8, -1)], "shared::cta.global.tile"),
        words=200,
        tile=_FLOATS_2D,
    ),
    Program(
        "hints", HINTS.replace("LOADS", LOAD_TWO), tile=_FLOATS_2D, words=200, directives=".maxnreg 96\n"
    ),
    Program("lanes-leave", LOAD_TWO + LEAVE, slot=16),
    Program("lanes-reduce", LOAD_TWO + together()),
    Program("carries", LOAD_TWO + carries()),
    Program("volatile", LOAD_TWO + VOLATILE),
    Program("ring-ordered-cta", LOAD_TWO + RING_ORDERED.replace(".shared.b64", ".shared::cta.b64")),
)
PROGRAMS: tuple[Program, ...] = (
    Program("two-operands", chain([f"{name} %r3, %r1, %r2;" for name in TWO])),
    Program("shifts", chain([f"and.b32 %r4, %r2, 63;\n{name} %r3, %r1, %r4;" for name in SHIFTS])),
    Program("signed-comparisons", chain(select("s32"))),
    Program("unsigned-comparisons", chain(select("u32"))),
    Program("wide-integers", LOAD_TWO + WIDE),
    Program("divergence", LOAD_TWO + DIVERGE),
    Program("shuffles", LOAD_TWO + SHUFFLES, slot=32),
    Program("narrow-accesses", LOAD_TWO + NARROW, slot=24),
    Program("shared-memory", LOAD_TWO + SHARED),
    Program("ring", LOAD_TWO + RING),
    Program("mbarrier-phases", LOAD_TWO + PHASES),
    Program("named-barriers", LOAD_TWO + TWO_BARRIERS),
    Program("floats", floats()),
    Program(
        "tile-swizzled",
        tile_body(_BYTES_3D, [(0, 0, 0), (0, 12, 2), (0, -5, 1), (0, 3, 3), (16, 2, 1)]),
        slot=8,
        words=1200,
        tile=_BYTES_3D,
    ),
    Program("tile-two-deep", tile_body(_BYTES_WIDE, [(0, 4, 0), (0, 28, 1)]), words=1100, tile=_BYTES_WIDE),
    Program(
        "tile-floats",
        tile_body(_FLOATS_2D, [(0, 0), (8, 6), (-4, -1), (36, 8), (12, 2)]),
        words=200,
        tile=_FLOATS_2D,
    ),
    Program(
        "tile-halves",
        tile_body(_HALVES_2D, [(0, 0), (448, 1), (-8, 0), (2000, 1)]),
        words=260,
        tile=_HALVES_2D,
    ),
    *GROUPS,
    *LANES,
    *NVCC,
)


def output_bytes(program: Program) -> int:
    """Size of a program's output buffer: its threads' slots, or the tiles it copies out (at most 16 KiB)."""
    return max(program.threads * program.slot, 16384 if program.tile is not None else 0)
