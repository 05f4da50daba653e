"""The pictures: well-formed SVG that says in words what it shows, with every number where it belongs."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from mqa_ref.compare.classes import KINDS, code
from mqa_ref.report.evidence import Histogram, Matrix
from mqa_ref.report.pictures import (
    render_classes,
    render_counts,
    render_histogram,
    render_matrix,
    render_timeline,
)
from mqa_ref.report.pictures.matrix import cells
from mqa_ref.schedule import build, render_svg

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<b>&\"'\x1b\x00]]>"
TIMELINE: dict[str, Any] = {
    "cta": 7,
    "end": 1000,
    "runs": [[0, 0, 500], [1, 500, 600]],
    "waits": [
        [0, 500, None, "the mbarrier at shared offset 96", 254, "ring.py:71"],
        [1, 600, 700, "bar", 3, None],
    ],
    "operations": [["copy", 0, 100, 200, 5], ["product", 1, 550, None, 6], ["commit", 1, 560, 570, 7]],
    "arrivals": [[0, 50, 9], [0, 60, 9], [1, 510, 9]],
    "ends": [
        {"warp": 0, "state": "the mbarrier", "instructions": 500, "ptx_line": 254, "source": "ring.py:71"},
        {"warp": 1, "state": "ended", "instructions": 100, "ptx_line": None, "source": None},
    ],
    "dropped": 3,
}


def parsed(svg: str) -> ET.Element:
    root = ET.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    ids = [one.get("id") for one in root.iter() if one.get("id")]
    assert len(ids) == len(set(ids))
    assert set(str(root.get("aria-labelledby")).split()) == {str(name) for name in ids}
    assert not re.search(r"<script|href|url\(|@import", svg)
    return root


def words(root: ET.Element) -> str:
    return " ".join(
        "".join(one.itertext())
        for one in root.iter()
        if one.tag in (f"{SVG}text", f"{SVG}desc", f"{SVG}title")
    )


def matrix(kinds: np.ndarray, owner: list[list[int]], next_n: int = 1) -> Matrix:
    valid = np.full(len(kinds), kinds.shape[1], np.int64)
    return Matrix(kinds.astype(np.int8), valid, np.array(owner, np.int64), 64, next_n)


def test_cells_take_the_class_that_most_elements_have() -> None:
    kinds = np.full((3, 7), -1, np.int8)
    kinds[0, 0] = code("nan")
    kinds[1, 1:3] = code("value")
    kinds[2, 6] = code("inf")
    kinds[0:2, 3] = code("value"), code("nan")
    found = cells(matrix(kinds, [[0], [0], [0]]), 3, 2)
    # rows 0-1 and row 2; columns 0-2, 3-5, 6
    assert found.tolist() == [[code("value"), code("nan"), -1], [-1, -1, code("inf")]]


def test_a_map_of_one_wrong_element() -> None:
    kinds = np.full((2, 512), -1, np.int8)
    kinds[1, 300] = code("unwritten")
    root = parsed(render_matrix("a", "Map", matrix(kinds, [[3, 4], [4, 4]])))
    assert "1 wrong elements: unwritten 1" in words(root)
    (path,) = [one for one in root.iter(f"{SVG}path") if one.get("class") == "unwritten"]
    # 920 pixels for 256 cells of two columns: column 300 is cell 150; rows are 16 pixels high from 66 on.
    assert re.fullmatch(r"M603\.1 82\.0h3\.6v16\.0h-3\.6z", str(path.get("d")))
    thick = [one for one in root.iter(f"{SVG}line") if one.get("class") == "edge"]
    # CTA 3 hands over to CTA 4 in row 0 at token 256: half way.
    assert [(one.get("x1"), one.get("y1"), one.get("y2")) for one in thick] == [("524.0", "66.0", "82.0")]


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 128), (5, 130), (300, 257), (2048, 8192)])
def test_maps_of_every_size(rows: int, columns: int) -> None:
    kinds = np.full((rows, columns), -1, np.int8)
    kinds[-1, -1] = code("inf_sign")
    svg = render_matrix("m", "Map", matrix(kinds, [[0] * -(-columns // 256)] * rows))
    root = parsed(svg)
    assert len(svg) < 200_000
    assert len([one for one in root.iter(f"{SVG}path") if one.get("class") == "inf_sign"]) == 1
    assert {one.get("class") for one in root.iter(f"{SVG}path")} <= set(KINDS)


def test_bars_are_as_long_as_their_logarithms() -> None:
    root = parsed(render_counts("c", "Counts", [("all", 1023), ("few", 31), ("none", 0)]))
    bars = [float(str(one.get("width"))) for one in root.iter(f"{SVG}rect") if one.get("class") == "fill"]
    assert bars == pytest.approx([650.0, 325.0])
    assert "3 rows, 1 without a count" in words(root)
    assert [one.text for one in root.iter(f"{SVG}text") if one.get("class") == "bad"] == ["none"]


def test_an_empty_range_of_a_histogram_is_nothing_bad() -> None:
    root = parsed(render_histogram("h", Histogram("ULP", ("0", "1"), (5, 0))))
    assert not [one for one in root.iter(f"{SVG}text") if one.get("class") == "bad"]


def test_mutants() -> None:
    root = parsed(render_classes("m", "Mutants", [("order", 10, 10), ("scale", 3, 4), ("empty", 0, 0)]))
    assert "13 of 14 caught, 92.9 %" in words(root)
    missed = [one for one in root.iter(f"{SVG}rect") if one.get("class") == "value"]
    assert [float(str(one.get("width"))) for one in missed] == pytest.approx([650 / 4])
    assert "1 missed" in words(root)


def test_a_timeline() -> None:
    root = parsed(render_timeline("t", "Warps", TIMELINE))
    told = words(root)
    assert "1 of 2 warps did not end" in told
    assert "warp 0 stands at PTX line 254, ring.py:71: the mbarrier" in told
    assert "warp 0 waits for ever for the mbarrier at shared offset 96 at PTX line 254, ring.py:71" in told
    assert "product of warp 1, PTX line 6: issued at 550, never completed" in told
    assert "3 later events are not shown" in told
    ever = [
        one for one in root.iter(f"{SVG}rect") if one.get("class") == "value" and one.get("height") == "8.0"
    ]
    # From instruction 500 of 1000 to the end: the right half of 900 pixels.
    assert [(one.get("x"), one.get("width")) for one in ever] == [("534.0", "450.0")]


def test_hostile_names_stay_text() -> None:
    told = dict(TIMELINE, ends=[dict(TIMELINE["ends"][0], state=HOSTILE, source=HOSTILE)])
    for svg in (
        render_timeline("t", HOSTILE, told),
        render_counts(HOSTILE, HOSTILE, [(HOSTILE, 1)]),
        render_classes("c", HOSTILE, [(HOSTILE, 1, 2)]),
        render_matrix("m", HOSTILE, matrix(np.zeros((1, 1)), [[0]])),
    ):
        assert not [one for one in parsed(svg).iter() if one.tag == f"{SVG}b"]


def test_two_schedules_in_one_page_share_no_id() -> None:
    schedule = build([300, 1], 2)
    first, second = (parsed(render_svg(schedule, [300, 1], name)) for name in ("a", "b"))
    ids = [{one.get("id") for one in root.iter() if one.get("id")} for root in (first, second)]
    assert ids == [{"a-title", "a-desc"}, {"b-title", "b-desc"}]
