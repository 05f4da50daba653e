"""The main job over a backend that answers from the reference, with one fault planted: does the run tell
it?"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from mqa_ref.compare import KINDS
from mqa_ref.errors import EmulatorError, InputError, NotAvailable, OracleError, Unsupported
from mqa_ref.findings import Finding
from mqa_ref.problem import Problem
from mqa_ref.verification.problems import NamedProblem, quick
from mqa_ref.verification.verify import verify

Install = Callable[[Any], list[dict[str, Any]]]
run = partial(verify, orders=("eager",))
NAMES = ("edges-of-a-tile", "zero-in-the-middle", "nan-keys")


def chosen() -> list[NamedProblem]:
    return [one for one in quick() if one.name in NAMES]


def clean(problem: Problem, logits: np.ndarray, written: np.ndarray) -> tuple[Finding, ...]:
    return ()


def only(name: str, spoil: Callable[[np.ndarray, np.ndarray], None]) -> Any:
    """A plant that spoils the launch of one problem."""
    guilty = next(one.problem for one in quick() if one.name == name)

    def plant(problem: Problem, logits: np.ndarray, written: np.ndarray) -> tuple[Finding, ...]:
        if problem.case_id == guilty.case_id:
            spoil(logits, written)
        return ()

    return plant


def test_a_right_kernel_passes(fake_backend: Install) -> None:
    calls = fake_backend(clean)
    report = run(problems=chosen(), seed=7)
    assert (report.status, report.exit_code) == ("pass", 0)
    assert (report.cases, report.logits, report.mismatched, report.findings) == (3, 320 + 429 + 556, 0, 0)
    assert report.ctas == 4 + 2 + 2
    assert [call["problem"].case_id for call in calls] == [one.problem.case_id for one in chosen()]
    assert {(call["order"], call["seed"], call["machine"]) for call in calls} == {("eager", 7, "sm100")}


def test_one_flipped_bit_fails_the_run_and_is_placed(fake_backend: Install) -> None:
    def spoil(logits: np.ndarray, written: np.ndarray) -> None:
        logits[2, 128] ^= 1

    fake_backend(only("zero-in-the-middle", spoil))
    report = run(problems=chosen())
    assert (report.status, report.exit_code, report.mismatched) == ("fail", 1, 1)
    assert [case.status for case in report.case_list] == ["pass", "fail", "pass"]
    comparison = report.case_list[1].comparison
    assert comparison is not None
    assert comparison.where[0].startswith(
        "one element: row 2 column 128 (b 2, t 0, tile 1, split 0, page slot 1"
    )


def test_an_unwritten_element_fails(fake_backend: Install) -> None:
    def spoil(logits: np.ndarray, written: np.ndarray) -> None:
        written[0, 3] = False

    fake_backend(only("nan-keys", spoil))
    report = run(problems=chosen())
    comparison = report.case_list[2].comparison
    assert report.exit_code == 1
    assert comparison is not None
    assert comparison.counts["unwritten"] == 1


def test_a_nan_that_became_a_number_fails(fake_backend: Install) -> None:
    def spoil(logits: np.ndarray, written: np.ndarray) -> None:
        nan = (logits & 0x7FFFFFFF) > 0x7F800000
        logits[nan & written] = 0

    fake_backend(only("nan-keys", spoil))
    report = run(problems=chosen())
    comparison = report.case_list[2].comparison
    assert report.exit_code == 1
    assert comparison is not None
    assert comparison.counts == {name: 80 * (name == "nan") for name in KINDS}


@pytest.mark.parametrize(("severity", "code"), [("error", 1), ("info", 0)])
def test_findings_of_severity_error_fail(fake_backend: Install, severity: Any, code: int) -> None:
    fake_backend(lambda *_: (Finding("race_shared", severity, "two warps", cta=1),))
    report = run(problems=chosen())
    assert report.exit_code == code
    assert report.findings == (3 if code else 0)
    assert len(json.loads(report.to_json())["finding_list"]) == 3


def test_columns_of_a_row_without_tokens(fake_backend: Install) -> None:
    def spoil(logits: np.ndarray, written: np.ndarray) -> None:
        written[1, :256] = True

    fake_backend(only("zero-in-the-middle", spoil))
    assert run(problems=chosen()).findings == 1
    assert run("someone.py:Kernel", problems=chosen()).exit_code == 0


@pytest.mark.parametrize("error", [EmulatorError("no such opcode"), ZeroDivisionError("division by zero")])
def test_a_crash_ends_its_case_and_not_the_run(fake_backend: Install, error: Exception) -> None:
    def spoil(logits: np.ndarray, written: np.ndarray) -> None:
        raise error

    fake_backend(only("zero-in-the-middle", spoil))
    report = run(problems=chosen())
    assert [case.status for case in report.case_list] == ["pass", "error", "pass"]
    assert (report.status, report.exit_code) == ("fail", 1)
    assert report.case_list[1].error == type(error).__name__
    assert str(error) in report.case_list[1].message


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (Unsupported("no"), "unsupported", 5),
        (EmulatorError("no"), "error", 5),
        (NotAvailable("no"), "error", 4),
        (OracleError("no"), "error", 3),
    ],
)
def test_a_run_in_which_nothing_ran_is_an_error(
    fake_backend: Install, error: Exception, status: str, code: int
) -> None:
    def plant(problem: Problem, logits: np.ndarray, written: np.ndarray) -> tuple[Finding, ...]:
        raise error

    fake_backend(plant)
    report = run(problems=chosen())
    assert {case.status for case in report.case_list} == {status}
    assert (report.status, report.exit_code, report.logits) == ("error", code, 0)


def test_one_unsupported_case_does_not_decide(fake_backend: Install) -> None:
    def spoil(logits: np.ndarray, written: np.ndarray) -> None:
        raise Unsupported("no")

    fake_backend(only("nan-keys", spoil))
    assert run(problems=chosen()).exit_code == 0


def test_no_problems_at_all(fake_backend: Install) -> None:
    fake_backend(clean)
    report = run(problems=[])
    assert (report.status, report.exit_code, report.cases) == ("error", 5, 0)


def test_a_flow_that_the_reference_lacks_runs_nothing(
    fake_backend: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = fake_backend(clean)

    def refuse(*_: object, **__: object) -> None:
        raise Unsupported("not this flow")

    monkeypatch.setattr("mqa_ref.verification.case.reference_logits", refuse)
    report = run(problems=chosen())
    assert (report.exit_code, calls) == (5, [])
    assert {case.status for case in report.case_list} == {"unsupported"}


def test_orders_problems_without_a_name_and_progress(fake_backend: Install) -> None:
    calls = fake_backend(clean)
    told: list[tuple[int, int, str]] = []
    problem = chosen()[0].problem
    report = verify(problems=[problem], orders=["lazy", "random"], progress=lambda *step: told.append(step))
    name = f"problem-{problem.case_id}"
    assert [(case.name, case.order) for case in report.case_list] == [(name, "lazy"), (name, "random")]
    assert told == [(0, 2, name), (1, 2, name), (2, 2, "")]
    assert [call["order"] for call in calls] == ["lazy", "random"]


BAD: dict[str, tuple[dict[str, Any], Sequence[str]]] = {
    "all": (
        {
            "flow": "fp8",
            "on": "tpu",
            "level": "slow",
            "machine": "sm80",
            "generation": "new",
            "orders": (),
            "seed": -1,
            "problems": [3],
            "edit_ptx": "text",
        },
        ["flow", "on", "level", "machine", "generation", "orders", "problems[0]", "edit_ptx", "seed"],
    ),
    "orders as text": ({"orders": "eager"}, ["orders"]),
    "order twice": ({"orders": ["lazy", "lazy"]}, ["orders"]),
    "problems as text": ({"problems": "quick"}, ["problems"]),
    "boolean seed": ({"seed": True}, ["seed"]),
}


@pytest.mark.parametrize("name", BAD)
def test_every_bad_argument_is_named(fake_backend: Install, name: str) -> None:
    calls = fake_backend(clean)
    arguments, expected = BAD[name]
    with pytest.raises(InputError) as caught:
        verify(**arguments)
    assert [fault.argument for fault in caught.value.faults] == expected
    assert calls == []


def test_the_machine_is_the_references(fake_backend: Install) -> None:
    """The stand-in for the backend follows the machine it is given, as the emulator does."""
    calls = fake_backend(clean)
    report = run(problems=chosen()[:1], machine="exact")
    assert calls[0]["machine"] == "sm100"
    assert (report.machine, report.exit_code) == ("exact", 1)
    comparison = report.case_list[0].comparison
    assert comparison is not None
    assert "the tensor core sm100" in comparison.suspects


def test_an_unknown_kernel_is_named_with_the_other_faults() -> None:
    with pytest.raises(InputError) as caught:
        run("no-such-kernel", "tpu")
    assert [fault.argument for fault in caught.value.faults] == ["kernel", "on"]
