"""Faults a person would write into the source of the builtin kernel, each an edit of one place of its text.

The copy of the kernel (``mqa_ref.kernel.own_copy``) with the edit in it is compiled and run as a user's file is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from mqa_ref.errors import InputError, KernelError, Unsupported
from mqa_ref.fuzz.edits import Fault, write_kernel
from mqa_ref.fuzz.mutants.judge import Step, Verdict, climb
from mqa_ref.fuzz.mutants.mutant import Mutant
from mqa_ref.kernel.own_copy import own_copy
from mqa_ref.verification.worker import Limits, Worker

# fmt: off
FAULTS: Mapping[str, Fault] = {
    "last-row-left-out": Fault("the row in which a CTA ends is never begun", "walk",
        "last_row = end_row if begin < end_split else end_row - 1", "last_row = end_row - 1"),
    "partial-split-left-out": Fault("a row's last split counts only when it is full", "walk",
        "(length + ((1 << SPLIT_BITS) - 1))", "(length + 0)"),
    "split-more": Fault("a length that is a multiple of 256 has one split more", "walk",
        "(length + ((1 << SPLIT_BITS) - 1))", "(length + (1 << SPLIT_BITS))"),
    "end-ignored": Fault("a CTA goes on to the end of its last row", "walk",
        "stop = min(walk.end_split, splits) if row == walk.end_row else splits", "stop = splits"),
    "start-ignored": Fault("a CTA begins its first row at split 0", "walk",
        "first = walk.first_split if row == walk.first_row else Int32(0)", "first = Int32(0)"),
    "start-everywhere": Fault("the first split holds for every row of a CTA", "walk",
        "first = walk.first_split if row == walk.first_row else Int32(0)", "first = walk.first_split"),
    "schedule-column": Fault("the splits of the schedule are read from the CTA's own entry", "walk",
        "end_split = work.schedule[(cta + 1, 1)]", "end_split = work.schedule[(cta, 1)]"),
    "query-of-first-row": Fault("queries of the CTA's first row for all rows", "roles",
        "_issue(loads.q, (q_slot.index,), row, barrier)", "_issue(loads.q, (q_slot.index,), walk.first_row, barrier)"),
    "weights-of-next-row": Fault("weights of the row after", "roles",
        "_issue(loads.weights, (q_slot.index,), row, barrier)",
        "_issue(loads.weights, (q_slot.index,), row + 1, barrier)"),
    "last-page-left-out": Fault("the partial last page of a row is not fetched", "roles",
        "(length + (config.page - 1))", "(length + 0)"),
    "page-too-many": Fault("one table entry past the needed ones is read", "roles",
        "if entry < pages:", "if entry <= pages:"),
    "window-too-long": Fault("table entries are fetched half as often as needed", "roles",
        "& (WARP // pages_per_tile - 1)", "& (2 * WARP // pages_per_tile - 1)"),
    "window-from-start": Fault("every fetch of table entries is the first one", "roles",
        "tile = 2 * (split + lane // pages_per_tile) + group", "tile = 2 * (first + lane // pages_per_tile) + group"),
    "window-one-late": Fault("table entries are those of a split later", "roles",
        "tile = 2 * (split + lane // pages_per_tile) + group",
        "tile = 2 * (split + 1 + lane // pages_per_tile) + group"),
    "tile-of-other-group": Fault("each group loads the tiles of the other", "roles",
        "tile = 2 * (split + lane // pages_per_tile) + group",
        "tile = 2 * (split + lane // pages_per_tile) + 1 - group"),
    "pages-backwards": Fault("the pages of a tile are placed in reverse", "roles",
        "turn * pages_per_tile + i)", "turn * pages_per_tile + pages_per_tile - 1 - i)"),
    "first-page-only": Fault("all pages of a tile are its first", "roles",
        "turn * pages_per_tile + i)", "turn * pages_per_tile)"),
    "bytes-short": Fault("the scales' bytes are not waited for", "roles",
        "expect(rings.kv, kv_slot, config.kv_stage_tx_bytes)",
        "expect(rings.kv, kv_slot, config.kv_stage_tx_bytes - 512)"),
    "tile-overwritten": Fault("a tile is loaded without waiting for its slot", "roles",
        "wait_empty(rings.kv, kv_slot)", "pass"),
    "query-overwritten": Fault("queries are loaded without waiting for their slot", "roles",
        "wait_empty(rings.q, q_slot)", "pass"),
    "accumulator-overwritten": Fault("the product does not wait for a free accumulator", "roles",
        "wait_empty(rings.acc, acc_slot)", "pass"),
    "tile-too-early": Fault("the product does not wait for its tile", "roles",
        "wait_full(rings.kv, kv_slot)", "pass"),
    "query-too-early": Fault("the product does not wait for its queries", "roles",
        "wait_full(rings.q, q_slot)", "pass"),
    "not-committed": Fault("nobody is told that a product is done", "roles",
        "commit_mma(rings.acc, acc_slot)", "pass"),
    "accumulates-always": Fault("a product is added to what was there before", "roles",
        "tcgen05.Field.ACCUMULATE, k > 0", "tcgen05.Field.ACCUMULATE, k >= 0"),
    "first-quarter-of-keys": Fault("the keys' first 32 elements for all 128", "roles",
        "kv[(None, None, k, kv_stage)]", "kv[(None, None, 0, kv_stage)]"),
    "scale-of-next-token": Fault("the scale of the token after", "score",
        "scales[(token, stage)]", "scales[((token + 1) % config.tile_tokens, stage)]", 2),
    "scale-of-group-0": Fault("both groups take the scales of the first", "score",
        "stage = group * config.kv_stages + kv_slot.index", "stage = kv_slot.index"),
    "rows-exchanged": Fault("query tokens are stored in reverse", "score",
        "logits[(row * config.next_n + t, column)]", "logits[(row * config.next_n + config.next_n - 1 - t, column)]"),
    "weights-of-token-0": Fault("the weights of the first query token for all", "score",
        "[weights[(t * config.heads + h, q_slot.index)]", "[weights[(h, q_slot.index)]"),
    "weights-of-slot-0": Fault("weights are always taken from the ring's first slot", "score",
        "[weights[(t * config.heads + h, q_slot.index)]", "[weights[(t * config.heads + h, 0)]"),
    "columns-of-other-group": Fault("the columns of the other group's tile", "score",
        "column = (2 * split + group)", "column = (2 * split + 1 - group)"),
    "heads-backwards": Fault("heads are added from the last to the first", "score",
        "cutlass.range_constexpr(0, config.sub_heads, 4)", "cutlass.range_constexpr(config.sub_heads - 4, -1, -4)"),
    "loads-not-awaited": Fault("accumulators are used before their load is done", "score",
        "cute.arch.fence_view_async_tmem_load()", "pass"),
    "not-fenced-before": Fault("no fence before an accumulator is let go", "score",
        "fence_before_sync()\n", "pass\n"),
    "not-fenced-after": Fault("no fence after the wait for an accumulator", "score",
        "fence_after_sync()\n", "pass\n"),
    "all-lanes-release": Fault("every lane lets the queries go", "score",
        "            if leader:\n                release(rings.q, q_slot)", "            release(rings.q, q_slot)"),
    "pairs-first": Fault("the four sums are added in two pairs", "epilogue",
        "_add_f32(_add_f32(_add_f32(self.low[0], self.low[1]), self.high[0]), self.high[1])",
        "_add_f32(_add_f32(self.low[0], self.low[1]), _add_f32(self.high[0], self.high[1]))"),
    "scale-halved": Fault("the scale is halved, not the sum", "epilogue",
        "_mul_f32(_mul_f32(total, Float32(0.5)), scale)", "_mul_f32(total, _mul_f32(Float32(0.5), scale))"),
    "no-relu": Fault("the score is doubled, not rectified", "epilogue",
        "tuple(cute.math.absf(dot) for dot in dots)", "tuple(dots)"),
    "weights-of-first-pair": Fault("the second pair of heads gets the weights of the first", "epilogue",
        "self.high = _weigh_f32x2(dots[2:4], weights[2:4], self.high)",
        "self.high = _weigh_f32x2(dots[2:4], weights[0:2], self.high)"),
    "one-chain": Fault("both pairs are added to one sum", "epilogue",
        "self.high = _weigh_f32x2(dots[2:4], weights[2:4], self.high)",
        "self.low = _weigh_f32x2(dots[2:4], weights[2:4], self.low)"),
    "reader-missing": Fault("a slot is empty before its last reader says so", "ring",
        "mbarrier_init(ring.empty + stage, readers)", "mbarrier_init(ring.empty + stage, readers - 1)"),
    "readers-start-late": Fault("readers wait for the phase after the first", "ring",
        "PipelineUserType.Consumer", "PipelineUserType.Producer"),
    "writers-start-late": Fault("writers wait for readers of a slot that was never filled", "ring",
        "PipelineUserType.Producer, ring.stages", "PipelineUserType.Consumer, ring.stages"),
    "before-the-grid-before": Fault("inputs are read before the grid before has ended", "sm100",
        "cute.arch.griddepcontrol_wait()", "pass"),
    "barriers-not-published": Fault("no barrier after the initialisation", "sm100",
        "        cute.arch.sync_threads()\n        if cutlass.const_expr(config.enable_pdl):",
        "        if cutlass.const_expr(config.enable_pdl):"),
    "freed-in-use": Fault("tensor memory is freed while others read it", "sm100",
        "        cute.arch.sync_threads()\n        if warp == 0:\n            fence_after_sync()",
        "        if warp == 0:\n            fence_after_sync()"),
    "not-freed": Fault("tensor memory is kept", "sm100", "free(config, tmem_address)", "pass"),
    "scales-from-next": Fault("scales begin four tokens late", "sm100",
        "pages + page * head_dim, scale_bytes", "pages + page * head_dim + 16, scale_bytes"),
    "accumulators-overlap": Fault("the groups' accumulators overlap", "accumulators",
        "group * (config.acc_stages * config.n)", "group * (config.acc_stages * config.n // 2)"),
}
# fmt: on


def mutants() -> tuple[Mutant, ...]:
    """One for each fault, named after it."""
    texts = own_copy()
    made = []
    for name, fault in FAULTS.items():
        text = texts[fault.file]
        line = text[: text.find(fault.old)].count("\n") + 1
        made.append(
            Mutant(
                "source",
                name,
                "",
                line,
                _words(fault.old),
                _words(fault.new),
                f"{fault.module}.py:{line}",
                fault.what,
            )
        )
    return tuple(made)


def _words(text: str) -> str:
    return " ".join(text.split())


def judge(mutant: Mutant, steps: Sequence[Step], limits: Limits) -> Verdict:
    """Compile the copy with the fault, and run it up the ladder in a process of its own. What does not compile is
    refused."""
    faults = [FAULTS[mutant.operator]]
    with (
        TemporaryDirectory(prefix="mqa-mutant-") as folder,
        Worker(write_kernel(Path(folder), faults), limits) as worker,
    ):
        try:
            subject = steps[0].rung.subject
            shape = {name: getattr(subject.problem, name) for name in _STATIC}
            worker.compile(shape, subject.flow)
        except (InputError, KernelError, Unsupported) as error:
            return Verdict(mutant.id, "refused", signs=(type(error).__name__,), message=str(error)[:240])
        return climb(mutant.id, worker.launch, steps)


_STATIC = ("page", "heads", "head_dim", "next_n", "num_sms")
