"""The metadata that a launch is given against what DeepGEMM's own metadata kernels write, run in the emulator."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from mqa_ref import emulator
from mqa_ref.errors import NotAvailable
from mqa_ref.kernel.deepgemm.description import describe_metadata
from mqa_ref.kernel.deepgemm.metadata import metadata, schedule_rows
from mqa_ref.kernel.deepgemm.package import headers
from mqa_ref.kernel.deepgemm.shape import ARCHS, Arch
from mqa_ref.kernel.deepgemm.target import check_installed
from mqa_ref.kernel.nvcc import compile_kernel
from mqa_ref.problem import Problem
from mqa_ref.schedule import build, check
from mqa_ref.verification.given import given
from mqa_ref.verification.raw import run_raw

CTAS = 32
OTHER_CTAS = 132
"""Of an H200; no multiple of the 32 threads that write the table, so that some leave the kernel while others go on."""
LENGTHS = (
    *((1,), (256,), (257,), (300, 0, 129), (0, 0, 0), (0, 257, 0, 0, 64), (20000, 1, 5000)),
    *((256,) * 9, (513,) * 31, (255, 0) * 16),
)


def absent() -> str:
    try:
        check_installed()
    except NotAvailable as error:
        return str(error)
    return ""


pytestmark = pytest.mark.skipif(bool(absent()), reason=absent())


def problem(lengths: tuple[int, ...], next_n: int, ctas: int = CTAS) -> Problem:
    return given(lengths, num_sms=ctas, page=64, heads=32, next_n=next_n).problem


@cache
def code(text: str, arch: Arch) -> emulator.Code:
    found = headers()
    kernel = compile_kernel(text, arch, (found.include,), found.identity)
    return emulator.decode(emulator.parse(kernel.ptx))


@pytest.mark.parametrize(
    ("arch", "next_n", "ctas"),
    [
        ("sm_90a", 1, CTAS),
        ("sm_90a", 2, CTAS),
        ("sm_100a", 2, CTAS),
        ("sm_90a", 1, OTHER_CTAS),
        ("sm_100a", 2, OTHER_CTAS),
    ],
)
def test_the_kernels_write_it(arch: Arch, next_n: int, ctas: int) -> None:
    """SM90's lanes read the sums that other lanes stored, and no __syncwarp lies between (docs/findings.md)."""
    found = {"lanes_not_gathered"} if arch == "sm_90a" else set()
    for lengths in LENGTHS:
        given_problem = problem(lengths, next_n, ctas)
        text, launch = describe_metadata(given_problem, arch)
        outcome, table = run_raw(code(text, arch), launch, machine="sm90", budget=200_000)
        assert table.data.view(np.int32).reshape(-1, 2).tolist() == metadata(given_problem, arch).tolist()
        assert {finding.kind for finding in outcome.findings} == found


def test_32_empty_rows_make_the_sm90_kernel_read_what_nobody_wrote() -> None:
    """The row past the last one has no prefix sum; what is read for it is not used (peers.md, bug 2)."""
    given_problem = problem((0,) * 32, 1)
    text, launch = describe_metadata(given_problem, "sm_90a")
    outcome, table = run_raw(code(text, "sm_90a"), launch, machine="sm90", budget=200_000)
    assert {finding.kind for finding in outcome.findings} == {"uninitialised_shared", "lanes_not_gathered"}
    assert table.data.view(np.int32).reshape(-1, 2).tolist() == [[32, 0]] * (CTAS + 1)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("next_n", [1, 2])
def test_it_is_a_right_schedule(arch: Arch, next_n: int) -> None:
    for lengths in LENGTHS:
        given_problem = problem(lengths, next_n)
        assert not check(schedule_rows(given_problem, arch), given_problem.context_lens)


def test_how_it_relates_to_the_published_builders() -> None:
    """SM90 has the reversed form; SM100 the forward one, but for starts that fall into a split of two tokens."""
    for lengths in LENGTHS:
        for next_n in (1, 2):
            given_problem = problem(lengths, next_n)
            reversed_form = build(given_problem.context_lens, CTAS, "reversed")
            assert metadata(given_problem, "sm_90a").tolist() == reversed_form.tolist()
        one = problem(lengths, 1)
        assert metadata(one, "sm_100a").tolist() == build(one.context_lens, CTAS, "forward").tolist()
    two = problem((513,) * 31, 2)
    assert schedule_rows(two, "sm_100a").tolist() != build(two.context_lens, CTAS, "forward").tolist()
    assert metadata(two, "sm_100a")[-1].tolist() == [62, 0]
