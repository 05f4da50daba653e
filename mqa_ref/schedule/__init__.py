"""Schedule metadata: who works on which splits. Builders, the walk of every CTA, checks, and pictures for
people."""

from mqa_ref.schedule.build import FORMS, Form, build, cut
from mqa_ref.schedule.check import ScheduleFault, ScheduleReport, check, describe, partition, same_partition
from mqa_ref.schedule.lengths import MAX_CTAS, SPLIT_TOKENS, TILE_TOKENS, cta_count_fault
from mqa_ref.schedule.render import render_svg, render_text
from mqa_ref.schedule.walk import CtaWalk, Run, walk

__all__ = [
    "FORMS",
    "MAX_CTAS",
    "SPLIT_TOKENS",
    "TILE_TOKENS",
    "CtaWalk",
    "Form",
    "Run",
    "ScheduleFault",
    "ScheduleReport",
    "build",
    "check",
    "cta_count_fault",
    "cut",
    "describe",
    "partition",
    "render_svg",
    "render_text",
    "same_partition",
    "walk",
]
