"""The contract of the kernel class, written out: any class that keeps it can be tested in its place."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from mqa_ref.errors import InputError
from mqa_ref.kernel.compile import import_compiler

cutlass = import_compiler()

CONSTRUCTOR = [
    ("block_kv", 128),
    ("phys_block_kv", 128),
    ("num_heads", 64),
    ("head_dim", 128),
    ("next_n", 1),
    ("num_sms", 148),
    ("remove_kv_wait_in_epilogue", False),
    ("early_tmem_copy", False),
    ("smem_subpartition_opt", False),
    ("max_kv_pipeline", False),
    ("max_umma_pipeline", False),
    ("max_w_in_reg", 0),
    ("num_epi_subtiles", 1),
    ("epi_dtype", cutlass.Float32),
    ("acc_dtype", cutlass.Float32),
    ("output_dtype", cutlass.Float32),
    ("enable_pdl", True),
]
CALL = [
    "kv_fused",
    "b",
    "weights",
    "logits",
    "block_table",
    "context_lens",
    "schedule_meta",
    "num_phys_blocks",
    "batch_size",
    "stream",
]


def kernel_class() -> Any:
    from mqa_ref.kernel.sm100 import PagedMqaLogitsSm100

    return PagedMqaLogitsSm100


def test_constructor_arguments_their_order_and_defaults() -> None:
    parameters = inspect.signature(kernel_class()).parameters.values()
    assert [(parameter.name, parameter.default) for parameter in parameters] == CONSTRUCTOR


def test_call_arguments_and_their_order() -> None:
    assert list(inspect.signature(kernel_class().__call__).parameters)[1:] == CALL


def test_the_constructor_refuses_before_anything_is_compiled() -> None:
    with pytest.raises(InputError) as caught:
        kernel_class()(phys_block_kv=48, num_epi_subtiles=5)
    assert {fault.argument for fault in caught.value.faults} == {"phys_block_kv", "num_epi_subtiles"}
