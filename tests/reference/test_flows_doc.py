"""docs/flows.md, its table row by row: the document and the code cannot part."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mqa_ref.flow import Flow
from mqa_ref.reference import Generation, exact_logits, reference_logits, scalar_exact_logit, scalar_logit

DOCUMENT = Path(__file__).parents[2] / "docs" / "flows.md"
HEADS, DIM = 8, 64
OUTPUTS = ("fp32", "fp16", "bf16")
COLUMNS: dict[str, tuple[str, tuple[Generation, ...]]] = {
    "fp32-fp32 folded": ("fp32-fp32", ("folded",)),
    "fp32-fp32 max": ("fp32-fp32", ("max",)),
    "fp32-fp32 max_nan": ("fp32-fp32", ("max_nan",)),
    "fp32-fp16": ("fp32-fp16", ("folded", "max", "max_nan")),
    "fp16-fp16": ("fp16-fp16", ("folded", "max", "max_nan")),
}
# What the table must hold at least: op.md, "Dtype flows", and the field's bugs. Cases by the code that makes them.
NEEDED = {
    ("38, 38", "7f", "1", "1"),  # a NaN key
    ("38", "38", "1", "0x7fc00000"),  # a NaN scale
    ("38", "38", "1", "0x7f800000"),  # an infinite scale
    ("7e", "7e", "1", "1"),  # 448 * 448
    ("fe", "7e", "1", "1"),  # -448 * 448: -inf in fp16
    ("38", "38", "1", "0x38000000"),  # a scale below 6.1e-5
    ("38", "38", "1", "0x33000000"),  # a scale of 2**-25
    ("38", "38", "0x7f7fffff", "0.5"),  # the folded half overflows
    ("b8", "38", "1", "0x80000000"),  # -0
}


def _rows() -> list[dict[str, str]]:
    """The rows of the table whose first column is "case", by column name, without the code marks."""
    rows, names = [], list[str]()
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        if line.startswith("| case |"):
            names = cells
        elif not line.startswith("|"):
            names = []
        elif names and not set(line) <= set("|-"):
            rows.append(dict(zip(names, cells, strict=True)))
    return rows


ROWS = _rows()


def _codes(text: str) -> NDArray[np.uint8]:
    row = np.zeros(DIM, np.uint8)
    for item in text.split():
        code, _, place = item.partition("@")
        row[int(place or 0)] = int(code, 16)
    return row


def _number(text: str) -> np.float32:
    text = text.strip()
    if not text.startswith("0x"):
        return np.float32(text)
    bits: np.float32 = np.array([int(text, 16)], np.uint32).view(np.float32)[0]
    return bits


@pytest.fixture
def problem(request: pytest.FixtureRequest, make: Any) -> Any:
    row = request.param
    q, weights = np.zeros((1, 1, HEADS, DIM), np.uint8), np.ones((1, HEADS), np.float32)
    for head, text in enumerate(row["queries"].split(",")):
        q[0, 0, head] = _codes(text)
    for head, text in enumerate(row["weights"].split(",")):
        weights[0, head] = _number(text)
    scale = np.array([_number(row["scale"])], np.float32)
    return make(q, [_codes(row["key"])[None]], weights=weights, scales=[scale])


def _words(cell: str) -> list[int]:
    digits = [len(word) for word in cell.split()]
    assert digits == [8, 4, 4]
    return [int(word, 16) for word in cell.split()]


def test_the_table_holds_what_it_must() -> None:
    inputs = [tuple(row[name] for name in ("queries", "key", "weights", "scale")) for row in ROWS]
    assert set(inputs) >= NEEDED
    assert len({row["case"] for row in ROWS}) == len(ROWS) >= 49
    assert set(ROWS[0]) == {"case", "queries", "key", "weights", "scale", *COLUMNS, "true"}


@pytest.mark.parametrize(
    ("problem", "row"), [(row, row) for row in ROWS], ids=[row["case"] for row in ROWS], indirect=["problem"]
)
def test_row(problem: Any, row: dict[str, str]) -> None:
    for column, (stages, generations) in COLUMNS.items():
        for out, expected in zip(OUTPUTS, _words(row[column]), strict=True):
            flow = Flow.parse(f"{stages}-{out}")
            for machine, generation in product(("sm90", "sm100"), generations):
                bits, mask = reference_logits(problem, flow, machine, generation=generation)
                assert mask.tolist() == [[True]]
                assert [hex(bits[0, 0])] == [hex(expected)], (str(flow), machine, generation)
                assert scalar_logit(problem, flow, machine, 0, 0, generation) == expected
    for out, expected in zip(OUTPUTS, _words(row["true"]), strict=True):
        assert exact_logits(problem, out)[0].tolist() == [[expected]]
        assert scalar_exact_logit(problem, 0, 0, out) == expected
