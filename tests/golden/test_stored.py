"""The files in the package: their format, their size, and their content against judges other than the reference."""

from __future__ import annotations

from collections import Counter

import ml_dtypes
import numpy as np
import pytest

from mqa_ref.flow import FLOWS
from mqa_ref.golden import CASES, DATA, LogitsCase, ScheduleCase, by_name, load
from mqa_ref.golden.record import problem_of, schedule_lengths, stored_places
from mqa_ref.golden.store import HISTORY, unused
from mqa_ref.golden.views import VIEWS
from mqa_ref.reference import scalar_logit

MOST_BYTES = 4_000_000
DTYPES = {np.dtype(name) for name in ("<u2", "<u4", "<i4")}
LOGITS = [case for case in CASES if isinstance(case, LogitsCase)]
SCALAR = ("context-63", "value-special-scales", "value-nan-keys", "shape-heads-12-next-2", "shape-dim-32")


def test_every_case_has_its_file_and_no_file_is_left() -> None:
    assert unused([case.name for case in CASES]) == ()
    assert (DATA / HISTORY).is_file()
    for case in CASES:
        assert load(case.name).kind == case.kind


def test_all_together_are_small() -> None:
    assert sum(path.stat().st_size for path in DATA.iterdir()) < MOST_BYTES


def test_bits_are_unsigned_and_valid_columns_only() -> None:
    for case in LOGITS:
        entry = load(case.name)
        rows, _ = stored_places(problem_of(case), case.tiles)
        assert {array.dtype for array in entry.tensors.values()} <= DTYPES
        assert set(entry.views) == {view.name for view in VIEWS}
        for view in VIEWS:
            array = entry.tensors[entry.views[view.name]]
            assert array.dtype == view.flow.bits_dtype
            assert array.shape == rows.shape
        if not case.tiles:
            assert rows.size == problem_of(case).valid_columns().sum()


def test_views_are_all_flows_on_all_machines_and_both_generations_of_fp32() -> None:
    assert {str(view.flow) for view in VIEWS} == set(FLOWS)
    assert {view.machine for view in VIEWS} == {"sm90", "sm100", "exact"}
    counts = Counter(view.flow.epi for view in VIEWS)
    assert counts == {"fp32": 3 * 3 * 2, "fp16": 6 * 3}


def test_machines_and_generations_do_differ_somewhere() -> None:
    entries = [load(case.name) for case in LOGITS]
    for flow in FLOWS:
        tail = ".folded" if "-fp32-" in flow else ""
        for one, other in (("sm90", "sm100"), ("sm100", "exact")):
            names = (f"{flow}.{one}{tail}", f"{flow}.{other}{tail}")
            assert any(entry.views[names[0]] != entry.views[names[1]] for entry in entries), names
        if tail:
            names = (f"{flow}.sm100.folded", f"{flow}.sm100.max")
            assert any(entry.views[names[0]] != entry.views[names[1]] for entry in entries), names


@pytest.mark.parametrize("out", ["fp32", "fp16", "bf16"])
def test_every_code_gives_its_magnitude(out: str) -> None:
    """The judge is ml_dtypes, which knows the format by itself."""
    values = np.abs(np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float32))
    kinds = {"fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16}
    entry = load("value-every-code")
    for view in VIEWS:
        if view.flow.out == out:
            found = entry.tensors[entry.views[view.name]].view(kinds[out]).astype(np.float32)
            propagates = view.flow.epi == "fp32" and view.generation == "folded"
            wanted = values if propagates else np.nan_to_num(values, nan=0.0)
            np.testing.assert_array_equal(found, wanted.astype(kinds[out]).astype(np.float32))


@pytest.mark.parametrize("name", SCALAR)
def test_sampled_bits_against_the_scalar_twin(name: str) -> None:
    (case,) = by_name([name])
    assert isinstance(case, LogitsCase)
    problem, entry = problem_of(case), load(name)
    rows, columns = stored_places(problem, case.tiles)
    for number, view in enumerate(VIEWS):
        at = number * 7919 % rows.size
        place = (int(rows[at]), int(columns[at]))
        slow = scalar_logit(problem, view.flow, view.machine, *place, view.generation)
        assert int(entry.tensors[entry.views[view.name]][at]) == slow, (view.name, place)


def splits(length: int) -> int:
    return -(-length // 256)


def test_partitions_execute_every_split_exactly_once() -> None:
    """Counted from the lengths alone."""
    counted = 0
    for case in CASES:
        if isinstance(case, LogitsCase):
            lengths, ctas = problem_of(case).context_lens.tolist(), case.ctas
        elif isinstance(case, ScheduleCase) and not case.hashed:
            array = schedule_lengths(case)
            lengths, ctas = (array if array.ndim == 1 else array[:, -1]).tolist(), case.ctas
        else:
            continue
        entry = load(case.name)
        for form in ("forward", "reversed"):
            for count in ctas:
                runs = entry.tensors[f"partition.{form}.{count}"]
                done = [(row, split) for _, row, first, stop in runs.tolist() for split in range(first, stop)]
                assert done == [(row, i) for row, length in enumerate(lengths) for i in range(splits(length))]
                work = Counter(dict.fromkeys(range(count), 0))
                for cta, _, first, stop in runs.tolist():
                    work[cta] += stop - first
                shares = [work[cta] for cta in range(count)]
                assert shares == sorted(shares, reverse=form == "forward")
                assert max(shares) - min(shares) <= 1
                counted += 1
    assert counted > 150


def test_a_row_without_tokens_inside_a_range_is_executed_by_the_walk() -> None:
    entry = load("peer-08-zero-row-in-range")
    assert entry.tensors["partition.forward.2"].tolist() == [[0, 0, 0, 1], [0, 2, 0, 1], [1, 2, 1, 2]]
    assert entry.tensors["walk.forward.2"].tolist() == [
        [0, 0, 0, 1],
        [0, 1, 0, 1],
        [0, 2, 0, 1],
        [1, 2, 1, 2],
    ]


def test_the_stale_schedule_of_report_7() -> None:
    assert load("peer-07-stale-schedule").faults == (
        "no_termination cta 0 row 0 split 0 count 1",
        "stale cta 1 row 0 split 1 count 1",
    )
