"""The SM100 kernel: FP8 paged MQA logits with 8 math warps, 2 TMA warps and 2 UMMA warps in a persistent CTA.

This module holds the class that a caller compiles and launches, the shared memory, and the hand-out of roles; what
the warps do is in ``roles`` and ``score``. The order of the whole kernel:

1. Warp 0 initialises the barriers and allocates TMEM; one CTA barrier publishes both.
2. Every thread waits for the grid before this one (PDL) before anything of global memory is read.
3. Each warp walks the CTA's part of the schedule in its role. Every load that is started is waited for by the warps
   that use it, so that nothing is in flight when a role ends.
4. A second CTA barrier: all TMEM reads are over, and the MMAs too since their results have been read. TMEM goes back.
"""

from typing import Any

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.utils.blackwell_helpers as blackwell
from cutlass import Float8E4M3FN, Float32, Int32, Int64
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, tcgen05
from cutlass.memory import SmemAllocator

from mqa_ref.kernel.accumulators import Accumulators, allocate, free, layout_of
from mqa_ref.kernel.config import GROUPS, KernelConfig
from mqa_ref.kernel.ring import Rings, fence_after_sync, init_rings, ring_at
from mqa_ref.kernel.roles import TmaLoad, TmaLoads, load_role, mma_role
from mqa_ref.kernel.score import math_role
from mqa_ref.kernel.walk import Work

MATH_WARPS_PER_GROUP = 4
FIRST_TMA_WARP = GROUPS * MATH_WARPS_PER_GROUP
FIRST_MMA_WARP = FIRST_TMA_WARP + GROUPS
THREADS = 32 * (FIRST_MMA_WARP + GROUPS)
# 8 * 32 * 232 + 4 * 32 * 40 registers are what 384 threads have at 168 each, the most that 65,536 allow.
MATH_REGISTERS = 232
OTHER_REGISTERS = 40


