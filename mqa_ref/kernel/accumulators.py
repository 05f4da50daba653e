"""Where the accumulators lie in tensor memory: stage after stage, the stages of group 0 first.

Addresses are computed in columns, which are 32 bits wide whatever the accumulator's dtype (an fp16 accumulator takes
a column of its own, PTX ISA, tcgen05 data path and matrix layouts).
"""

from dataclasses import dataclass

import cutlass.cute as cute
from cutlass import Int32

from mqa_ref.kernel.config import GROUPS, TILE_TOKENS, KernelConfig


@dataclass(frozen=True)
class Accumulators:
    """The CTA's allocation: where shared memory keeps its address, and the layout of one accumulator in it."""

    address_at: cute.Pointer
    layout: cute.Layout


def allocate(config: KernelConfig, address_at: cute.Pointer) -> None:
    """Allocate for both groups, and let other CTAs allocate after it. For one whole warp of the CTA."""
    cute.arch.alloc_tmem(_columns(config), address_at)
    cute.arch.relinquish_tmem_alloc_permit()


def free(config: KernelConfig, address_at: cute.Pointer) -> None:
    """Give the allocation back. For the warp that allocated, when no warp will touch tensor memory any more."""
    cute.arch.dealloc_tmem(cute.arch.retrieve_tmem_ptr(config.acc_type, 16, address_at), _columns(config))


def layout_of(config: KernelConfig, tiled_mma: cute.TiledMma) -> cute.Layout:
    """The layout of one accumulator: 128 tokens by all query rows."""
    return tiled_mma.make_fragment_C(tiled_mma.partition_shape_C((TILE_TOKENS, config.n))).layout


def first_stage(config: KernelConfig, acc: Accumulators, group: Int32) -> Int32:
    """The address of the group's first accumulator."""
    base = cute.make_tensor(acc.address_at, cute.make_layout(1))[0]
    return base + group * (config.acc_stages * config.n)


def accumulator(config: KernelConfig, acc: Accumulators, first: Int32, index: Int32) -> cute.Tensor:
    """Stage ``index`` of the group whose first accumulator is at ``first``."""
    address = first + index * config.n
    pointer = cute.make_ptr(config.acc_type, address, cute.AddressSpace.tmem, assumed_align=16)
    return cute.make_tensor(pointer, acc.layout)


def _columns(config: KernelConfig) -> int:
    """Columns to allocate: a power of two, 32 at least (PTX ISA, tcgen05.alloc)."""
    return max(32, 1 << (GROUPS * config.acc_stages * config.n - 1).bit_length())
