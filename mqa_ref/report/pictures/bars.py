"""Counts as bars: histograms of distances and bound ratios, coverpoints, and which classes of mutants were caught."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mqa_ref.report.evidence import Histogram
from mqa_ref.report.pictures.svg import WIDTH, label, picture, rect

_LEFT, _RIGHT, _TOP, _PITCH = 220, 130, 48, 20
_MOST = 400


def _length(count: int, most: int) -> float:
    """The length of a bar, 0 to 1: logarithmic, so that one wrong element among a million is seen."""
    return 0.0 if count == 0 or most == 0 else math.log2(1 + count) / math.log2(1 + most)


def render_counts(name: str, title: str, rows: Sequence[tuple[str, int]], missing_is_bad: bool = True) -> str:
    """A bar for each (name, count), logarithmic. Where ``missing_is_bad``, one without a count is marked "none".
    At most 400 are drawn."""
    shown, total = rows[:_MOST], sum(count for _, count in rows)
    most = max((count for _, count in shown), default=0)
    missing = sum(count == 0 for _, count in rows)
    parts = [label(12, 22, title), label(12, 38, f"{total} in all; bars are logarithmic", "small")]
    span = WIDTH - _LEFT - _RIGHT
    for number, (what, count) in enumerate(shown):
        y = _TOP + number * _PITCH
        parts.append(label(_LEFT - 8, y + 13, what if len(what) < 36 else what[:35] + "…", anchor="end"))
        length = span * _length(count, most)
        if count:
            parts.append(rect("fill", _LEFT, y + 3, length, _PITCH - 7, f"{what}: {count}"))
        words, kind = (str(count), "") if count else ("none", "bad") if missing_is_bad else ("0", "small")
        parts.append(label(_LEFT + length + 6, y + 13, words, kind))
    height = _TOP + len(shown) * _PITCH + 12.0
    if len(rows) > len(shown):
        parts.append(label(_LEFT, height + 4, f"and {len(rows) - len(shown)} more", "small"))
        height += 16
    described = "; ".join(f"{what}: {count}" for what, count in shown[:40])
    return picture(name, title, f"{len(rows)} rows, {missing} without a count. {described}", height, parts)


def render_histogram(name: str, histogram: Histogram) -> str:
    """A histogram, one bar for each range."""
    rows = list(zip(histogram.labels, histogram.counts, strict=True))
    return render_counts(name, histogram.title, rows, missing_is_bad=False)


def render_classes(name: str, title: str, rows: Sequence[tuple[str, int, int]]) -> str:
    """For each (class, caught, all) which share was caught, and the score over all."""
    caught, total = sum(row[1] for row in rows), sum(row[2] for row in rows)
    score = f"{caught} of {total} caught" + (f", {100 * caught / total:.1f} %" if total else "")
    parts = [label(12, 22, title), label(12, 38, score, "" if caught == total else "bad")]
    span = WIDTH - _LEFT - _RIGHT
    for number, (what, some, every) in enumerate(rows[:_MOST]):
        y = _TOP + number * _PITCH
        parts.append(label(_LEFT - 8, y + 13, what if len(what) < 36 else what[:35] + "…", anchor="end"))
        length = span * (some / every if every else 0.0)
        parts.append(rect("second", _LEFT, y + 3, length, _PITCH - 7, f"{what}: {some} caught"))
        if some < every:
            parts.append(
                rect(
                    "value",
                    _LEFT + length,
                    y + 3,
                    span - length,
                    _PITCH - 7,
                    f"{what}: {every - some} missed",
                )
            )
        parts.append(label(_LEFT + span + 8, y + 13, f"{some} of {every}", "" if some == every else "bad"))
    height = _TOP + min(len(rows), _MOST) * _PITCH + 12.0
    return picture(name, title, score, height, parts)