class PagedMqaLogitsSm100:
    """One compiled shape of the operation; the constructor fixes everything that is static in the code.

    ``phys_block_kv``: tokens of a page, 32, 64 or 128. ``num_sms``: CTAs of the grid. ``epi_dtype`` is the dtype of
    the weights. None of the options from ``remove_kv_wait_in_epilogue`` to ``num_epi_subtiles`` changes a bit of a
    valid logit. Raises InputError with every fault; Unsupported if ``next_n * num_heads`` is no multiple of 16, which
    this MMA needs, or ``head_dim`` is not 128.
    """

    def __init__(
        self,
        block_kv: int = 128,
        phys_block_kv: int = 128,
        num_heads: int = 64,
        head_dim: int = 128,
        next_n: int = 1,
        num_sms: int = 148,
        remove_kv_wait_in_epilogue: bool = False,
        early_tmem_copy: bool = False,
        smem_subpartition_opt: bool = False,
        max_kv_pipeline: bool = False,
        max_umma_pipeline: bool = False,
        max_w_in_reg: int = 0,
        num_epi_subtiles: int = 1,
        epi_dtype: Any = cutlass.Float32,
        acc_dtype: Any = cutlass.Float32,
        output_dtype: Any = cutlass.Float32,
        enable_pdl: bool = True,
    ) -> None:
        self.config = KernelConfig.checked(
            block_kv=block_kv,
            phys_block_kv=phys_block_kv,
            num_heads=num_heads,
            head_dim=head_dim,
            next_n=next_n,
            num_sms=num_sms,
            remove_kv_wait_in_epilogue=remove_kv_wait_in_epilogue,
            early_tmem_copy=early_tmem_copy,
            smem_subpartition_opt=smem_subpartition_opt,
            max_kv_pipeline=max_kv_pipeline,
            max_umma_pipeline=max_umma_pipeline,
            max_w_in_reg=max_w_in_reg,
            num_epi_subtiles=num_epi_subtiles,
            epi_dtype=epi_dtype,
            acc_dtype=acc_dtype,
            output_dtype=output_dtype,
            enable_pdl=enable_pdl,
        )

    @cute.jit
    def __call__(
        self,
        kv_fused: cute.Tensor,
        b: cute.Tensor,
        weights: cute.Tensor,
        logits: cute.Tensor,
        block_table: cute.Tensor,
        context_lens: cute.Tensor,
        schedule_meta: cute.Tensor,
        num_phys_blocks: Int32,
        batch_size: Int32,
        stream: cuda.CUstream,
    ) -> None:
        """Launch on ``stream``.

        Shapes: ``kv_fused`` uint8 [pages, page * (D + 4)], every page its codes and then its fp32 scales; ``b`` uint8
        [N, D, B]; ``weights`` [N, B]; ``logits`` [B * next_n, columns]; ``block_table`` int32 [B, entries];
        ``context_lens`` int32 [B]; ``schedule_meta`` int32 [num_sms + 1, 2], splits in the second column.
        """
        config = self.config
        page, head_dim = config.page, config.head_dim
        pages = cute.recast_tensor(kv_fused, Float8E4M3FN).iterator
        page_bytes = page * (head_dim + 4)
        codes = cute.make_layout((page, head_dim, num_phys_blocks), stride=(head_dim, 1, page_bytes))
        scale_bytes = cute.make_layout((page * 4, num_phys_blocks), stride=(1, page_bytes))
        scales = cute.recast_tensor(cute.make_tensor(pages + page * head_dim, scale_bytes), Float32)
        queries = cute.recast_tensor(b, Float8E4M3FN)
        _, _, kv_rows, q_rows = self._operand_layouts(self._tiled_mma())
        self.kernel(
            *_tma(cute.make_tensor(pages, codes), kv_rows[0], (page, head_dim)),
            *_tma(scales, cute.make_layout((page,)), (page,)),
            *_tma(queries, q_rows[0], (config.n, head_dim)),
            *_tma(weights, cute.make_layout((config.n,)), (config.n,)),
            logits,
            block_table,
            context_lens,
            schedule_meta,
            num_phys_blocks,
            batch_size,
        ).launch(grid=(1, 1, config.num_sms), block=(THREADS, 1, 1), stream=stream, use_pdl=config.enable_pdl)

    @cute.kernel
    def kernel(
        self,
        kv_atom: cute.CopyAtom,
        kv_gmem: cute.Tensor,
        scale_atom: cute.CopyAtom,
        scale_gmem: cute.Tensor,
        q_atom: cute.CopyAtom,
        q_gmem: cute.Tensor,
        weight_atom: cute.CopyAtom,
        weight_gmem: cute.Tensor,
        logits: cute.Tensor,
        block_table: cute.Tensor,
        context_lens: cute.Tensor,
        schedule_meta: cute.Tensor,
        num_phys_blocks: Int32,
        batch_size: Int32,
    ) -> None:
        """The device side: TMA sources as copy atoms and coordinate tensors, the rest as in ``__call__``."""
        config = self.config
        kv_stages = GROUPS * config.kv_stages
        tiled_mma = self._tiled_mma()
        kv_layout, q_layout, kv_rows, q_rows = self._operand_layouts(tiled_mma)

        smem = SmemAllocator()
        kv_bars = smem.allocate_array(Int64, 2 * kv_stages)
        q_bars = smem.allocate_array(Int64, 2 * config.q_stages)
        acc_bars = smem.allocate_array(Int64, 2 * GROUPS * config.acc_stages)
        tmem_address = smem.allocate_array(Int32, 1)
        kv_smem = smem.allocate_tensor(Float8E4M3FN, kv_layout.outer, 1024, kv_layout.inner)
        q_smem = smem.allocate_tensor(Float8E4M3FN, q_layout.outer, 1024, q_layout.inner)
        if cutlass.const_expr(config.smem_pad_bytes > 0):
            smem.allocate(config.smem_pad_bytes)
        weight_layout = cute.make_layout((config.n, config.q_stages), stride=(1, config.weight_stage_stride))
        weight_smem = smem.allocate_tensor(config.weight_type, weight_layout, 128)
        scale_smem = smem.allocate_tensor(Float32, cute.make_layout((config.tile_tokens, kv_stages)), 128)

        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        if warp == 0:
            with cute.arch.elect_one():
                init_rings(kv_bars, GROUPS, config.kv_stages, MATH_WARPS_PER_GROUP)
                init_rings(q_bars, 1, config.q_stages, GROUPS * MATH_WARPS_PER_GROUP)
                init_rings(acc_bars, GROUPS, config.acc_stages, MATH_WARPS_PER_GROUP)
            cute.arch.mbarrier_init_fence()
            allocate(config, tmem_address)
        if warp == FIRST_TMA_WARP:
            for atom in (kv_atom, scale_atom, q_atom, weight_atom):
                cpasync.prefetch_descriptor(atom)
        cute.arch.sync_threads()
        if cutlass.const_expr(config.enable_pdl):
            cute.arch.griddepcontrol_wait()

        acc = Accumulators(tmem_address, layout_of(config, tiled_mma))
        work = Work(schedule_meta, context_lens, batch_size)
        q_ring = ring_at(q_bars, config.q_stages)
        if warp < FIRST_TMA_WARP:
            cute.arch.setmaxregister_increase(MATH_REGISTERS)
            group = warp >> 2
            kv_ring = ring_at(kv_bars, config.kv_stages, group)
            rings = Rings(kv_ring, q_ring, ring_at(acc_bars, config.acc_stages, group))
            math_role(config, group, work, rings, scale_smem, weight_smem, acc, logits)
            if cutlass.const_expr(config.enable_pdl):
                cute.arch.griddepcontrol_launch_dependents()
        else:
            cute.arch.setmaxregister_decrease(OTHER_REGISTERS)
            group = warp & 1
            kv_ring = ring_at(kv_bars, config.kv_stages, group)
            rings = Rings(kv_ring, q_ring, ring_at(acc_bars, config.acc_stages, group))
            if warp < FIRST_MMA_WARP:
                sub_scales = cute.make_layout(
                    (config.page, config.pages_per_tile, kv_stages),
                    stride=(1, config.page, config.tile_tokens),
                )
                loads = TmaLoads(
                    kv=_load(kv_atom, kv_gmem, cute.make_tensor(kv_smem.iterator, kv_rows.outer)),
                    scales=_load(scale_atom, scale_gmem, cute.make_tensor(scale_smem.iterator, sub_scales)),
                    q=_load(q_atom, q_gmem, cute.make_tensor(q_smem.iterator, q_rows.outer)),
                    weights=_load(weight_atom, weight_gmem, weight_smem),
                )
                load_role(config, group, work, block_table, num_phys_blocks, rings, loads)
            else:
                kv_operand, q_operand = tiled_mma.make_fragment_A(kv_smem), tiled_mma.make_fragment_B(q_smem)
                mma_role(config, group, work, rings, tiled_mma, kv_operand, q_operand, acc)

        cute.arch.sync_threads()
        if warp == 0:
            fence_after_sync()
            free(config, tmem_address)

    def _tiled_mma(self) -> cute.TiledMma:
        config = self.config
        return blackwell.make_trivial_tiled_mma(
            Float8E4M3FN,
            Float8E4M3FN,
            OperandMajorMode.K,
            OperandMajorMode.K,
            config.acc_type,
            tcgen05.CtaGroup.ONE,
            (config.tile_tokens, config.n),
        )

    def _operand_layouts(self, tiled_mma: cute.TiledMma) -> tuple[Any, Any, Any, Any]:
        """Shared memory layouts of K and Q, as the MMA reads them; then of the same bytes, as TMA writes them.

        TMA writes ((page, D), page of the tile, stage) and ((N, D), stage). K has the stages of both groups.
        """
        config = self.config
        tiler = (config.tile_tokens, config.n, config.head_dim)
        kv_stages = GROUPS * config.kv_stages

        def rows(count: int, box: int, stages: int, modes: list[int]) -> Any:
            whole = blackwell.make_smem_layout(
                OperandMajorMode.K, (count, config.head_dim), Float8E4M3FN, stages
            )
            return cute.select(cute.tiled_divide(whole, (box, config.head_dim)), mode=modes)

        return (
            blackwell.make_smem_layout_a(tiled_mma, tiler, Float8E4M3FN, kv_stages),
            blackwell.make_smem_layout_b(tiled_mma, tiler, Float8E4M3FN, config.q_stages),
            rows(config.tile_tokens, config.page, kv_stages, [0, 1, 3]),
            rows(config.n, config.n, config.q_stages, [0, 3]),
        )


def _tma(source: cute.Tensor, smem_layout: Any, box: tuple[int, ...]) -> tuple[cute.CopyAtom, cute.Tensor]:
    """A TMA descriptor that loads ``box`` from the leading modes of ``source``; its last mode picks the box."""
    info = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), source, smem_layout, box)
    return info[0], info[1]


def _load(atom: cute.CopyAtom, gmem: cute.Tensor, smem: cute.Tensor) -> TmaLoad:
    """Pair what the last mode of ``gmem`` picks with the stages of ``smem``, whose first mode is one box."""
    boxes = cute.group_modes(gmem, 0, cute.rank(gmem) - 1)
    smem_boxes, gmem_boxes = cpasync.tma_partition(atom, 0, cute.make_layout(1), smem, boxes)
    return TmaLoad(atom, smem_boxes, gmem_boxes)
