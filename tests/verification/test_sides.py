"""What a kernel declares, and what the caller says of it instead: generation, options, the tail columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mqa_ref.cli.selectors import options_of
from mqa_ref.errors import InputError
from mqa_ref.flow import Flow
from mqa_ref.kernel.targets import CONTRACT_OPTIONS, FLASHINFER_OPTIONS, Declared, Target, resolve
from mqa_ref.launch import Launch
from mqa_ref.problem import Problem
from mqa_ref.reference import reference_logits
from mqa_ref.reference.tail import tail_logits
from mqa_ref.report import Report
from mqa_ref.verification.derived import unlike_declared
from mqa_ref.verification.full import full
from mqa_ref.verification.probes import probes
from mqa_ref.verification.verify import verify

FP32 = Flow.parse("fp32-fp32-fp32")
(OVERFLOW,) = (one for one in probes() if one.name == "ab-overflow")
Told = list[dict[str, Any]]


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Report, Told]]:
    """Kernels "folded" and "max_nan" that do what they declare; the options they were given are kept."""
    told: Told = []

    def launch(target: Target, problem: Problem, flow: Flow, **given: Any) -> Launch:
        told.append({"kernel": target.name, **given["options"]})
        generation: Any = target.name
        bits, valid = reference_logits(problem, flow, generation=generation)
        logits = np.full((problem.rows, problem.row_stride), 0xFDFDFDFD, np.uint32)
        written = np.zeros(logits.shape, np.bool_)
        logits[:, : bits.shape[1]][valid], written[:, : bits.shape[1]] = bits[valid], valid
        return Launch(logits, written, (), 1, 1, 0.1)

    def resolved(name: str) -> Target:
        options = CONTRACT_OPTIONS if name == "folded" else FLASHINFER_OPTIONS
        return Target(name, lambda: object, declared=Declared(name), options=options)

    monkeypatch.setattr("mqa_ref.verification.runner.launch", launch)
    monkeypatch.setattr("mqa_ref.verification.request.resolve", resolved)

    def run(kernel: str, **rest: Any) -> tuple[Report, Told]:
        return verify(kernel, problems=[OVERFLOW], orders=["eager"], **rest), told

    return run


@pytest.mark.parametrize("kernel", ["folded", "max_nan"])
def test_the_reference_follows_what_the_kernel_declares(kernel: str, kernels: Any) -> None:
    report, _ = kernels(kernel)
    assert (report.status, report.generation) == ("pass", kernel)
    assert f"--generation {kernel}" in report.repro(report.case_list[0])


def test_the_caller_is_followed_where_he_says_otherwise(kernels: Any) -> None:
    report, _ = kernels("max_nan", generation="folded")
    assert (report.status, report.mismatched, report.generation) == ("fail", 1, "folded")


def test_the_baseline_is_held_against_what_it_declares_itself(kernels: Any) -> None:
    report, _ = kernels("max_nan", baseline="folded")
    told = report.as_dict()["baseline"]
    assert (report.mismatched, told["mismatched"], told["differing"]) == (0, 0, 1)


def test_options_are_the_kernels_own_and_told(kernels: Any) -> None:
    report, told = kernels(
        "max_nan", baseline="folded", options={"w_cache_regs": 24, "early_tmem_copy": True}
    )
    assert told == [
        {"kernel": "max_nan", "w_cache_regs": 24, "early_tmem_copy": True},
        {"kernel": "folded"},
    ]
    assert "--option w_cache_regs=24 --option early_tmem_copy=True" in report.repro(report.case_list[0])
    assert report.as_dict()["options"] == {"w_cache_regs": 24, "early_tmem_copy": True}


def test_an_option_that_the_kernel_has_not_is_refused(kernels: Any) -> None:
    with pytest.raises(InputError, match="w_cache_regs") as caught:
        kernels("folded", options={"w_cache_regs": 24, "enable_pdl": False})
    assert [fault.argument for fault in caught.value.faults] == ["option w_cache_regs"]


def test_words_of_the_command_line() -> None:
    words = ["a=1", "b=true", "c=FALSE", "d=none", "e=sm_103a", "f=-3", "g=1=2"]
    told = options_of(words)
    assert told == {"a": 1, "b": True, "c": False, "d": None, "e": "sm_103a", "f": -3, "g": "1=2"}
    assert [type(value) for value in told.values()] == [int, bool, bool, type(None), str, int, str]
    assert options_of([f"x={told['b']}", f"y={told['d']}"]) == {"x": True, "y": None}
    with pytest.raises(InputError) as caught:
        options_of(["a", "=1", "b=", "c-d=1", "e=1", "e=2"])
    assert len(caught.value.faults) == 5


def test_the_level_full_crosses_the_options_of_the_kernel() -> None:
    """Every two values of two options of FlashInfer's meet, and none of the others' is there."""
    cases = full("fp32-fp32-fp32", FLASHINFER_OPTIONS)
    names = dict(FLASHINFER_OPTIONS)
    assert all(case.options is not None and set(case.options) == set(names) for case in cases)
    pairs = {
        (first, case.options[first], second, case.options[second])
        for case in cases
        if case.options is not None
        for first in names
        for second in names
    }
    for first, values in FLASHINFER_OPTIONS:
        for second, others in FLASHINFER_OPTIONS:
            wanted = {(first, a, second, b) for a in values for b in others if first != second}
            assert wanted <= pairs
    too_wide = [
        case.problem.next_n * case.problem.heads
        for case in cases
        if case.options is not None
        and case.options["arch"] == "sm_107a"
        and case.options["max_umma_pipeline"]
    ]
    assert too_wide
    assert not any(128 < rows <= 144 for rows in too_wide)


def test_tail_columns_that_are_not_as_declared_are_a_note() -> None:
    problem, declared = OVERFLOW.problem, resolve("builtin").declared
    bits, known = tail_logits(problem, FP32, "zeros")
    launch = Launch(bits.copy(), np.ones(bits.shape, np.bool_), (), 1, 1, 0.1)
    assert known[0].tolist() == [False] + [True] * 255
    assert unlike_declared(declared, "sm100", problem, FP32, launch) == ()
    launch.logits[0, 0] = 7  # a valid column is not its business
    assert unlike_declared(declared, "sm100", problem, FP32, launch) == ()
    launch.logits[0, 200], launch.written[0, 90] = 7, False
    (finding,) = unlike_declared(declared, "sm100", problem, FP32, launch)
    assert (finding.kind, finding.severity) == ("tail_unlike_declared", "info")
    assert finding.message.startswith("2 of 255 columns")
    assert "row 0 column 90" in finding.message
    assert unlike_declared(Declared(), "sm100", problem, FP32, launch) == ()
