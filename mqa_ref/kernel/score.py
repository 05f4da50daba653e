"""What the math warps do with a walk: from accumulators to stored logits, one thread a token.

One function, traced once, for both warp groups; the group is a run time number as in ``roles``.
"""

import cutlass
import cutlass.cute as cute
from cutlass import Int32
from cutlass.cute.nvgpu import tcgen05

from mqa_ref.kernel.accumulators import Accumulators, accumulator, first_stage
from mqa_ref.kernel.config import KernelConfig
from mqa_ref.kernel.epilogue import Fp16Sums, Fp32Sums
from mqa_ref.kernel.ring import Rings, fence_after_sync, fence_before_sync, reader, release, wait_full
from mqa_ref.kernel.walk import Work, read_walk, splits_of


@cute.jit
def math_role(
    config: KernelConfig,
    group: Int32,
    work: Work,
    rings: Rings,
    scales: cute.Tensor,
    weights: cute.Tensor,
    acc: Accumulators,
    logits: cute.Tensor,
) -> None:
    """Math warp. Columns at or past the width of ``logits`` are computed but not stored.

    Weights are read into registers once a row, as many as the configuration keeps there; the rest come from shared
    memory in every tile. A tile is let go when the whole warp has read its scales (its keys have been consumed by
    then, for the accumulator was complete), the accumulator when the whole warp has loaded its last subtile.
    """
    token = cute.arch.thread_idx()[0] % config.tile_tokens
    leader = cute.arch.lane_idx() == 0
    columns = logits.shape[1]
    parts = config.next_n * config.num_epi_subtiles
    sums_of = Fp16Sums if config.flow.epi == "fp16" else Fp32Sums

    subtile = (config.tile_tokens, config.sub_heads)
    acc_first = first_stage(config, acc, group)
    load = tcgen05.make_tmem_copy(
        _load_atom(config), _subtiles(config, acc, acc_first, 0)[(None, None, 0, 0)]
    )
    load = load.get_slice(token)
    dots = cute.make_fragment_like(load.partition_D(cute.make_identity_tensor(subtile)), config.acc_type)

    kv_slot = reader(rings.kv)
    q_slot = reader(rings.q)
    acc_slot = reader(rings.acc)
    walk = read_walk(work)
    for row in cutlass.range(walk.first_row, walk.last_row + 1, 1, unroll=1):
        first, stop = splits_of(walk, row, work.context_lens[row])
        if first < stop:
            wait_full(rings.q, q_slot)
            kept = [
                [weights[(t * config.heads + h, q_slot.index)] for h in range(config.weights_in_registers)]
                for t in range(config.next_n)
            ]
            for split in cutlass.range(first, stop, 1, unroll=1):
                column = (2 * split + group) * config.tile_tokens + token
                stage = group * config.kv_stages + kv_slot.index
                if cutlass.const_expr(config.remove_kv_wait_in_epilogue):
                    wait_full(rings.acc, acc_slot)
                    scale = scales[(token, stage)]
                else:
                    wait_full(rings.kv, kv_slot)
                    scale = scales[(token, stage)]
                    wait_full(rings.acc, acc_slot)
                fence_after_sync()
                source = load.partition_S(_subtiles(config, acc, acc_first, acc_slot.index))
                for part in cutlass.range_constexpr(parts):
                    t, i = divmod(part, config.num_epi_subtiles)
                    is_last = part == parts - 1
                    release_kv = part == 0
                    cute.copy(load, source[(None, None, None, 0, part)], dots)
                    if cutlass.const_expr(release_kv and config.early_tmem_copy):
                        cute.arch.sync_warp()
                        if leader:
                            release(rings.kv, kv_slot)
                        release_kv = False
                    cute.arch.fence_view_async_tmem_load()
                    if cutlass.const_expr(release_kv or is_last):
                        fence_before_sync()
                        cute.arch.sync_warp()
                        if leader:
                            if cutlass.const_expr(release_kv):
                                release(rings.kv, kv_slot)
                            if cutlass.const_expr(is_last):
                                release(rings.acc, acc_slot)
                    if cutlass.const_expr(i == 0):
                        sums = sums_of()
                    values = dots.load()
                    for h in cutlass.range_constexpr(0, config.sub_heads, 4):
                        head = i * config.sub_heads + h
                        if cutlass.const_expr(head < config.weights_in_registers):
                            four = kept[t][head : head + 4]
                        else:
                            four = [weights[(t * config.heads + head + j, q_slot.index)] for j in range(4)]
                        sums.add([values[h + j] for j in range(4)], four)
                    if cutlass.const_expr(i == config.num_epi_subtiles - 1):
                        logit = config.out_type(sums.logit(scale))
                        if column < columns:
                            logits[(row * config.next_n + t, column)] = logit
                kv_slot.advance()
                acc_slot.advance()
            cute.arch.sync_warp()
            if leader:
                release(rings.q, q_slot)
            q_slot.advance()


def _subtiles(config: KernelConfig, acc: Accumulators, first: Int32, index: Int32) -> cute.Tensor:
    """One accumulator cut by the heads of one TMEM load: (token, head, 0, subtile)."""
    whole = accumulator(config, acc, first, index)[((None, None), 0, 0)]
    return cute.flat_divide(whole, (config.tile_tokens, config.sub_heads))


def _load_atom(config: KernelConfig) -> cute.CopyAtom:
    """TMEM load of one subtile: one token a lane, as many 32-bit words a lane as one instruction can take.

    An fp16 accumulator takes a whole TMEM column; the load packs two of them into one word.
    """
    words = config.sub_heads * config.acc_type.width // 32
    repetition = tcgen05.Repetition(min(128, words & -words))
    pack = tcgen05.Pack.PACK_16b_IN_32b if config.acc_type.width == 16 else tcgen05.Pack.NONE
    return cute.make_copy_atom(tcgen05.Ld32x32bOp(repetition, pack), config.acc_type)
