from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from mqa_ref.compare import Comparison, Mismatch, Place
from mqa_ref.findings import Finding
from mqa_ref.report import CaseResult, Report

PLACE = Place(2, 128, 1, 0, 1, 0, 2, 7, 0, 3, 1)
RACE = Finding(
    "race_shared", "error", "two warps touch one byte", 3, 5, 120, "st.shared.b32 [%r1], %r2;", count=4
)
NOTE = Finding("contractible_mul_add", "info", "ptxas may fuse these")
SHAPE = {"lengths": [300, 129], "page": 64, "heads": 32, "next_n": 1, "num_sms": 4}


def comparison(wrong: int = 0) -> Comparison:
    first = Mismatch("value", PLACE, "0x3f800000", "0x3f800001", 1.0, 1.0000001192092896, 1)
    lost = Mismatch("nan", PLACE, "0x7fffffff", "0x00000000", math.nan, 0.0, None)
    counts: dict[Any, int] = {"unwritten": 0, "nan": 0, "inf": 0, "zero_sign": 0, "value": wrong}
    return Comparison(
        compared=429,
        counts=counts,
        first=(first, lost) if wrong else (),
        max_ulp=1 if wrong else None,
        max_abs=2.0**-23 if wrong else None,
        where=("every compared element of tile 1 of row 2 and no other",) if wrong else (),
        suspects=("no ReLU",) if wrong else (),
        tail_written=339,
        stray_written=0,
        calc_diff=math.nan,
        cosine=1.0,
    )


def make_case(name: str, status: Any, **given: Any) -> CaseResult:
    return CaseResult(name, f"{name}-id", f"why {name}", SHAPE, "eager", status, 0.5, ctas=4, seed=3, **given)


def make_report(*cases: CaseResult) -> Report:
    return Report(
        kernel="builtin",
        backend="emulator",
        flow="fp32-fp32-fp32",
        machine="sm100",
        generation="folded",
        level="quick",
        seed=3,
        seconds=1.25,
        case_list=cases,
        environment={"python": "3.11.7", "numpy": "2.4.6"},
    )


GOOD = make_case("good", "pass", comparison=comparison())
WRONG = make_case("wrong", "fail", comparison=comparison(128))
HAZARD = make_case("hazard", "fail", comparison=comparison(), findings=(RACE, NOTE))
CRASHED = make_case("crashed", "error", error="EmulatorError", message="no such opcode")
REFUSED = make_case("refused", "unsupported", error="Unsupported", message="not this page")
ALL = {"good": GOOD, "wrong": WRONG, "hazard": HAZARD, "crashed": CRASHED, "refused": REFUSED}


@pytest.fixture
def report_of() -> Callable[..., Report]:
    """A report over the named ones of five made-up cases."""
    return lambda *names: make_report(*(ALL[name] for name in names))


@pytest.fixture
def report_of_cases() -> Callable[..., Report]:
    return make_report
