"""Two kernels on the same problems, over a backend that answers from the reference and spoils one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mqa_ref.errors import KernelTimeout
from mqa_ref.findings import Finding
from mqa_ref.flow import Flow
from mqa_ref.kernel.targets import Target
from mqa_ref.launch import Launch
from mqa_ref.problem import Problem
from mqa_ref.reference import reference_logits
from mqa_ref.report import Report
from mqa_ref.verification.problems import quick
from mqa_ref.verification.verify import verify

Spoil = Callable[[np.ndarray, np.ndarray], None]


def nothing(logits: np.ndarray, written: np.ndarray) -> None:
    pass


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Callable[[Spoil, Spoil], Report]:
    """Runs nan-keys (556 logits, 80 of them NaN) with one fault planted in each kernel."""

    def run(own: Spoil, other: Spoil) -> Report:
        spoil = {"own": own, "other": other}

        def launch(target: Any, problem: Problem, flow: Flow, **options: Any) -> Launch:
            assert (options["edit_ptx"] is None) == (target.name == "other")
            bits, valid = reference_logits(problem, flow, "sm100")
            logits = np.full((problem.rows, problem.row_stride), 0xFDFDFDFD, np.uint32)
            written = np.zeros(logits.shape, np.bool_)
            logits[:, : bits.shape[1]][valid] = bits[valid]
            written[:, : bits.shape[1]] = valid
            spoil[target.name](logits, written)
            finding = Finding("hang", "error", "stuck")
            return Launch(logits, written, (finding,) if target.name == "other" else (), 2, 10, 0.1)

        def resolve(name: str) -> Target:
            return Target(name, lambda: object)

        monkeypatch.setattr("mqa_ref.verification.runner.launch", launch)
        monkeypatch.setattr("mqa_ref.verification.request.resolve", resolve)
        problems = [one for one in quick() if one.name == "nan-keys"]
        return verify(
            "own", problems=problems, baseline="other", orders=["eager", "lazy"], edit_ptx=lambda ptx: ptx
        )

    return run


def test_two_right_kernels_are_bit_identical(both: Callable[[Spoil, Spoil], Report]) -> None:
    def other_nan(logits: np.ndarray, written: np.ndarray) -> None:
        logits[logits == 0x7FFFFFFF] = 0xFFC00001

    report = both(nothing, other_nan)
    assert (report.status, report.exit_code, report.baseline) == ("pass", 0, "other")
    told = report.as_dict()["baseline"]
    assert (told["verdict"], told["logits"], told["differing"]) == ("bit-identical", 2 * 556, 0)
    assert (told["findings"], told["cases_status"]) == (2, {"fail": 2})


def test_a_wrong_kernel_differs_from_a_right_baseline(both: Callable[[Spoil, Spoil], Report]) -> None:
    def flip(logits: np.ndarray, written: np.ndarray) -> None:
        logits[1, 130] ^= 1 << 20

    report = both(flip, nothing)
    assert (report.status, report.mismatched) == ("fail", 2)
    told = report.as_dict()["baseline"]
    assert (told["verdict"], told["differing"], told["max_ulp"], told["mismatched"]) == (
        "different",
        2,
        1 << 20,
        0,
    )
    case = report.case_list[0].baseline
    assert case is not None
    assert case.difference is not None
    assert (case.difference.first[0].place.row, case.difference.first[0].place.column) == (1, 130)


def test_another_rounding_is_within_tolerance(both: Callable[[Spoil, Spoil], Report]) -> None:
    """One last place is far inside the bound for any order; it still fails the kernel that claims this order."""

    def nudge(logits: np.ndarray, written: np.ndarray) -> None:
        logits[1, 130] ^= 1

    report = both(nudge, nothing)
    assert report.status == "fail"
    told = report.as_dict()["baseline"]
    assert (told["verdict"], told["differing"], told["max_ulp"]) == ("within tolerance", 2, 1)
    assert told["cases"] == {"bit-identical": 0, "within tolerance": 2, "different": 0, "not compared": 0}


def test_a_wrong_baseline_fails_nothing(both: Callable[[Spoil, Spoil], Report]) -> None:
    def lose(logits: np.ndarray, written: np.ndarray) -> None:
        logits[0, 5], written[0, 5] = 0xFDFDFDFD, False

    report = both(nothing, lose)
    assert (report.status, report.mismatched) == ("pass", 0)
    told = report.as_dict()["baseline"]
    assert (told["verdict"], told["differing"], told["mismatched"]) == ("different", 2, 2)


def test_the_same_wrong_bits_are_bit_identical_and_fail(both: Callable[[Spoil, Spoil], Report]) -> None:
    def flip(logits: np.ndarray, written: np.ndarray) -> None:
        logits[1, 130] ^= 4

    report = both(flip, flip)
    assert report.status == "fail"
    assert report.as_dict()["baseline"]["verdict"] == "bit-identical"


def test_a_baseline_that_breaks(both: Callable[[Spoil, Spoil], Report]) -> None:
    def never(logits: np.ndarray, written: np.ndarray) -> None:
        raise KernelTimeout("stopped after 1 seconds")

    report = both(nothing, never)
    assert report.status == "pass"
    case = report.case_list[0].baseline
    assert case is not None
    assert (case.verdict, case.status, case.error) == ("not compared", "error", "KernelTimeout")
    assert report.as_dict()["baseline"]["verdict"] == "not compared"
