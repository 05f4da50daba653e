"""Pictures: what they must say, that an SVG is well formed and alone, and that its bars are the tiles of the walk."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from mqa_ref.errors import InputError
from mqa_ref.schedule import build, render_svg, render_text

SVG = "{http://www.w3.org/2000/svg}"


def _rects(svg: str) -> list[ET.Element]:
    return [rect for rect in ET.fromstring(svg).iter(f"{SVG}rect") if rect.get("class")]


def _titles(svg: str, kind: str) -> list[str]:
    return [rect.findtext(f"{SVG}title", "") for rect in _rects(svg) if rect.get("class") == kind]


def test_text_of_the_command_line_example() -> None:
    text = render_text(build([1, 200, 1337], 148), [1, 200, 1337])
    lines = [line.split() for line in text.splitlines()]
    assert ["splits", "8", "of", "256", "tokens,", "in", "3", "rows"] in lines
    assert ["CTAs", "148:", "8", "with", "work,", "140", "without"] in lines
    assert ["form", "forward,", "0", "to", "1", "splits", "per", "CTA"] in lines
    assert ["7", "(2,", "5)", "(3,", "0)", "1", "row", "2", "split", "5"] in lines
    assert ["8-147", "(3,", "0)", "(3,", "0)", "0", "zero", "work"] in lines
    assert lines[-1] == ["no", "fault"]


def test_text_marks_rows_without_tokens() -> None:
    lengths = [128, 0, 2560, 300, 300, 300, 0]
    text = render_text(build(lengths, 2), lengths)
    assert "length 0         2 rows: 1 6" in text
    assert "9       row 0 split 0; row 1 (length 0, executed); row 2 splits 0-7" in text
    assert "8       row 2 splits 8-9; rows 3-5 whole; row 6 (length 0, executed)" in text


def test_text_of_a_broken_schedule() -> None:
    text = render_text(build([600], 3), [200])
    assert "NEVER ENDS; row 0 split 0" in text
    assert "row 0 split 1 (past the row's end)" in text
    assert "FAULT stale: entry 1 is (0, 1), but row 0 has 1 split" in text
    assert "FAULT no_termination: CTA 0 starts at (0, 0) and never meets its end (0, 1)" in text
    assert "form  " not in text
    assert "no fault" not in text


def test_text_stays_short_for_many_pieces() -> None:
    lengths = [256, 0] * 500
    (line,) = [line for line in render_text(build(lengths, 1), lengths).splitlines() if line.startswith("0 ")]
    assert line.endswith("row 0 split 0; row 1 (length 0, executed); row 2 split 0; and 997 more pieces")


def test_svg_is_alone_accessible_and_follows_the_colour_scheme() -> None:
    svg = render_svg(build([1, 0, 1337], 8), [1, 0, 1337])
    root = ET.fromstring(svg)
    assert root.get("role") == "img"
    labels = {element.get("id"): element.text for element in root if element.get("id")}
    assert set((root.get("aria-labelledby") or "").split()) == set(labels)
    assert labels["schedule-desc"] == "7 splits of 3 rows on 8 CTAs, 1 of them without work; no fault"
    assert "@media (prefers-color-scheme: dark)" in svg
    assert re.findall(r"href|url\(|@import|<script|<image|https?:(?!//www\.w3\.org/2000/svg\")", svg) == []
    used = set(re.findall(r"var\(--(\w+)\)", svg))
    light, dark = svg.split("@media")
    for scheme in (light, dark):
        assert used == set(re.findall(r"--(\w+): #", scheme))


def test_svg_bars_are_the_tiles() -> None:
    """[128, 0, 700] on 3 CTAs: 1 + 3 splits, 2 + 1 + 1; row 0 has one tile, row 2 has 6 of 6 (700 > 5 * 128)."""
    svg = render_svg(build([128, 0, 700], 3), [128, 0, 700])
    bars = _titles(svg, "odd") + _titles(svg, "even")
    assert bars == [
        "CTA 0: row 0, splits 0-0, tokens 0-127",
        "CTA 0: row 2, splits 0-0, tokens 0-255",
        "CTA 1: row 2, splits 1-1, tokens 256-511",
        "CTA 2: row 2, splits 2-2, tokens 512-699",
    ]
    assert _titles(svg, "tail") == ["CTA 0: row 0, a tile past the length"]
    widths = [float(rect.get("width", "")) for rect in _rects(svg)]
    split = 920 / 4  # 1000 wide, margins of 64 and 16
    assert widths == pytest.approx([split / 2, split / 2, split, split, split])
    assert len(ET.fromstring(svg).findall(f"{SVG}line[@class='row empty']")) == 1


def test_svg_marks_idle_ctas_and_faults() -> None:
    svg = render_svg(build([256], 4), [256])
    assert _titles(svg, "idle") == ["CTA 1: zero work", "CTA 2: zero work", "CTA 3: zero work"]
    broken = render_svg(build([257], 2), [256])
    assert "never ends" in broken
    assert "2 faults, the first: entry 1 is (0, 1)" in broken


def test_svg_of_a_large_batch_stays_small() -> None:
    lengths = np.random.default_rng(1).integers(1, 9000, 16384).astype(np.int32)
    svg = render_svg(build(lengths, 148), lengths)
    assert len(_rects(svg)) == 148
    assert len(svg) < 100_000


@pytest.mark.parametrize("render", [render_text, render_svg])
def test_bad_input(render: object) -> None:
    assert callable(render)
    with pytest.raises(InputError, match="schedule"):
        render([[0, 0]], [1])
    with pytest.raises(InputError, match="context_lens"):
        render([[0, 0], [1, 0]], [])
