"""Compilation: what comes out, for which argument layouts, and that it leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mqa_ref
from mqa_ref.errors import InputError, NotAvailable
from mqa_ref.flow import Flow
from mqa_ref.kernel import ArgumentLayout, CompiledKernel, compile_kernel
from mqa_ref.kernel.compile import import_compiler

Compile = Callable[..., CompiledKernel]

# Which sizes and strides of the contract's tensors change from launch to launch (op.md, "Inputs of one launch"):
# batch, pages, columns of logits and the width of the table; rows of logits and of the table may be padded.
LAYOUTS = (
    ArgumentLayout("kv_fused", "tensor", (0,), ()),
    ArgumentLayout("b", "tensor", (2,), ()),
    ArgumentLayout("weights", "tensor", (1,), ()),
    ArgumentLayout("logits", "tensor", (0, 1), (0,)),
    ArgumentLayout("block_table", "tensor", (0, 1), (0,)),
    ArgumentLayout("context_lens", "tensor", (0,), ()),
    ArgumentLayout("schedule_meta", "tensor", (0,), ()),
    ArgumentLayout("num_phys_blocks", "int32"),
    ArgumentLayout("batch_size", "int32"),
    ArgumentLayout("stream", "stream"),
)

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(mqa_ref.__file__).parents[1])}
ELSEWHERE = """
import sys, types
from mqa_ref.flow import Flow
from mqa_ref.kernel.targets import resolve
shape = types.SimpleNamespace(page=64, heads=64, head_dim=128, next_n=1, num_sms=148)
kernel = resolve("builtin").compile(shape, Flow.parse("fp32-fp32-fp32"))
assert "torch" not in sys.modules
sys.stdout.write(kernel.ptx)
"""


def test_artifacts(compiled: Compile) -> None:
    kernel = compiled()
    assert ".target sm_100a" in kernel.ptx
    assert kernel.cubin[:5] == kernel.host_object[:5] == b"\x7fELF\x02"
    for symbol in (kernel.host_symbol, kernel.init_symbol, kernel.load_symbol):
        assert b"\0" + symbol.encode() + b"\0" in kernel.host_object
    assert kernel.cubin in kernel.host_object


def test_argument_layouts(compiled: Compile) -> None:
    assert compiled().arguments == LAYOUTS


def test_the_grid_is_in_the_host_code_alone(compiled: Compile) -> None:
    few, many = compiled(num_sms=4), compiled(num_sms=148)
    assert few.ptx == many.ptx
    assert few.host_object != many.host_object


def test_nothing_printed_no_file_left_whatever_the_environment_says(
    tmp_path: Path, compiled: Compile
) -> None:
    """Another process, with another GPU named by the environment and every place for files its own."""
    environment = ENVIRONMENT | {"CUTE_DSL_ARCH": "sm_90a", "TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    command = [sys.executable, "-W", "error", "-c", ELSEWHERE]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment)
    assert run.stdout == compiled().ptx
    assert run.stderr == ""
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_an_option_the_constructor_does_not_have_is_bad_input(compiled: Compile) -> None:
    with pytest.raises(InputError) as caught:
        compiled(max_kv_pipelines=True)
    assert [fault.argument for fault in caught.value.faults] == ["max_kv_pipelines"]


def test_importing_the_package_does_not_import_the_compiler() -> None:
    check = "import sys, mqa_ref.kernel; sys.exit('cutlass' in sys.modules or 'torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True, env=ENVIRONMENT)


def test_no_compiler_is_a_typed_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cutlass", None)
    with pytest.raises(NotAvailable, match="nvidia-cutlass-dsl"):
        import_compiler()


def test_any_class_that_keeps_the_contract_compiles_the_same_way(compiled: Compile) -> None:
    import_compiler()
    from mqa_ref.kernel.sm100 import PagedMqaLogitsSm100

    class Renamed(PagedMqaLogitsSm100):
        def __init__(self, *, enable_pdl: bool = False, **contract: Any) -> None:
            super().__init__(enable_pdl=enable_pdl, **contract)

    flow = Flow.parse("fp32-fp32-fp32")
    kernel = compile_kernel(Renamed, page=64, num_heads=32, head_dim=128, next_n=1, num_sms=2, flow=flow)
    assert kernel.arguments == LAYOUTS
    assert "griddepcontrol" not in kernel.ptx
    assert "griddepcontrol" in compiled(heads=32).ptx
