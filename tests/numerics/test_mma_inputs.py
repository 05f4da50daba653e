"""What mma refuses: every fault of a call at once, by argument name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mqa_ref.errors import InputError
from mqa_ref.numerics import MACHINES, mma, scalar
from mqa_ref.numerics.tensorcore import MAX_EXACT_K

A, B, C = np.zeros((4, 64), np.uint8), np.zeros((3, 64), np.uint8), np.zeros((4, 3), np.uint32)


@pytest.mark.parametrize(
    ("change", "argument", "expected"),
    [
        ({"a": A.astype(np.int8)}, "a", "dtype uint8"),
        ({"a": A.tolist()}, "a", "a NumPy array"),
        ({"a": A[0]}, "a", "shape [any, any]"),
        ({"a": A[:, :40], "b": B[:, :40]}, "a", "a positive multiple of 32"),
        ({"a": A[:, :0], "b": B[:, :0]}, "a", "a positive multiple of 32"),
        ({"b": B[:, :32]}, "b", "shape [any, 64]"),
        ({"b": B.astype(np.float32)}, "b", "dtype uint8"),
        ({"c": C.T}, "c", "shape [4, 3]"),
        ({"c": C.astype(np.uint16)}, "c", "dtype uint32"),
        ({"c": C, "acc": "fp16"}, "c", "dtype uint16"),
        ({"c": C.astype(np.float32)}, "c", "dtype uint32"),
        ({"c": C.ravel()}, "c", "shape [any, any]"),
        ({"machine": "sm101"}, "machine", "a MachineModel or one of sm90, sm100, exact"),
        ({"machine": None}, "machine", "a MachineModel or one of sm90, sm100, exact"),
        ({"acc": "fp8"}, "acc", "'fp32' or 'fp16'"),
        ({"acc": None}, "acc", "'fp32' or 'fp16'"),
    ],
)
def test_one_fault(change: dict[str, Any], argument: str, expected: str) -> None:
    call: dict[str, Any] = {"a": A, "b": B, "machine": "sm100", "acc": "fp32", "c": None, **change}
    with pytest.raises(InputError) as caught:
        mma(call["a"], call["b"], machine=call["machine"], acc=call["acc"], c=call["c"])
    assert [(fault.argument, fault.expected) for fault in caught.value.faults] == [(argument, expected)]


def said(**change: Any) -> list[str]:
    call: dict[str, Any] = {"a": A, "b": B, "machine": "sm100", "acc": "fp32", "c": C, **change}
    with pytest.raises(InputError) as caught:
        mma(call["a"], call["b"], machine=call["machine"], acc=call["acc"], c=call["c"])
    return [str(fault) for fault in caught.value.faults]


def test_what_is_said_of_a_fault() -> None:
    none: Any = None
    assert said(a=A.tolist()) == ["a: got list, expected a NumPy array"]
    assert said(b=none) == ["b: got NoneType, expected a NumPy array"]
    assert said(c=(1, 2)) == ["c: got tuple, expected a NumPy array"]
    assert said(a=A.astype(np.int8)) == ["a: got dtype int8, expected dtype uint8"]
    assert said(b=B.astype(np.uint16)) == ["b: got dtype uint16, expected dtype uint8"]
    assert said(c=C.astype(np.uint16)) == ["c: got dtype uint16, expected dtype uint32"]
    assert said(acc="fp16") == ["c: got dtype uint32, expected dtype uint16"]
    assert said(a=A[0]) == ["a: got shape [64], expected shape [any, any]"]
    assert said(a=A[None]) == ["a: got shape [1, 4, 64], expected shape [any, any]"]
    assert said(a=A[None].astype(np.int8), c=C[None]) == [
        "a: got dtype int8, expected dtype uint8",
        "a: got shape [1, 4, 64], expected shape [any, any]",
        "c: got shape [1, 4, 3], expected shape [any, any]",
    ]
    assert said(b=B[:, :32]) == ["b: got shape [3, 32], expected shape [any, 64]"]
    assert said(a=A[:, :40], b=B[:, :40]) == ["a: got K = 40, expected a positive multiple of 32"]
    assert said(a=A[:, :0], b=B[:, :0]) == ["a: got K = 0, expected a positive multiple of 32"]
    assert said(c=C.T) == ["c: got shape [3, 4], expected shape [4, 3]"]
    assert said(machine=7) == ["machine: got 7, expected a MachineModel or one of sm90, sm100, exact"]
    assert said(machine="sm1") == ["machine: got 'sm1', expected a MachineModel or one of sm90, sm100, exact"]
    # Without a known accumulator format any code type of c may be the right one.
    assert said(acc="fp8") == ["acc: got 'fp8', expected 'fp32' or 'fp16'"]
    assert said(acc=["fp32"]) == ["acc: got ['fp32'], expected 'fp32' or 'fp16'"]
    longer = np.zeros((1, MAX_EXACT_K + 32), np.uint8)
    assert said(a=longer, b=longer, c=None, machine="exact") == [
        "a: got K = 131104, expected at most 131072 for the machine 'exact'"
    ]
    assert mma(longer, longer, machine="sm100", acc="fp32").tolist() == [[0]]


def test_a_scalar_step_takes_thirty_two_pairs() -> None:
    for machine, a, b in (("sm100", 31, 31), ("sm100", 32, 31), ("sm90", 64, 64), ("exact", 32, 31)):
        with pytest.raises(ValueError, match=f"a step takes 32 code pairs, got {a} and {b}"):
            scalar.mma_step([0] * a, [0] * b, 0, machine=MACHINES[machine], acc="fp32")
    assert scalar.mma_step([0x38] * 40, [0x38] * 40, 0, machine=MACHINES["exact"], acc="fp32") == 0x42200000


def test_all_faults_at_once() -> None:
    bad: Any = {"machine": "none", "acc": "fp64", "c": [1]}
    with pytest.raises(InputError) as caught:
        mma(A.astype(np.int32), B[:, :8], **bad)
    assert [fault.argument for fault in caught.value.faults] == ["a", "c", "machine", "acc", "b"]


def test_longest_exact_sum() -> None:
    """At the longest K every product of 448 * 448 is still added exactly; one step more is refused."""
    a = np.full((1, MAX_EXACT_K), 0x7E, np.uint8)
    total = MAX_EXACT_K * 448 * 448
    assert mma(a, a, machine="exact", acc="fp32").view(np.float32)[0, 0] == np.float32(total)
    a[0, 0] = 0x01
    assert mma(a, a[:, ::-1], machine="exact", acc="fp32").view(np.float32)[0, 0] == np.float32(
        (MAX_EXACT_K - 2) * 448 * 448 + 2 * 448 / 512
    )
    longer = np.zeros((1, MAX_EXACT_K + 32), np.uint8)
    with pytest.raises(InputError, match=f"at most {MAX_EXACT_K}"):
        mma(longer, longer, machine="exact", acc="fp32")
