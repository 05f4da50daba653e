"""Cases without logits: partitions, schedules used with other lengths, and bad input."""

from __future__ import annotations

from mqa_ref.golden.model import RefusedCase, ScheduleCase, StaleCase

# fmt: off
SCHEDULES: tuple[ScheduleCase, ...] = (
    ScheduleCase("schedule-one-each", "as many splits as CTAs", (148,), (256,) * 148, runs=148),
    ScheduleCase("schedule-fewer-splits", "no more splits than CTAs", (6, 148), (300, 1, 0, 513), runs=6),
    ScheduleCase("schedule-remainder", "a remainder: the two forms differ", (4, 7), (1200, 1337, 200)),
    ScheduleCase("schedule-multiple-of-32", "a batch that is a multiple of 32", (7, 148), batch=96, bound=3000),
    ScheduleCase("schedule-2d-lengths", "lengths [B, 3], of which the last column counts", (4, 148), (700, 0, 300, 64),
                 next_n=3),
    ScheduleCase("schedule-zero-rows", "rows without tokens at every kind of place", (1, 2, 3, 148),
                 (0, 0, 256, 0, 257, 0, 0, 1, 0)),
    ScheduleCase("schedule-one-long", "one very long sequence among short ones", (132, 148), (5, 1_000_000, 7, 0, 300)),
    ScheduleCase("schedule-two-to-the-31", "the longest length there is", (148, 4096), (2**31 - 1, 1), hashed=True),
)
STALE: tuple[StaleCase, ...] = (
    StaleCase("stale-split-of-128", "built for splits of 128 tokens", (512,), (256,), 2,
              ("stale", "no_termination")),
    StaleCase("stale-row-for-each-token", "built for B*next_n rows", (300, 300, 500, 500), (300, 500), 4, ("bounds",)),
    StaleCase("stale-shrunk", "built for four splits, used with two", (1024,), (300,), 4, ("stale", "no_termination")),
    StaleCase("stale-grown", "a sequence has grown by a split: usable", (256, 256), (257, 256), 2, ()),
    StaleCase("stale-emptied", "a sequence has no tokens any more: usable", (256, 256), (0, 256), 2, ()),
    StaleCase("stale-batch-shrunk", "a sequence has gone", (256, 256, 256), (256, 256), 3, ("bounds",)),
    StaleCase("stale-reversed", "the reversed form, used with fewer tokens", (700,), (300,), 2,
              (), form="reversed"),
)
REFUSED: tuple[RefusedCase, ...] = (
    RefusedCase("refused-n-320", "N = 320 is above 256", "rows-320", ("q",)),
    RefusedCase("refused-dim-96", "D = 96", "dim-96", ("q",)),
    RefusedCase("refused-page-16", "pages of 16 tokens", "page-16", ("page",)),
    RefusedCase("refused-narrow-table", "four entries for 257 tokens", "entries-4", ("block_table",)),
    RefusedCase("refused-page-id-above", "a page number beyond the pool", "page-id-8", ("block_table",)),
    RefusedCase("refused-page-id-below", "page number -1 where tokens are", "page-id-minus-1", ("block_table",)),
    RefusedCase("refused-length", "a negative length", "length-minus-1", ("context_lens",)),
    RefusedCase("refused-stale-schedule", "a schedule that never ends", "built-for-257", ("schedule", "schedule")),
    RefusedCase("refused-all-at-once", "five faults in one launch, all told", "all-at-once",
                ("q", "block_table", "context_lens", "num_sms")),
    RefusedCase("refused-kernel-heads", "a kernel for H = 10", "kernel-heads-10", ("num_heads",)),
)
# fmt: on
