"""The mismatch map: rows down, columns across, wrong elements in the colour of their class, with the borders of tiles,
pages, splits and CTAs. Outputs larger than the picture are put together in cells."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mqa_ref.compare import KINDS
from mqa_ref.report.evidence import Matrix
from mqa_ref.report.pictures.svg import WIDTH, label, line, picture, rect
from mqa_ref.schedule import SPLIT_TOKENS, TILE_TOKENS

_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 66, 34
_MOST_COLUMNS, _MOST_ROWS = 256, 96
_FINEST = 5.0
"""Pixels between two borders below which they are left out."""


class _Scale:
    """Cells of the picture: ``across`` columns and ``down`` rows of the output to a cell."""

    def __init__(self, rows: int, columns: int) -> None:
        self.across, self.down = -(-columns // _MOST_COLUMNS), -(-rows // _MOST_ROWS)
        self.columns, self.rows = -(-columns // self.across), -(-rows // self.down)
        self.width = (WIDTH - _LEFT - _RIGHT) / self.columns
        self.height = min(16.0, max(4.0, 320 / self.rows))
        self.bottom = _TOP + self.rows * self.height

    def x(self, column: float) -> float:
        return _LEFT + column / self.across * self.width

    def y(self, row: float) -> float:
        return _TOP + row / self.down * self.height


def cells(matrix: Matrix, across: int, down: int) -> NDArray[np.int8]:
    """The class that most wrong elements of each cell have, -1 where none is wrong: int8 [ceil(rows / down),
    ceil(columns / across)]. The first class of ``KINDS`` wins a tie."""
    rows, columns = matrix.kinds.shape
    wide = -(-columns // across)
    found = np.full((-(-rows // down), wide), -1, np.int8)
    for cell in range(len(found)):
        row, column = np.nonzero(matrix.kinds[cell * down : (cell + 1) * down] >= 0)
        kinds = matrix.kinds[cell * down + row, column]
        counts = np.bincount(column // across * len(KINDS) + kinds, minlength=wide * len(KINDS))
        counts = counts.reshape(wide, len(KINDS))
        found[cell] = np.where(counts.any(axis=1), counts.argmax(axis=1), -1)
    return found


def render_matrix(name: str, title: str, matrix: Matrix) -> str:
    """The map of one output as an SVG file, at most 256 cells wide and 96 high."""
    rows, columns = matrix.kinds.shape
    scale = _Scale(rows, columns)
    found = cells(matrix, scale.across, scale.down)
    several = np.bincount(matrix.kinds[matrix.kinds >= 0], minlength=len(KINDS)).tolist()
    counts: dict[str, int] = dict(zip(KINDS, several, strict=True))
    wrong = sum(counts.values())
    told = ", ".join(f"{kind} {count}" for kind, count in counts.items() if count) or "none"
    cell = (
        ""
        if scale.across == scale.down == 1
        else f"; a cell is {scale.down} row{'s' * (scale.down > 1)} by {scale.across} columns"
    )
    parts = [
        label(12, 20, title),
        label(12, 36, f"{wrong} wrong elements of {rows} rows and {columns} columns{cell}", "small"),
    ]
    parts += _legend(counts)
    parts += _valid(matrix, scale)
    parts += _wrong(found, scale)
    parts += _borders(matrix, scale)
    note = f"thin: tiles of {TILE_TOKENS}; thick: splits of {SPLIT_TOKENS}; dashed: pages of {matrix.page}; "
    parts.append(
        label(_LEFT, scale.bottom + 28, note + "black: another CTA; coloured ground: valid columns", "small")
    )
    return picture(name, title, f"{wrong} wrong elements: {told}", scale.bottom + _BOTTOM, parts)


def _legend(counts: dict[str, int]) -> Iterator[str]:
    x = 12.0
    for kind, count in counts.items():
        if count:
            yield rect(kind, x, 46, 10, 10)
            yield label(x + 14, 55, f"{kind} {count}")
            x += 24 + 7.5 * len(f"{kind} {count}")


def _valid(matrix: Matrix, scale: _Scale) -> Iterator[str]:
    """The ground of the valid columns, neighbouring rows of one length together."""
    lengths = [
        int(matrix.valid[row * scale.down : (row + 1) * scale.down].max()) for row in range(scale.rows)
    ]
    first = 0
    for row in range(1, scale.rows + 1):
        if row == scale.rows or lengths[row] != lengths[first]:
            if lengths[first]:
                top = _TOP + first * scale.height
                yield rect("right", _LEFT, top, scale.x(lengths[first]) - _LEFT, (row - first) * scale.height)
            first = row


def _wrong(found: NDArray[np.int8], scale: _Scale) -> Iterator[str]:
    """One path for each class; cells side by side are one piece."""
    for number, kind in enumerate(KINDS):
        pieces = []
        for row, cells_of_row in enumerate(found == number):
            edges = np.flatnonzero(np.diff(np.concatenate(([False], cells_of_row, [False]))))
            for start, stop in edges.reshape(-1, 2).tolist():
                x, y = _LEFT + start * scale.width, _TOP + row * scale.height
                width = (stop - start) * scale.width
                pieces.append(f"M{x:.1f} {y:.1f}h{width:.1f}v{scale.height:.1f}h{-width:.1f}z")
        if pieces:
            yield f'<path class="{kind}" d="{"".join(pieces)}"/>'


def _borders(matrix: Matrix, scale: _Scale) -> Iterator[str]:
    rows, columns = matrix.kinds.shape
    for step, width, dashes in ((matrix.page, 0.5, "2 2"), (TILE_TOKENS, 0.6, ""), (SPLIT_TOKENS, 1.4, "")):
        if scale.x(step) - _LEFT >= _FINEST:
            for column in range(step, columns, step):
                yield line("line", scale.x(column), _TOP, scale.x(column), scale.bottom, width, dashes)
    pitch = max(1, round(56 / max(scale.x(TILE_TOKENS) - _LEFT, 0.01))) * TILE_TOKENS
    for column in range(0, columns, pitch):
        yield label(scale.x(column), scale.bottom + 12, str(column), "small")
    every = max(1, round(12 / scale.height)) * scale.down
    for row in range(0, rows, every):
        yield label(_LEFT - 6, scale.y(row) + 9, f"row {row}", "small", "end")
    yield from _owners(matrix, scale)
    size = f'width="{WIDTH - _LEFT - _RIGHT}" height="{scale.bottom - _TOP:.1f}"'
    yield f'<rect class="edge" x="{_LEFT}" y="{_TOP}" {size}/>'


def _owners(matrix: Matrix, scale: _Scale) -> Iterator[str]:
    """A line where the work of one CTA ends and that of another begins, as long as rows can be told apart."""
    rows = matrix.kinds.shape[0]
    if scale.down > 1:
        return
    for row in range(rows):
        owner = matrix.owner[row // matrix.next_n]
        for split in np.flatnonzero(owner[1:] != owner[:-1]).tolist():
            if owner[split] >= 0 and owner[split + 1] >= 0:
                x = scale.x((split + 1) * SPLIT_TOKENS)
                yield line("edge", x, scale.y(row), x, scale.y(row + 1), 2)
