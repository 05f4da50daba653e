"""DeepGEMM's SM90 kernel as an H200 ran it, against the reference's model of its order and against the emulator."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from mqa_ref.errors import NotAvailable
from mqa_ref.golden import silicon
from mqa_ref.golden.silicon.deepgemm import (
    ARCH,
    FLOW,
    FUZZED,
    KINDS,
    digest_of,
    fuzzed,
    given_digest,
    recorded,
    stored_logits,
    valid_logits,
)
from mqa_ref.kernel import resolve
from mqa_ref.kernel.deepgemm.description import describe_launch
from mqa_ref.kernel.deepgemm.target import check_installed
from mqa_ref.kernel.raw_launch import poisoned
from mqa_ref.problem import Problem
from mqa_ref.reference import SumOrder, reference_logits
from mqa_ref.reference.tail import tail_logits
from mqa_ref.verification.launch import launch

LOGITS = 501_454
ORDER: SumOrder = "deepgemm_sm90"
QUICK = (0, 38, 54, 57, 59, 82, 89, 92, 99, 113, 117, 120, 127, 131, 133, 136, 143)
"""Problems that CI runs in the emulator: every shape and kind of data, one CTA and 132, rows without tokens."""


def absent() -> str:
    try:
        check_installed()
    except NotAvailable as error:
        return str(error)
    return ""


needs_compiler = pytest.mark.skipif(bool(absent()), reason=absent())


def modelled(problem: Problem) -> NDArray[np.uint32]:
    bits, valid = reference_logits(problem, FLOW, "sm90", generation="max", order=ORDER)
    return np.asarray(bits[valid], np.uint32)


def test_the_problems_are_those_that_were_given_to_the_gpu() -> None:
    recording = silicon.load("deepgemm-sm90")
    given = [given_digest(describe_launch(case.problem, FLOW, ARCH)) for case in recorded()]
    assert [bytes(row) for row in recording.tensors["given-sha256"]] == given
    assert recording.facts["gpu"] == "NVIDIA H200"
    shapes = {(case.problem.heads, case.problem.next_n) for case in recorded()}
    assert shapes == {(32, 1), (32, 2), (64, 1), (64, 2)}
    assert len(given) >= 200


def test_the_reference_gives_the_bits_of_the_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    problems = recorded()
    stored = stored_logits(silicon.load("deepgemm-sm90").tensors, problems)
    differing = {
        case.name: int(np.count_nonzero(modelled(case.problem) != logits))
        for case, logits in zip(problems, stored, strict=True)
    }
    with capsys.disabled():
        sys.stdout.write(
            f"\nreference against H200: {sum(map(len, stored))} logits, {sum(differing.values())} differ\n"
        )
    assert not {name: count for name, count in differing.items() if count}
    assert sum(map(len, stored)) == LOGITS


def test_the_whole_output_is_predicted() -> None:
    """Where no row is empty everything that the kernel stores is known: valid logits, the rest of the last page, page 0
    behind it; and all else holds what was there before the launch."""
    hashes = silicon.load("deepgemm-sm90").tensors["output-sha256"]
    predicted = 0
    for number, case in enumerate(recorded()[:160]):
        problem = case.problem
        if not problem.context_lens.all():
            continue
        bits, valid = reference_logits(problem, FLOW, "sm90", generation="max", order=ORDER)
        behind, known = tail_logits(problem, FLOW, "page_0", "sm90", generation="max", order=ORDER)
        output = poisoned(problem.rows * problem.row_stride * 4).view(np.uint32).reshape(behind.shape)
        output[known] = behind[known]
        output[:, : valid.shape[1]][valid] = bits[valid]
        assert digest_of(output) == bytes(hashes[number]), number
        predicted += 1
    assert predicted > 100


def test_another_order_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    """What the seed's order, the half-folded ReLU or another tensor core would give is not what the GPU gave."""
    problems = recorded()[:40]
    stored = stored_logits(silicon.load("deepgemm-sm90").tensors, recorded())[:40]
    for machine, generation, order in (
        ("sm90", "max", "four_chains"),
        ("sm90", "max", "deepgemm_sm100"),
        ("sm100", "max", ORDER),
        ("sm90", "folded", ORDER),
    ):
        wrong = 0
        for case, logits in zip(problems, stored, strict=True):
            bits, valid = reference_logits(case.problem, FLOW, machine, generation=generation, order=order)  # type: ignore[arg-type]
            wrong += int(np.count_nonzero(bits[valid] != logits))
        assert wrong > 0, (machine, generation, order)


def emulated(numbers: Sequence[int]) -> tuple[int, int]:
    """Logits compared, and those that differ; the whole output, columns past the lengths included, must have the
    recorded hash."""
    target = resolve("deepgemm")
    recording = silicon.load("deepgemm-sm90")
    problems = recorded()
    stored = stored_logits(recording.tensors, problems)
    compared = differing = 0
    for number in numbers:
        problem = target.scheduled(problems[number].problem)
        done = launch(target, problem, FLOW, machine="sm90")
        output = done.logits.reshape(-1).view(np.uint8)
        logits = valid_logits(problem, output)
        compared += len(logits)
        differing += int(np.count_nonzero(logits != stored[number]))
        assert digest_of(output) == bytes(recording.tensors["output-sha256"][number]), number
        kinds = {finding.kind for finding in done.findings if finding.severity == "error"}
        # Without any token every CTA reads a length past the last one.
        assert kinds == ({"global_out_of_bounds"} if not problem.context_lens.any() else set()), number
    return compared, differing


@needs_compiler
def test_the_emulator_gives_the_bits_of_the_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    compared, differing = emulated(QUICK)
    with capsys.disabled():
        sys.stdout.write(
            f"\nemulator against H200: {len(QUICK)} problems, {compared} logits, {differing} differ\n"
        )
    assert (differing, {KINDS[number % len(KINDS)] for number in QUICK}) == (0, set(KINDS))


@needs_compiler
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_all_of_them_in_the_emulator(capsys: pytest.CaptureFixture[str]) -> None:
    compared, differing = emulated(range(len(recorded())))
    with capsys.disabled():
        sys.stdout.write(f"\nemulator against H200: all problems, {compared} logits, {differing} differ\n")
    assert (compared, differing) == (LOGITS, 0)


def drawn(numbers: Sequence[int]) -> int:
    recording = silicon.load("deepgemm-sm90-drawn")
    assert len(recording.tensors["logits-sha256"]) == FUZZED
    total = 0
    for number in numbers:
        problem = fuzzed(number).problem
        assert given_digest(describe_launch(problem, FLOW, ARCH)) == bytes(
            recording.tensors["given-sha256"][number]
        )
        logits = modelled(problem)
        assert digest_of(logits) == bytes(recording.tensors["logits-sha256"][number]), number
        total += len(logits)
    return total


def test_drawn_problems() -> None:
    assert drawn(range(5, FUZZED, 64)) > 50_000


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_all_drawn_problems(capsys: pytest.CaptureFixture[str]) -> None:
    total = drawn(range(FUZZED))
    with capsys.disabled():
        sys.stdout.write(f"\nreference against H200: {FUZZED} drawn problems, {total} logits, 0 differ\n")
