from __future__ import annotations

import json
import math
from typing import Any

import pytest

from mqa_ref.result import result_json, result_values

HEAD: dict[str, Any] = {
    "status": "fail",
    "exit_code": 1,
    "flow": ["fp32-fp32-fp32", "fp16-fp16-fp16"],
    "cases": 2,
    "logits": 10,
    "mismatched": 1,
    "findings": 0,
    "seconds": 1.23456,
}


def test_the_head_and_its_order() -> None:
    told = result_values("golden check", **HEAD)
    assert told == {
        "version": 1,
        "command": "golden check",
        "status": "fail",
        "exit_code": 1,
        "kernel": None,
        "backend": None,
        "flow": "fp32-fp32-fp32,fp16-fp16-fp16",
        "cases": 2,
        "logits": 10,
        "mismatched": 1,
        "findings": 0,
        "seed": None,
        "seconds": 1.235,
    }
    assert next(iter(told)) == "version"


def test_what_json_does_not_know() -> None:
    told = result_values("fuzz", **HEAD, more={"a": (1, math.nan), "b": {"c": -math.inf, 3: [math.inf]}})
    assert json.loads(result_json(told)) == told
    assert (told["a"], told["b"]) == ([1, "nan"], {"c": "-inf", "3": ["inf"]})


def test_a_field_of_the_head_given_twice() -> None:
    with pytest.raises(ValueError, match="given twice: seed, status"):
        result_values("fuzz", **HEAD, more={"status": "pass", "seed": 1})
