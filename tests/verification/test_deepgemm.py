"""DeepGEMM's two kernels in the emulator: right bits in their own orders, the findings of the ledger, and the bound."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mqa_ref.cli.app import run as run_command
from mqa_ref.errors import InputError, NotAvailable
from mqa_ref.kernel.deepgemm.target import check_installed
from mqa_ref.report import Report
from mqa_ref.verification.given import given
from mqa_ref.verification.ledger import read_ledger
from mqa_ref.verification.problems import NamedProblem, Recipe, make
from mqa_ref.verification.request import by_name
from mqa_ref.verification.verify import verify

LEDGER = Path(__file__).resolve().parents[2] / "docs" / "known-deepgemm.toml"
SPREAD = Recipe(
    "spread", "every kind of row in one launch", (300, 0, 129, 513, 1), 5, data="wide", rest="garbage"
)


def absent() -> str:
    try:
        check_installed()
    except NotAvailable as error:
        return str(error)
    return ""


pytestmark = pytest.mark.skipif(bool(absent()), reason=absent())


def spread(next_n: int = 1, heads: int = 64) -> NamedProblem:
    return make(Recipe(**{**SPREAD.__dict__, "next_n": next_n, "heads": heads}))


def kinds(report: Report) -> set[str]:
    return {
        finding.kind for case in report.case_list for finding in case.findings if finding.severity == "error"
    }


@pytest.mark.parametrize(
    ("arch", "next_n", "heads"),
    [
        ("sm_90a", 1, 64),
        ("sm_100a", 2, 32),
        pytest.param("sm_90a", 2, 32, marks=pytest.mark.slow),
        pytest.param("sm_100a", 1, 64, marks=pytest.mark.slow),
    ],
)
def test_every_logit_is_right_in_every_interleaving(arch: str, next_n: int, heads: int) -> None:
    report = verify(
        f"deepgemm@{arch}",
        problems=[spread(next_n, heads)],
        orders=("eager", "lazy", "random", "systematic"),
        known=read_ledger(LEDGER),
        seed=3,
    )
    assert (report.status, report.mismatched, report.findings) == ("pass", 0, 0), report.to_json()
    assert report.logits == 4 * int(spread(next_n, heads).problem.valid_columns().sum())
    assert kinds(report) == (set() if arch == "sm_90a" else {"tmem_misuse"})
    assert report.environment["sgl-deep-gemm"] == "0.1.5"


def test_the_named_problems() -> None:
    """Ties, overflow, NaN, special scales; what the kernel has no shape for is no failure and no pass."""
    names = ("fma-ties", "nan-query", "special-scales", "overflow", "small-pages")
    report = verify("deepgemm", problems=by_name(names), orders=("eager",))
    assert (report.status, report.machine, report.generation, report.expect) == (
        "pass",
        "sm90",
        "max",
        "bits",
    )
    assert [case.status for case in report.case_list] == ["unsupported", "pass", "pass", "pass", "pass"]
    assert "page = 32 (served: 64)" in report.case_list[0].message


@pytest.mark.parametrize(
    "wrong",
    [{"machine": "sm100"}, {"generation": "folded"}, {"machine": "exact"}],
    ids=lambda told: str(told),
)
def test_another_model_is_not_what_the_kernel_computes(wrong: dict[str, str]) -> None:
    """The folded half shows where the doubled products overflow."""
    names = ("overflow",) if "generation" in wrong else ("edges-of-a-split",)
    report = verify("deepgemm", problems=by_name(names), orders=("eager",), **wrong)  # type: ignore[arg-type]
    assert report.status == "fail"
    assert report.mismatched > 0


def test_the_bound_holds_and_can_fail() -> None:
    """Held to the bound for any order both kernels pass; with one scale halved they do not."""
    for kernel in ("deepgemm@sm_90a", "deepgemm@sm_100a", "builtin"):
        report = verify(
            kernel, problems=[spread()], orders=("eager",), expect="bound", known=read_ledger(LEDGER)
        )
        assert (report.mismatched, report.expect) == (0, "bound")
        assert "--expect bound" in report.repro(report.case_list[0])

    def halved(ptx: str) -> str:
        changed = re.sub(r"0f3F000000", "0f3F400000", ptx)
        assert changed != ptx
        return changed

    report = verify(
        "deepgemm@sm_100a", problems=[spread()], orders=("eager",), expect="bound", edit_ptx=halved
    )
    assert report.status == "fail"
    assert report.mismatched > 100


def test_without_a_barrier_it_is_no_right_kernel() -> None:
    """The wait for the tile's product removed: the sanitizer or the bits must tell."""

    def edit(ptx: str) -> str:
        changed, count = re.subn(r"wgmma\.wait_group\.sync\.aligned\s+0;", "", ptx)
        assert count
        return changed

    report = verify("deepgemm", problems=[spread()], orders=("eager",), edit_ptx=edit)
    assert report.status == "fail"


def test_no_token_at_all() -> None:
    """Every CTA of the SM90 kernel reads the length of the row past the last one (peers.md, bug 1)."""
    report = verify(
        "deepgemm", problems=[given((0, 0), num_sms=2, page=64, heads=64, next_n=1)], orders=("eager",)
    )
    assert kinds(report) == {"global_out_of_bounds"}


def test_what_was_asked_is_checked() -> None:
    with pytest.raises(InputError) as caught:
        verify("deepgemm@sm_80", expect="equal", machine="sm80")
    assert {fault.argument for fault in caught.value.faults} == {"kernel", "expect", "machine"}


def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["verify", "--kernel", "deepgemm", "--arch", "sm_90a", "--case", "one-token", "--order", "eager"]
    assert run_command(line) == 0
    assert "deepgemm@sm_90a" in capsys.readouterr().out
    assert run_command(["verify", "--arch", "sm_90a"]) == 2
    assert "only with the kernel deepgemm" in capsys.readouterr().err


def test_an_absent_package_is_told_with_exit_code_4(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def gone() -> None:
        raise NotAvailable("the package sgl-deep-gemm is not installed")

    monkeypatch.setattr("mqa_ref.kernel.deepgemm.target.check_installed", gone)
    assert run_command(["verify", "--kernel", "deepgemm"]) == 4
    assert "sgl-deep-gemm" in capsys.readouterr().err
