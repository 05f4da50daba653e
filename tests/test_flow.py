"""Flow names: all that there are, and only those."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from mqa_ref.errors import InputError, Unsupported
from mqa_ref.flow import FLOWS, Flow

NAMES = {
    "fp32-fp32-fp32",
    "fp32-fp32-fp16",
    "fp32-fp32-bf16",
    "fp32-fp16-fp32",
    "fp32-fp16-fp16",
    "fp32-fp16-bf16",
    "fp16-fp16-fp32",
    "fp16-fp16-fp16",
    "fp16-fp16-bf16",
}


def test_names() -> None:
    assert set(FLOWS) == NAMES
    assert len(FLOWS) == len(NAMES)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_round_trip(name: str) -> None:
    flow = Flow.parse(name)
    assert (flow.acc, flow.epi, flow.out) == tuple(name.split("-"))
    assert str(flow) == name
    assert Flow.parse(str(flow)) == flow
    assert flow.bits_dtype == (np.uint32 if name.endswith("fp32") else np.uint16)


def test_every_combination_is_a_flow_unsupported_or_unknown() -> None:
    formats = ["fp32", "fp16", "bf16", "fp8"]
    outcome = {}
    for parts in itertools.product(formats, repeat=3):
        try:
            outcome["-".join(parts)] = str(Flow.parse("-".join(parts)))
        except (InputError, Unsupported) as error:
            outcome["-".join(parts)] = type(error).__name__
    assert {name for name, text in outcome.items() if text == name} == NAMES
    unsupported = {name for name, text in outcome.items() if text == "Unsupported"}
    assert unsupported == {"fp16-fp32-fp32", "fp16-fp32-fp16", "fp16-fp32-bf16"}


@pytest.mark.parametrize(
    "name", ["", "fp32", "fp32-fp32", "fp32-fp32-fp32-fp32", "FP32-FP32-FP32", " fp32-fp32-fp32", 7]
)
def test_unknown_names_list_the_valid_ones(name: Any) -> None:
    with pytest.raises(InputError) as caught:
        Flow.parse(name)
    (fault,) = caught.value.faults
    assert (fault.argument, fault.value) == ("flow", repr(name))
    assert all(valid in fault.expected for valid in NAMES)


def test_fp16_accumulator_cannot_be_widened() -> None:
    with pytest.raises(Unsupported, match="fp16-fp32-bf16"):
        Flow.parse("fp16-fp32-bf16")
    with pytest.raises(Unsupported):
        Flow("fp16", "fp32", "fp32")
    with pytest.raises(InputError):
        Flow("fp32", "bf16", "fp32")  # type: ignore[arg-type]
