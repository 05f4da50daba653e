"""The frame of every picture: size, title and description for those who cannot see it, colours, escaped text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

WIDTH = 1000
COLOURS = ("value", "unwritten", "nan", "inf", "inf_sign", "zero_sign")
"""Classes of difference, each with a colour of its own in both schemes."""

STYLE = """
.mqa { --ground: #ffffff; --ink: #1f2328; --faint: #59636e; --line: #d1d9e0; --fill: #0969da; --second: #1a7f5a;
  --wait: #eac54f; --value: #cf222e; --unwritten: #8250df; --nan: #bf3989; --inf: #bc4c00; --inf_sign: #9a6700;
  --zero_sign: #0969da; --right: #e6f2ea; font: 12px system-ui, sans-serif; max-width: 100%; height: auto; }
@media (prefers-color-scheme: dark) {
  .mqa { --ground: #0d1117; --ink: #e6edf3; --faint: #9198a1; --line: #3d444d; --fill: #539bf5; --second: #46b98a;
    --wait: #9e7a1f; --value: #f85149; --unwritten: #a371f7; --nan: #db61a2; --inf: #f0883e; --inf_sign: #d29922;
    --zero_sign: #58a6ff; --right: #12261b; } }
.mqa text { fill: var(--ink); } .mqa .small { font-size: 10px; fill: var(--faint); } .mqa .bad { fill: var(--value); }
.mqa .ground { fill: var(--ground); } .mqa .fill { fill: var(--fill); } .mqa .second { fill: var(--second); }
.mqa .wait { fill: var(--wait); } .mqa .right { fill: var(--right); } .mqa .line { stroke: var(--line); fill: none; }
.mqa .edge { stroke: var(--ink); fill: none; }
"""
STYLE += "".join(f".mqa .{name} {{ fill: var(--{name}); }} " for name in COLOURS) + "\n"


def picture(name: str, title: str, description: str, height: float, parts: Iterable[str]) -> str:
    """An SVG file of ``WIDTH`` by ``height``. ``name`` makes its ids unique in a page; all texts are escaped here, but
    for ``parts``."""
    name = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="mqa" viewBox="0 0 {WIDTH} {height:.0f}" role="img"'
            f' aria-labelledby="{name}-title {name}-desc">',
            f'<title id="{name}-title">{text_of(title)}</title>',
            f'<desc id="{name}-desc">{text_of(description)}</desc>',
            f"<style>{STYLE}</style>",
            f'<rect class="ground" width="{WIDTH}" height="{height:.0f}"/>',
            *parts,
            "</svg>",
            "",
        ]
    )


def text_of(text: str) -> str:
    """Text for XML: escaped, without the characters that XML 1.0 forbids."""
    return escape(
        re.sub(
            r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]", "\N{REPLACEMENT CHARACTER}", text
        )
    )


def label(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    """A line of text."""
    words = f' class="{kind}"' if kind else ""
    words += f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text{words} x="{x:.1f}" y="{y:.1f}">{text_of(text)}</text>'


def rect(kind: str, x: float, y: float, width: float, height: float, title: str = "") -> str:
    """A filled rectangle, with a title that shows when it is pointed at."""
    size = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.3):.1f}" height="{height:.1f}"'
    inner = f"<title>{text_of(title)}</title>" if title else ""
    return f'<rect class="{kind}" {size}>{inner}</rect>' if inner else f'<rect class="{kind}" {size}/>'


def line(kind: str, x1: float, y1: float, x2: float, y2: float, width: float = 1, dashes: str = "") -> str:
    """A straight line."""
    more = f' stroke-dasharray="{dashes}"' if dashes else ""
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line class="{kind}" {ends} stroke-width="{width:g}"{more}/>'
