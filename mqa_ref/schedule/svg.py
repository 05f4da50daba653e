"""A schedule as a picture: one line per CTA over the tiles of all rows, in one self-contained SVG file."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mqa_ref.schedule.check import check
from mqa_ref.schedule.lengths import SPLIT_TOKENS, TILE_TOKENS, SplitLine, read_lengths, split_line
from mqa_ref.schedule.walk import CtaWalk, Run, walk

_WIDTH, _LEFT, _TOP, _RIGHT, _BOTTOM = 1000, 64, 76, 16, 34
_MOST_BARS = 4000
_STYLE = """
.schedule { --ground: #ffffff; --ink: #1f2328; --faint: #59636e; --even: #0969da; --odd: #1a7f5a; --tail: #b6bec8;
  --bad: #cf222e; background: var(--ground); font: 12px system-ui, sans-serif; }
@media (prefers-color-scheme: dark) {
  .schedule { --ground: #0d1117; --ink: #e6edf3; --faint: #9198a1; --even: #539bf5; --odd: #46b98a;
    --tail: #3d444d; --bad: #f47067; } }
.schedule text { fill: var(--ink); } .schedule .small { font-size: 10px; fill: var(--faint); }
.schedule .bad { fill: var(--bad); } .schedule .even { fill: var(--even); } .schedule .odd { fill: var(--odd); }
.schedule .tail { fill: var(--tail); } .schedule .row { stroke: var(--faint); stroke-width: 0.5; }
.schedule .empty { stroke: var(--bad); stroke-dasharray: 3 2; } .schedule .idle { fill: none; stroke: var(--faint); }
"""


class _Scale:
    """Where a split of a row and a CTA lie in the picture. Rows without tokens get no width."""

    def __init__(self, line: SplitLine, ctas: int) -> None:
        self.starts: NDArray[np.int64] = line.ends - line.per_row
        self.order: NDArray[np.int64] = np.cumsum(line.per_row > 0)
        self.per_split = (_WIDTH - _LEFT - _RIGHT) / max(line.total, 1)
        self.pitch = max(4.0, min(18.0, 900 / ctas))
        self.bottom = _TOP + ctas * self.pitch

    def x(self, row: int, split: float) -> float:
        return _LEFT + (float(self.starts[row]) + split) * self.per_split

    def colour(self, row: int) -> str:
        return "even" if self.order[row] % 2 == 0 else "odd"

    def y(self, cta: int) -> float:
        return _TOP + cta * self.pitch


def _rect(kind: str, x: float, y: float, width: float, height: float, title: str) -> str:
    size = f'x="{x:.2f}" y="{y:.2f}" width="{max(width, 0.3):.2f}" height="{height:.2f}"'
    return f'<rect class="{kind}" {size}><title>{title}</title></rect>'


def _bar(cta: CtaWalk, run: Run, lengths: NDArray[np.int64], scale: _Scale) -> list[str]:
    """One piece of one CTA: tiles that hold tokens in the row's colour, a last tile without a token in grey."""
    splits = int(-(-lengths[run.row] // SPLIT_TOKENS))
    tiles = int(-(-lengths[run.row] // TILE_TOKENS))
    stop = min(run.stop, splits)
    if run.first >= stop:
        return []
    last_token = min(int(lengths[run.row]), stop * SPLIT_TOKENS) - 1
    tokens = f"tokens {run.first * SPLIT_TOKENS}-{last_token}"
    title = f"CTA {cta.cta}: row {run.row}, splits {run.first}-{stop - 1}, {tokens}"
    top, height = scale.y(cta.cta), scale.pitch * 0.8
    left, full = scale.x(run.row, run.first), min(stop, tiles / 2)
    bars = [_rect(scale.colour(run.row), left, top, scale.x(run.row, full) - left, height, title)]
    if full < stop:
        note = f"CTA {cta.cta}: row {run.row}, a tile past the length"
        bars.append(_rect("tail", scale.x(run.row, full), top, scale.per_split / 2, height, note))
    return bars


def _bars(walks: list[CtaWalk], lengths: NDArray[np.int64], line: SplitLine, scale: _Scale) -> list[str]:
    parts: list[str] = []
    coarse = sum(len(cta.runs) for cta in walks) > _MOST_BARS
    for cta in walks:
        top, height = scale.y(cta.cta), scale.pitch * 0.8
        if cta.zero_work:
            parts.append(_rect("idle", _LEFT - 8, top, 4, height, f"CTA {cta.cta}: zero work"))
        elif coarse and cta.runs:
            low = scale.x(cta.runs[0].row, min(cta.runs[0].first, int(line.per_row[cta.runs[0].row])))
            high = scale.x(cta.runs[-1].row, min(cta.runs[-1].stop, int(line.per_row[cta.runs[-1].row])))
            title = f"CTA {cta.cta}: rows {cta.runs[0].row}-{cta.runs[-1].row}"
            parts.append(_rect("even" if cta.cta % 2 == 0 else "odd", low, top, high - low, height, title))
        else:
            for run in cta.runs:
                parts.extend(_bar(cta, run, lengths, scale))
        if not cta.terminates:
            y = top + height
            parts.append(
                f'<text class="bad" x="{_WIDTH - _RIGHT}" y="{y:.2f}" text-anchor="end">never ends</text>'
            )
    return parts


def _frame(walks: list[CtaWalk], lengths: NDArray[np.int64], line: SplitLine, scale: _Scale) -> list[str]:
    """Row borders with their numbers, and the numbers of the CTAs, as many as fit."""
    parts: list[str] = []
    free_from = -1.0
    for row in range(line.batch) if line.batch <= _MOST_BARS else ():
        x = scale.x(row, 0)
        kind = "row empty" if lengths[row] == 0 else "row"
        ends = f'x1="{x:.2f}" y1="{_TOP - 4}" x2="{x:.2f}" y2="{scale.bottom:.2f}"'
        parts.append(f'<line class="{kind}" {ends}><title>row {row}: {lengths[row]} tokens</title></line>')
        if lengths[row] and x >= free_from:
            parts.append(f'<text class="small" x="{x + 2:.2f}" y="{_TOP - 8}">row {row}</text>')
            free_from = x + 52
    step = max(1, round(14 / scale.pitch))
    for cta in walks[::step]:
        y = scale.y(cta.cta) + scale.pitch * 0.8
        parts.append(f'<text class="small" x="{_LEFT - 12}" y="{y:.2f}" text-anchor="end">{cta.cta}</text>')
    return parts


def render_svg(schedule: ArrayLike, context_lens: ArrayLike, name: str = "schedule") -> str:
    """The schedule (integers [S + 1, 2]) over ``context_lens`` as the text of an SVG file.

    Across: the splits of all rows one after another, a split being two tiles; a last tile without a token is
    grey, a row without tokens a dashed line. Down: the CTAs; one without work has a hollow mark. Colours
    follow the reader's light or dark scheme; every mark carries its numbers as a title. Past 4000 pieces each
    CTA is one bar. ``name``, of letters, digits and hyphens, makes the ids unique in a page that holds several. Raises
    InputError for what is no schedule or no lengths.
    """
    walks = walk(schedule, context_lens, zero_rows="execute")
    lengths, line = read_lengths(context_lens), split_line(context_lens)
    scale = _Scale(line, len(walks))
    faults = check(schedule, context_lens)
    idle = sum(cta.zero_work for cta in walks)
    summary = f"{line.total} splits of {line.batch} rows on {len(walks)} CTAs, {idle} of them without work"
    verdict = "no fault" if not faults else f"{len(faults)} faults, the first: {faults[0].message}"
    height = scale.bottom + _BOTTOM
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="schedule" viewBox="0 0 {_WIDTH} {height:.0f}" role="img"'
            f' aria-labelledby="{name}-title {name}-desc">',
            f'<title id="{name}-title">Schedule: which CTA executes which tiles</title>',
            f'<desc id="{name}-desc">{summary}; {verdict}</desc>',
            f"<style>{_STYLE}</style>",
            f'<rect width="{_WIDTH}" height="{height:.0f}" style="fill: var(--ground)"/>',
            f'<text x="{_LEFT}" y="22">{summary}</text>',
            f'<text class="{"bad" if faults else "small"}" x="{_LEFT}" y="40">{verdict}</text>',
            f'<text class="small" x="8" y="{_TOP - 8}">CTA</text>',
            *_frame(walks, lengths, line, scale),
            *_bars(walks, lengths, line, scale),
            f'<text class="small" x="{_LEFT}" y="{height - 10:.0f}">splits of {SPLIT_TOKENS} tokens, rows in order;'
            " grey: a tile past the length; dashed: a row without tokens; hollow: a CTA without work</text>",
            "</svg>",
            "",
        ]
    )
