"""The timeline of one CTA: a lane for each warp, when it ran, for what it waited, and what was in flight meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mqa_ref.report.pictures.svg import WIDTH, label, line, picture, rect

_LEFT, _RIGHT, _TOP, _PITCH = 84, 16, 62, 20
_OPERATIONS = {"copy": "fill", "product": "second", "commit": "inf_sign", "other": "wait"}
_MOST_MARKS = 3000
"""Marks of one kind; past that neighbours are drawn together, and short ones are left out."""


def render_timeline(name: str, title: str, values: Mapping[str, Any]) -> str:
    """``values``: those of ``mqa_ref.emulator.timeline.Timeline``."""
    ends: Sequence[Mapping[str, Any]] = values["ends"]
    end = max(int(values["end"]), 1)
    scale = (WIDTH - _LEFT - _RIGHT) / end
    stuck = [one for one in ends if one["state"] != "ended"]
    told = f"CTA {values['cta']}: {values['end']} warp instructions, {len(stuck)} of {len(ends)} warps did not end"
    parts = [label(12, 20, title), label(12, 36, told, "bad" if stuck else "small"), *_legend()]
    for one in ends:
        y = _y(one["warp"])
        parts.append(label(_LEFT - 8, y + 12, f"warp {one['warp']}", anchor="end"))
        parts.append(line("line", _LEFT, y + _PITCH, WIDTH - _RIGHT, y + _PITCH, 0.5))
    parts += _waits(values, scale, end)
    parts += _runs(values, scale)
    parts += _operations(values, scale, end)
    parts += _arrivals(values, scale)
    bottom = _TOP + len(ends) * _PITCH + 8.0
    for number, one in enumerate(stuck):
        where = f", {one['source']}" if one["source"] else ""
        state = str(one["state"]).replace(f" at PTX line {one['ptx_line']}", "")
        words = f"warp {one['warp']} stands at PTX line {one['ptx_line']}{where}: {state}"
        parts.append(label(12, bottom + 14 + number * 15, words[:150], "bad"))
    bottom += 15 * len(stuck)
    axis = f"0 to {end} warp instructions of the CTA"
    if values["dropped"]:
        axis += f"; {values['dropped']} later events are not shown"
    parts.append(label(_LEFT, bottom + 14, axis, "small"))
    description = told + "".join(f"; warp {one['warp']}: {one['state']}" for one in stuck)
    return picture(name, title, description, bottom + 24, parts)


def _y(warp: int) -> float:
    return _TOP + warp * _PITCH


def _legend() -> Iterator[str]:
    x = 12.0
    for kind, words in (
        ("ink", "runs"),
        ("wait", "waits"),
        ("fill", "copy in flight"),
        ("second", "product in flight"),
        ("inf_sign", "commit in flight"),
        ("value", "waits for ever"),
    ):
        style = ' style="fill: var(--ink)"' if kind == "ink" else ""
        yield f'<rect class="{kind}"{style} x="{x:.0f}" y="44" width="10" height="10"/>'
        yield label(x + 14, 53, words)
        x += 30 + 6.5 * len(words)


def _runs(values: Mapping[str, Any], scale: float) -> Iterator[str]:
    """One path a warp; pieces closer than half a pixel run together."""
    pieces: dict[int, list[list[float]]] = {}
    for warp, first, last in values["runs"]:
        mine = pieces.setdefault(warp, [])
        start, stop = first * scale, last * scale
        if mine and start - mine[-1][1] < 0.5:
            mine[-1][1] = stop
        else:
            mine.append([start, stop])
    for warp, spans in pieces.items():
        y = _y(warp) + 3
        path = "".join(
            f"M{_LEFT + a:.1f} {y:.0f}h{max(b - a, 0.4):.1f}v8h{-max(b - a, 0.4):.1f}z" for a, b in spans
        )
        yield f'<path d="{path}" style="fill: var(--ink)"/>'


def _waits(values: Mapping[str, Any], scale: float, end: int) -> Iterator[str]:
    waits = values["waits"]
    least = 0.0 if len(waits) <= _MOST_MARKS else 1.0
    for warp, start, stop, what, ptx_line, source in waits:
        until = end if stop is None else stop
        width = (until - start) * scale
        if width < least:
            continue
        where = f" at PTX line {ptx_line}" + (f", {source}" if source else "")
        words = f"warp {warp} waits{' for ever' if stop is None else ''} for {what}{where}"
        yield rect("value" if stop is None else "wait", _LEFT + start * scale, _y(warp) + 3, width, 8, words)


def _operations(values: Mapping[str, Any], scale: float, end: int) -> Iterator[str]:
    """A thin bar below the lane of the warp that issued it."""
    operations = values["operations"]
    least = 0.0 if len(operations) <= _MOST_MARKS else 0.8
    for kind, warp, issued, completed, ptx_line in operations:
        until = end if completed is None else completed
        width = max((until - issued) * scale, 0.8)
        if width < least:
            continue
        state = "never completed" if completed is None else f"completed at {completed}"
        words = f"{kind} of warp {warp}, PTX line {ptx_line}: issued at {issued}, {state}"
        top, height = (17, 2) if kind == "commit" else (13, 4)
        yield rect(
            _OPERATIONS.get(kind, "wait"), _LEFT + issued * scale, _y(warp) + top, width, height, words
        )


def _arrivals(values: Mapping[str, Any], scale: float) -> Iterator[str]:
    marks: dict[int, list[str]] = {}
    for warp, when, _ in values["arrivals"][:_MOST_MARKS]:
        marks.setdefault(warp, []).append(f"M{_LEFT + when * scale:.1f} {_y(warp) + 1:.0f}v10")
    for warp, ticks in marks.items():
        words = f"arrivals of warp {warp} at barriers: {len(ticks)}"
        yield f'<path class="edge" stroke-width="0.7" d="{"".join(ticks)}"><title>{words}</title></path>'
