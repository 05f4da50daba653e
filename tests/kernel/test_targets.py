"""Kernels by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mqa_ref.errors import InputError
from mqa_ref.flow import Flow
from mqa_ref.kernel import resolve
from mqa_ref.problem import Problem


def problem(num_sms: int = 2) -> Problem:
    return Problem(
        q=np.zeros((1, 1, 32, 128), np.uint8),
        kv_fused=np.zeros((1, 64 * 132), np.uint8),
        weights=np.zeros((1, 32), np.float32),
        block_table=np.zeros((1, 1), np.int32),
        context_lens=np.ones(1, np.int32),
        page=64,
        num_sms=num_sms,
    )


def test_builtin_compiles_once_for_each_shape_and_option() -> None:
    target, flow = resolve("builtin"), Flow.parse("fp32-fp32-fp32")
    first = target.compile(problem(), flow)
    assert target.compile(problem(), flow, {}) is first
    assert first.options["num_sms"] == 2
    other = target.compile(problem(num_sms=3), flow)
    assert other.options["num_sms"] == 3
    assert "early_tmem_copy" not in first.options
    assert target.compile(problem(), flow, {"early_tmem_copy": True}).ptx != first.ptx


@pytest.mark.parametrize(
    "name", ["", "Builtin", "builtins", ":", "kernel.py", "kernel.py:", "a-b:Kernel", "a:K-1"]
)
def test_unknown_names(name: str) -> None:
    with pytest.raises(InputError) as caught:
        resolve(name)
    assert [fault.argument for fault in caught.value.faults] == ["kernel"]


def test_kernels_of_others_are_isolated_and_nothing_of_them_is_executed(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text("raise SystemExit('executed')")
    for name in ("sglang", f"{file}:Kernel", "no.such.module:Kernel"):
        target = resolve(name)
        assert (target.name, target.isolated) == (name, True)
    assert not resolve("builtin").isolated


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a file that exists"):
        resolve(f"{tmp_path}/kernel.py:Kernel")
