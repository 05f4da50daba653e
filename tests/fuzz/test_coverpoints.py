"""Coverpoints are met by launches made for them, and by no launch that is not one."""

from __future__ import annotations

from typing import Any

import pytest

from mqa_ref.errors import InputError
from mqa_ref.fuzz.block import replay_block
from mqa_ref.fuzz.campaign import Campaign, check_campaign
from mqa_ref.fuzz.coverpoints import COVERPOINTS, check_ids, hits, reachable
from mqa_ref.fuzz.description import Description, Override
from mqa_ref.fuzz.runner import coverpoints_of
from mqa_ref.fuzz.session import subject_of
from mqa_ref.fuzz.shapes import Shape


def met(**fields: Any) -> set[str]:
    shape = Shape(**{name: fields.pop(name) for name in Shape.__dataclass_fields__ if name in fields})
    return set(hits(subject_of(Description(shape=shape, **fields))))


def test_the_smallest_launch() -> None:
    """One token, page 64, a table of one entry, two CTAs of which the second has no work."""
    told = met()
    assert {"length.1", "batch.1", "table.width-1", "table.tight", "schedule.idle-cta", "page.64"} <= told
    assert {"flow.fp32-fp32-fp32", "order.eager", "option.default", "next_n.1", "heads.64"} <= told
    lengths = {name for name in told if name.startswith("length.")}
    assert lengths == {"length.1", "length.second-tile-missing"}
    assert not {name for name in told if name.startswith(("query.", "key.", "idle."))} - {"idle.nan-key"}


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("length.all-zero", {"lengths": (0, 0)}),
        ("length.zero-first", {"lengths": (0, 5)}),
        ("length.zero-inside", {"lengths": (5, 0, 5)}),
        ("length.zero-last", {"lengths": (5, 0)}),
        ("length.below-next_n", {"lengths": (1,), "heads": 16, "next_n": 5}),
        ("length.before-page", {"lengths": (31,), "page": 32}),
        ("length.after-page", {"lengths": (65,)}),
        ("length.at-tile", {"lengths": (384,)}),
        ("length.after-split", {"lengths": (513,)}),
        ("length.table-window-end", {"lengths": (2048,), "page": 32, "heads": 16}),
        ("length.table-window-passed", {"lengths": (2049,), "page": 32, "heads": 16}),
        ("batch.32", {"lengths": (0,) * 32}),
        ("table.descending", {"lengths": (200,), "order": "descending"}),
        ("table.page-twice-in-a-row", {"lengths": (640,), "order": "repeated"}),
        ("table.shared-prefix", {"lengths": (256, 256), "order": "shared_prefix"}),
        ("table.idle-past-the-pool", {"lengths": (1,) * 3, "rest": "garbage"}),
        ("schedule.reversed", {"lengths": (768,), "form": "reversed"}),
        ("schedule.foreign", {"lengths": (768,), "cuts": (0,)}),
        ("schedule.idle-first-cta", {"lengths": (768,), "cuts": (0,)}),
        ("schedule.all-work-in-one-cta", {"lengths": (768,), "cuts": (3,)}),
        ("schedule.one-cta", {"num_sms": 1}),
        ("schedule.zero-row-in-range", {"lengths": (256, 0, 256), "num_sms": 1}),
        ("schedule.row-of-two-ctas", {"lengths": (512,)}),
        ("key.nan", {"overrides": (Override("key", "nan"),)}),
        ("query.nan", {"overrides": (Override("query", "-nan"),)}),
        ("scale.inf", {"overrides": (Override("scale", "inf"),)}),
        ("weight.max", {"overrides": (Override("weight", "max"),)}),
        ("weight.half-overflow", {"overrides": (Override("weight", "half inf"),)}),
        ("idle.nan-scale", {"poison": True}),
        ("columns.more-than-longest", {"columns": 256}),
        ("option.enable_pdl", {"options": (("enable_pdl", True),)}),
    ],
)
def test_a_launch_made_for_it(name: str, fields: dict[str, Any]) -> None:
    assert name in met(**fields)
    assert name not in met(lengths=(100,), data="counting", columns=0)


def test_a_nan_in_an_unused_place_is_not_one_in_a_used_place() -> None:
    told = met(lengths=(1,), poison=True)
    assert "idle.nan-key" in told
    assert not {"key.nan", "scale.nan"} & told


def test_unknown_ids_are_refused() -> None:
    check_ids(COVERPOINTS)
    with pytest.raises(InputError, match=r"length\.2"):
        check_ids(["length.2"])


def test_only_what_can_be_met_is_asked_for() -> None:
    few = reachable(["fp32-fp32-fp32"], ["eager"], options=False)
    assert [name for name in few if name.startswith(("flow.", "order.", "option."))] == [
        *("flow.fp32-fp32-fp32", "order.eager", "option.default")
    ]


def test_a_kernel_of_few_shapes_is_asked_for_few() -> None:
    campaign = check_campaign(kernel="deepgemm")
    told = coverpoints_of(campaign)
    parts = ("page.", "heads.", "next_n.", "schedule.f", "schedule.r")
    assert [name for name in told if name.startswith(parts)] == [
        *("schedule.row-of-two-ctas", "page.64", "next_n.1", "next_n.2", "heads.32", "heads.64")
    ]
    assert set(coverpoints_of(check_campaign())) == set(COVERPOINTS)


def unmet(seed: int, blocks: int) -> set[str]:
    """Coverpoints are judged on what is drawn, so nothing need be launched."""
    seen: set[str] = set()
    for index in range(blocks):
        replay_block(Campaign(seed=seed), index, lambda one: seen.update(hits(subject_of(one))))
    return set(COVERPOINTS) - seen


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_minute_meets_all_of_them(seed: int) -> None:
    """512 examples, for which a minute of two cores has time."""
    assert unmet(seed, 32) == set()


@pytest.mark.slow
def test_a_long_campaign_meets_all_of_them() -> None:
    """960 examples."""
    assert unmet(3, 60) == set()
