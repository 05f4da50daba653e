"""Two kernels side by side: what is printed, and that the builtin one costs no more than the one it is like."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqa_ref.cli.app import run
from mqa_ref.cli.compile_both import rows
from mqa_ref.flow import FLOWS, Flow
from mqa_ref.kernel import resources
from mqa_ref.kernel.resources import Resources, measure
from mqa_ref.verification import runner

SHAPE = {"page": 64, "heads": 64, "head_dim": 128, "next_n": 1, "num_sms": 148}


def cost(registers: int, **epilogue: int) -> Resources:
    return Resources(registers, 16, 3, {"MOV": 7, "ADD": 2}, epilogue, {})


def test_rows() -> None:
    found = rows(cost(40, FMA=9, ADD=2), cost(41, ADD=4, LDS=9))
    assert found == [
        ("registers a thread", 40, 41),
        ("stack frame a thread, bytes", 16, 16),
        ("spill loads and stores", 3, 3),
        ("machine instructions", 9, 9),
        ("of the epilogue loop", 11, 13),
        ("  FMA", 9, 0),
        ("  LDS", 0, 9),
        ("  ADD", 2, 4),
    ]


def test_the_command(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    asked = []

    def compile_target(kernel: str, shape: Any, flow: Flow, limits: Any, options: Any) -> str:
        asked.append((kernel, str(flow), shape["heads"], options))
        return kernel

    monkeypatch.setattr(runner, "compile_target", compile_target)
    monkeypatch.setattr(resources, "measure", lambda kernel: cost(42 if kernel == "builtin" else 41, FMA=1))
    assert (
        run(
            [
                "compile",
                "--compare",
                "sglang",
                "--flow",
                "all",
                "--heads",
                "32",
                "--option",
                "enable_pdl=true",
            ]
        )
        == 0
    )
    assert asked == [
        (kernel, flow, 32, options)
        for flow in FLOWS
        for kernel, options in (("builtin", {"enable_pdl": True}), ("sglang", None))
    ]
    told = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in told if "builtin" in line] == list(FLOWS)
    assert told[1].split() == ["registers", "a", "thread", "42", "41", "more"]
    assert told[2].split()[-2:] == ["16", "16"]


def test_files_need_a_folder(tmp_path: Path) -> None:
    assert run(["compile"]) == 2


@pytest.mark.slow
@pytest.mark.parametrize("flow", FLOWS)
def test_the_builtin_kernel_costs_no_more_than_its_model(flow: str) -> None:
    pytest.importorskip("sglang")
    builtin, model = (
        measure(runner.compile_target(name, SHAPE, Flow.parse(flow))) for name in ("builtin", "sglang")
    )
    for what, ours, theirs in rows(builtin, model)[:5]:
        assert ours <= theirs, what
    assert (builtin.spill_instructions, builtin.frame_bytes) == (0, 0)
