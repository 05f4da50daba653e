"""Campaigns: a block follows from seed and number alone, results merge in any order, coverpoints are counted."""

from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import replace

import pytest

from mqa_ref.errors import InputError, Unsupported
from mqa_ref.flow import FLOWS
from mqa_ref.fuzz.block import replay_block, run_block
from mqa_ref.fuzz.campaign import BLOCK, BlockResult, Campaign, Found, blocks_of, check_campaign, merge
from mqa_ref.fuzz.description import Description, expand
from mqa_ref.fuzz.model import NAME
from mqa_ref.fuzz.shapes import HEADS, option_faults, palette
from mqa_ref.fuzz.workers import Inline, Pool, Task
from mqa_ref.kernel.deepgemm.shape import Shape as Served

MODEL = Campaign(kernel=NAME, seed=5)


def drawn(campaign: Campaign, index: int) -> list[Description]:
    found: list[Description] = []
    replay_block(campaign, index, found.append)
    return found


def test_a_block_is_the_same_again() -> None:
    first = drawn(MODEL, 0)
    assert first == drawn(MODEL, 0)
    assert len(set(first)) >= BLOCK - 2
    assert first != drawn(replace(MODEL, seed=6), 0)
    assert first != drawn(MODEL, 1)


def test_a_steered_block_is_the_same_for_every_kernel() -> None:
    """What is steered is the bound ratio, and that of the reference, so that no kernel changes what is drawn."""
    seed = next(n for n in range(100) if all(s.heads * s.next_n <= 32 for s in palette(n, 3)))
    campaign = replace(MODEL, seed=seed)
    fine, broken = (run_block(replace(campaign, bug=bug), 3, size=12) for bug in ("", "peer-16"))
    assert broken.failures
    assert not fine.failures
    assert fine.examples == broken.examples


PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
import constants_of_somebody
from mqa_ref.fuzz.block import replay_block
from mqa_ref.fuzz.campaign import Campaign
replay_block(Campaign(kernel="reference", seed=5), 0, lambda one: print(one))
"""


def test_a_block_is_the_same_in_another_process(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With ``CI`` set, and with a module loaded whose constants Hypothesis would like to draw."""
    folder = tmp_path_factory.mktemp("user")
    values = ", ".join(str(number) for number in range(2, 60))
    (folder / "constants_of_somebody.py").write_text(f"numbers = [{values}]\n")
    monkeypatch.setenv("CI", "true")
    program = PROGRAM.format(folder=str(folder))
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.splitlines() == [str(one) for one in drawn(MODEL, 0)]


def test_one_and_two_workers_run_the_same() -> None:
    tasks = [Task(index, 5) for index in range(3)]
    inline, pool = Inline(MODEL), Pool(MODEL, 2)
    try:
        alone, together = list(inline.run(tasks)), list(pool.run(tasks))
    finally:
        inline.close()
        pool.close()
    one, two = (merge(r for r in results if isinstance(r, BlockResult)) for results in (alone, together))
    assert one == two
    assert (one.examples, one.blocks) == (15, 3)


def test_a_worker_that_is_killed_loses_no_block() -> None:
    pool = Pool(MODEL, 1)
    try:
        answers = pool.run([Task(0, 4), Task(1, 4), Task(2, 4)])
        first = next(answers)
        import os
        import signal

        for pid in pool.processes():
            os.kill(pid, signal.SIGKILL)
        rest = list(answers)
    finally:
        pool.close()
    results = [one for one in (first, *rest) if isinstance(one, BlockResult)]
    assert sorted(one.block for one in results) == [0, 1, 2]
    assert merge(results).examples == 12
    assert merge(results).failures == ()


def test_merging_does_not_depend_on_the_order() -> None:
    results = [
        BlockResult(
            n,
            (f"0:{n:012x}",),
            coverage={"length.0": n},
            failures=(Found(f"bits:{'value' if n % 2 else 'nan'}", "x", n, n % 3),),
        )
        for n in range(9)
    ]
    shuffled = list(results)
    random.Random(1).shuffle(shuffled)
    assert merge(results) == merge(shuffled)
    totals = merge(shuffled)
    assert [(one.name, one.block) for one in totals.failures] == [("bits:nan", 0), ("bits:value", 1)]
    assert totals.counts == {"bits:nan": 5, "bits:value": 4}
    assert totals.coverage == {"length.0": 36}
    with pytest.raises(ValueError, match="more than once"):
        merge([*results, results[4]])


@pytest.mark.parametrize(("examples", "shards"), [(100, 3), (16, 4), (5, 1)])
def test_shards_are_a_partition(examples: int, shards: int) -> None:
    parts = [blocks_of(examples, (number + 1, shards)) for number in range(shards)]
    together = sorted(one for part in parts for one in part)
    assert together == blocks_of(examples)
    assert sum(size for _, size in together) == examples


def test_palettes_reach_every_shape() -> None:
    shapes = [shape for block in range(400) for shape in palette(9, block)]
    assert {shape.flow for shape in shapes} == set(FLOWS)
    assert {(shape.heads, shape.next_n) for shape in shapes} == set(HEADS)
    assert {shape.page for shape in shapes} == {32, 64, 128}
    assert {1, 2, 132, 148, 256} <= {shape.num_sms for shape in shapes}
    assert all(not option_faults(dict(shape.options), shape.heads) for shape in shapes)
    assert all(not shape.options for block in range(50) for shape in palette(9, block, options=False))
    assert palette(9, 3) == palette(9, 3)


def test_a_shape_serves_four_blocks_and_values_take_turns() -> None:
    """What two processes compile of 32 blocks: 18 shapes, of which nine in a row have all flows, six all numbers of few
    CTAs, three all pages."""
    blocks = [palette(4, block) for block in range(32)]
    assert [len({shape for block in blocks[turn::2] for shape in block}) for turn in (0, 1)] == [9, 9]
    assert all(set(blocks[n]) == set(blocks[n + 2]) for n in (0, 1, 4, 5))
    assert all(set(blocks[n]) & set(blocks[n + 2]) for n in range(30))
    shapes = {shape for block in blocks for shape in block}
    assert {shape.flow for shape in shapes} == set(FLOWS)
    assert {shape.page for shape in shapes} == {32, 64, 128}
    assert {shape.num_sms for shape in shapes} > {1, 2, 3, 4, 5, 8}
    assert max(shape.num_sms for shape in shapes) >= 132


@pytest.mark.parametrize("count", range(1, 10))
def test_steered_blocks_see_every_flow(count: int) -> None:
    """Every fourth block is steered, and blocks take turns in two rows of shapes."""
    flows = FLOWS[:count]
    for first in range(4):
        seen = {shape.flow for block in range(first, 80, 4) for shape in palette(9, block, flows)}
        assert seen == set(flows)


def test_a_kernel_is_drawn_what_it_serves() -> None:
    """DeepGEMM's two kernels refuse every other shape before a launch, and every schedule but their own."""
    campaign = check_campaign(kernel="deepgemm@sm_100a", seed=3)
    for block in (0, 1):
        for one in drawn(campaign, block):
            Served.of(expand(one), one.flow, "sm_100a")
    assert not {"stale_schedule", "schedule"} & set(campaign.checks)
    assert check_campaign(kernel="deepgemm", flow="fp16-fp16-fp16").flows == ("fp16-fp16-fp16",)


def test_every_fault_of_a_request_at_once() -> None:
    with pytest.raises(InputError) as caught:
        check_campaign(kernel="no such", flow="fp8", seed=-1, checks=["nothing"], bug="none")
    assert {fault.argument for fault in caught.value.faults} == {"kernel", "flow", "seed", "check", "bug"}
    with pytest.raises(Unsupported):
        check_campaign(flow="fp16-fp32-fp32")


def test_a_fault_in_the_builtin_source_is_put_into_no_other_kernel() -> None:
    with pytest.raises(InputError) as caught:
        check_campaign(kernel="json:JSONDecoder", bug="peer-04")
    assert [fault.argument for fault in caught.value.faults] == ["bug"]
    assert check_campaign(kernel="json:JSONDecoder", bug="peer-16").bug == "peer-16"


def test_a_foreign_kernel_gets_no_options() -> None:
    told = check_campaign(kernel="json:JSONDecoder")
    assert not told.options
    assert "options" not in told.checks
    assert "options" in check_campaign().checks
